"""Failures by what they have in common, and the slowest tasks of a type."""

import httpx

from tasklib.engine.engine import Engine
from tests.conformance.builders import apply, claim, claim_one, completed, failed, submit, submit_several

TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/gateway.py", line {line}, in charge
    raise Timeout(order)
shop.Timeout: order {order}, password={secret}
"""


async def test_failures_are_grouped_by_exception_and_place_and_retried_as_a_group(
    api: httpx.AsyncClient, engine: Engine
):
    store = await engine.store()
    await submit_several(store, 4, max_retries=0)
    timeouts = await claim(store, 4)
    for order, each in enumerate(timeouts[:3]):
        await apply(store, failed(each, TRACEBACK.format(line=order, order=order, secret="hunter2")))
        store.clock_offset += 1
    await apply(store, failed(timeouts[3], "shop.Timeout: 4711"))
    await submit(store, "other", max_retries=0)
    await apply(store, failed(await claim_one(store, "other"), TRACEBACK.format(line=1, order=9, secret="x")))

    answer = await api.get("/api/failures?type=work")
    assert "hunter2" not in answer.text
    body = answer.json()
    assert (body["looked"], body["capped"]) == (4, False)
    large, small = body["groups"]
    assert (large["error"], large["place"], large["count"]) == ("shop.Timeout", "shop/gateway.py in charge", 3)
    assert large["message"].startswith("shop.Timeout: order 2")
    assert large["ids"] == [str(each.id) for each in reversed(timeouts[:3])]
    assert large["firstAt"] < large["latestAt"]
    assert (small["place"], small["count"], small["message"]) == (None, 1, "shop.Timeout: 4711")
    everything = (await api.get("/api/failures")).json()["groups"]
    assert [(each["count"], each["types"]) for each in everything] == [(4, ["other", "work"]), (1, ["work"])]

    retried = await api.post("/api/tasks/bulk/retry", json={"filter": {"ids": large["ids"]}})
    assert retried.json()["done"] == 3
    assert [each["place"] for each in (await api.get("/api/failures?type=work")).json()["groups"]] == [None]


async def test_the_slowest_of_a_type_and_their_share_of_the_last_hour(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for name, times in {"slow": (9_000, 200), "quick": (1, 2)}.items():
        ids = await submit_several(store, 2, name, payload="x" * 500)
        claims = {each.id: each for each in await claim(store, 2, names=[name])}
        await apply(store, *(completed(claims[task], run_ms=ms) for task, ms in zip(ids, times, strict=True)))
    body = (await api.get("/api/tasks?type=slow&finished=true&sort=duration&limit=1")).json()
    (task,) = body["tasks"]
    assert (task["runMs"], task["payload"]) == (9_000, None)
    types = {each["type"]: each for each in (await api.get("/api/types")).json()["types"]}
    assert 5_000 < types["slow"]["runP95Ms"] <= 10_000
    assert types["quick"]["runP95Ms"] <= 5
    assert types["slow"]["waitedP95Ms"] is not None
