"""The figures that charts are drawn from."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import httpx
import pytest

from tasklib.core.decide import LATENCY_BOUNDS_MS, bucket_of
from tasklib.core.lifecycle import Phase
from tasklib.engine.engine import Engine
from tasklib.server.distributions import percentile
from tasklib.server.series import MOST_POINTS
from tests.conformance.builders import (
    apply,
    claim_one,
    completed,
    failed,
    heartbeat_of,
    in_phase,
    submit,
    submit_several,
)
from tests.conformance.series import at_the_begin_of_a_minute
from tests.server.conftest import refused


async def test_ends_and_latency(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for _ in range(3):
        await submit(store, "work")
        await apply(store, completed(await claim_one(store, "work"), run_ms=40))
    await submit(store, "work")
    await apply(store, failed(await claim_one(store, "work"), run_ms=20_000, delay=60))
    await in_phase(store, Phase.COMPLETED, "other")
    body = (await api.get("/api/series?minutes=5&type=work")).json()
    assert (body["minutes"], body["stepMinutes"], len(body["points"])) == (5, 1, 6)
    totals = Counter[str]()
    for point in body["points"]:
        totals.update({name: point[name] for name in ("completed", "failed", "retried", "runMs")})
    assert totals == {"completed": 3, "failed": 0, "retried": 1, "runMs": 20_120}
    ran = [point for point in body["points"] if point["p50Ms"] is not None]
    assert all(25 < point["p50Ms"] <= 50 for point in ran[:1])
    assert max(point["p99Ms"] for point in ran) > 10_000
    everything = (await api.get("/api/series?minutes=5")).json()["points"]
    assert sum(point["completed"] for point in everything) == 4
    other = (await api.get("/api/series?minutes=5&type=nobody")).json()["points"]
    assert sum(point["completed"] for point in other) == 0


@pytest.mark.parametrize(("minutes", "step"), [(1, 1), (120, 1), (121, 5), (1440, 15), (86_400, 720)])
async def test_steps_are_even_and_few(quick: httpx.AsyncClient, minutes: int, step: int):
    body = (await quick.get(f"/api/series?minutes={minutes}")).json()
    times = [datetime.fromisoformat(point["at"]) for point in body["points"]]
    assert body["stepMinutes"] == step
    assert len(times) <= MOST_POINTS + 1
    assert {later - earlier for earlier, later in pairwise(times)} == {timedelta(minutes=step)}
    assert all(time.timestamp() % (step * 60) == 0 for time in times)


async def test_the_age_of_the_backlog(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await submit(store, "work")
    store.clock_offset += 600
    await store.sample_backlog()

    async def ages(**query: str) -> list[float]:
        points = (await api.get("/api/series", params={"minutes": 5, **query})).json()["points"]
        return [point["backlogSeconds"] for point in points if point["backlogSeconds"] is not None]

    assert len(await ages()) == 1
    assert 599 < (await ages())[0] < 630
    assert await ages(type="work") == await ages()
    assert await ages(type="idle") == [0.0]


async def test_what_came_what_waits_and_for_how_long(api: httpx.AsyncClient, engine: Engine):
    """Of one type and of all; beside what ended."""
    store = await engine.store()
    await at_the_begin_of_a_minute(store)
    await store.sample_backlog()
    await submit_several(store, 4, "work")
    await submit(store, "other")
    store.clock_offset += 35
    await apply(store, completed(await claim_one(store, "work"), run_ms=40))
    store.clock_offset += 25
    await store.sample_backlog()

    async def shown(**query: str) -> dict[str, Any]:
        body: dict[str, Any] = (await api.get("/api/series", params={"minutes": 5, **query})).json()
        return body

    body = await shown()
    before, now = body["points"][-2:]
    assert [(each["arrived"], each["depth"]) for each in (before, now)] == [(5, 0), (None, 4)]
    assert body["points"][0]["arrived"] is None
    assert 25_000 < before["waitedP95Ms"] <= 60_000
    assert [body["waited"]["count"], body["runTime"]["count"], body["runTime"]["meanMs"]] == [1, 1, 40.0]
    assert [each["upToMs"] for each in body["waited"]["buckets"]] == [*LATENCY_BOUNDS_MS, None]
    assert [each["count"] for each in body["waited"]["buckets"]].index(1) == bucket_of(35_000)
    assert [(each["arrived"], each["depth"]) for each in (await shown(type="work"))["points"][-2:]] == [
        (4, 0),
        (None, 3),
    ]
    assert [(each["arrived"], each["depth"]) for each in (await shown(type="idle"))["points"][-2:]] == [
        (0, 0),
        (None, 0),
    ]

    # The same minute as it is seen a day later, and by the hour after a week.
    ended = before["at"]
    for days, step in ((1, 1), (7, 60)):
        store.clock_offset += days * 86_400
        await store.compact_stats()
        until = datetime.fromisoformat(now["at"]).isoformat().replace("+00:00", "Z")
        old = await shown(until=until, minutes="60")
        assert old["stepMinutes"] == step
        assert sum(each["completed"] for each in old["points"]) == 1
        assert sum(each["arrived"] or 0 for each in old["points"]) == 5
        if step == 1:
            assert (old["points"][-1]["at"], old["until"], len(old["points"])) == (ended, until, 60)
    assert sum(each["completed"] for each in (await shown(minutes="60"))["points"]) == 0


async def test_versions_are_marked_when_they_first_started(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await store.heartbeat(heartbeat_of("old", version="1.4"))
    await store.sample_backlog()
    store.clock_offset += 7200
    await store.heartbeat(heartbeat_of("new", version="1.5"))
    await store.heartbeat(heartbeat_of("old again", version="1.4"))

    async def marks(minutes: int) -> list[str]:
        body = (await api.get(f"/api/series?minutes={minutes}")).json()
        return [each["version"] for each in body["versions"]]

    assert await marks(60) == ["1.5"], "one that comes back is none"
    assert await marks(180) == ["1.4", "1.5"]
    workers = (await api.get("/api/workers")).json()["workers"]
    assert {each["id"]: each["version"] for each in workers}["new"] == "1.5"


async def test_bounds(quick: httpx.AsyncClient):
    for minutes in ("0", "-1", "86401", "x"):
        refused(await quick.get(f"/api/series?minutes={minutes}"), 400, "invalid_input", "minutes")
    refused(await quick.get("/api/series?until=yesterday"), 400, "invalid_input", "until")
    assert (await quick.get("/api/series?until=2999-01-01T00:00:00Z")).json()["points"][-1]["at"] < "2999"


def test_percentiles_lie_within_their_bucket():
    latency = Counter({bucket_of(7): 50, bucket_of(400): 50})
    assert percentile(latency, 0.25) == 7.5
    assert percentile(latency, 0.50) == 10.0
    assert percentile(latency, 0.75) == 375.0
    assert percentile(Counter(), 0.5) is None
    assert percentile(Counter({len(LATENCY_BOUNDS_MS): 1}), 0.5) == LATENCY_BOUNDS_MS[-1]
