"""Bulk actions, pause and limits, types, workers and the audit trail."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import tasklib
from tasklib import Config
from tasklib.core.errors import InvalidConfig
from tasklib.core.lifecycle import Phase
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings
from tasklib.server import bulk as server_bulk
from tasklib.server.views import worker_view
from tasklib.stores import values
from tasklib.stores.values import ControlChange, WorkerInfo
from tests.conformance.builders import apply, claim, claim_one, failed, heartbeat_of, in_phase, submit, submit_several
from tests.server.conftest import client_of, make_app, refused


async def test_bulk(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for phase in (Phase.FAILED, Phase.FAILED, Phase.WAITING, Phase.COMPLETED, Phase.PENDING):
        await in_phase(store, phase, f"mail.{phase.name.lower()}")

    async def act(action: str, dry: bool = False, **given: Any) -> dict[str, Any]:
        answer = await api.post(f"/api/tasks/bulk/{action}", json={"filter": given, "dryRun": dry})
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    assert await act("retry", dry=True, namePrefix="mail.") == {
        "matched": 3,
        "matchedCapped": False,
        "done": 0,
        "more": False,
        "nextCursor": None,
        "bulkId": None,
        "dryRun": True,
    }
    assert (await act("retry", status=["failed"], finished=True))["done"] == 2
    assert (await act("cancel"))["done"] == 4
    assert (await act("delete", type=["mail.completed"]))["done"] == 1
    assert (await act("delete"))["done"] == 4
    assert (await act("delete"))["done"] == 0
    entries = (await api.get("/api/audit?folded=true")).json()["entries"]
    actions = [entry["action"] for entry in entries]
    assert actions == ["bulk-delete", "bulk-delete", "bulk-cancel", "bulk-retry"], "what found nothing did nothing"


async def test_bulk_by_ids_and_tags(quick: httpx.AsyncClient, memory_engine: Engine):
    store = await memory_engine.store()
    first, _ = await submit_several(store, 2)
    await submit(store, "t", tags={"n": 3})
    body = {"filter": {"ids": [str(first)]}}
    assert (await quick.post("/api/tasks/bulk/cancel", json=body)).json()["done"] == 1
    assert (await quick.post("/api/tasks/bulk/cancel", json={"filter": {"tags": {"n": 3}}})).json()["done"] == 1


async def test_bulk_by_a_search_is_done_to_all(api: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch):
    """The count looks at the newest of those that failed, and says so; the action does not stop there."""
    monkeypatch.setattr(values, "SEARCHED_TASKS", 3)
    store = await engine.store()
    for number in range(8):
        await submit(store, f"pay.{number}")
        await apply(store, failed(await claim_one(store, f"pay.{number}"), "insufficient funds", final=True))
    await submit_several(store, 9, "mail")
    where = {"status": ["failed"], "error": "insufficient"}
    count = (await api.post("/api/tasks/bulk/retry", json={"filter": where, "dryRun": True})).json()
    assert 2 <= count["matched"] <= 3, "half as many at least"
    assert count["matchedCapped"]
    listed = (await api.get("/api/tasks", params=where)).json()
    assert (listed["total"], listed["totalCapped"], len(listed["tasks"])) == (count["matched"], True, count["matched"])
    assert (await api.get("/api/tasks", params={**where, "cursor": listed["nextCursor"]})).json()["tasks"]
    done = (await api.post("/api/tasks/bulk/retry", json={"filter": where})).json()
    assert (done["done"], done["more"], done["matchedCapped"]) == (8, False, False)
    assert (await api.get("/api/tasks", params=where)).json()["total"] == 0


async def test_bulk_that_runs_out_of_time_goes_on_behind_its_cursor(
    quick: httpx.AsyncClient, memory_engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """Also where nothing was found in the time that there was: without the cursor it would never get further."""
    monkeypatch.setattr(values, "SEARCHED_TASKS", 2)
    monkeypatch.setattr(server_bulk, "WORK_SECONDS", 0)
    store = await memory_engine.store()
    await submit_several(store, 5, "others")
    await submit(store, "wanted", tags={"customer": 4711})
    body: dict[str, Any] = {"filter": {"tags": {"customer": "4711"}}}
    answers: list[dict[str, Any]] = []
    for _ in range(3):
        answers.append((await quick.post("/api/tasks/bulk/cancel", json=body)).json())
        body["cursor"] = answers[-1]["nextCursor"]
    assert [(answer["done"], answer["more"]) for answer in answers] == [(0, True), (0, True), (1, False)]


async def test_lists_and_bulk_actions_read_tags_alike(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for value in (4711, "4711", True, "true", None, "null", "x"):
        await submit(store, "t", tags={"customer": value})
    for text, number in (("4711", 2), ("true", 2), ("null", 2), ("x", 1), ("471", 0)):
        assert (await api.get("/api/tasks", params={"tag": f"customer:{text}"})).json()["total"] == number
        body = {"filter": {"tags": {"customer": text}}, "dryRun": True}
        assert (await api.post("/api/tasks/bulk/cancel", json=body)).json()["matched"] == number
    body = {"filter": {"tags": {"customer": 4711}}, "dryRun": True}
    assert (await api.post("/api/tasks/bulk/cancel", json=body)).json()["matched"] == 1, "a number is meant exactly"


@pytest.mark.parametrize(
    "body", [{}, {"filter": None}, {"filter": {"nope": 1}}, {"filter": {}, "dryRun": 1}, {"filter": {"ids": ["x"]}}]
)
async def test_bulk_refuses(quick: httpx.AsyncClient, body: Any):
    refused(await quick.post("/api/tasks/bulk/delete", json=body), 400, "invalid_input")
    refused(await quick.post("/api/tasks/bulk/explode", json={"filter": {}}), 400, "invalid_input")


async def test_pause_and_resume(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await submit_several(store, 2)
    assert (await api.post("/api/tasks/pause")).json() == {"paused": True}
    assert (await api.post("/api/tasks/pause")).json() == {"paused": True}
    assert await claim(store, 2) == []
    assert (await api.get("/api/controls")).json()["paused"] is True
    assert (await api.post("/api/tasks/resume")).json() == {"paused": False}
    assert len(await claim(store, 2)) == 2


async def test_rate_limit(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await submit_several(store, 5)
    answer = await api.post("/api/tasks/rate-limit", json={"tasksPerSecond": 2})
    assert answer.text == '{"tasksPerSecond":2}'
    assert len(await claim(store, 5)) == 2
    assert (await api.get("/api/controls")).json()["rateLimit"] == 2
    assert (await api.post("/api/tasks/rate-limit", json={"tasksPerSecond": 0})).json() == {"tasksPerSecond": 0}
    assert len(await claim(store, 5)) == 3
    assert (await api.post("/api/tasks/rate-limit", json={"tasksPerSecond": None})).status_code == 200


@pytest.mark.parametrize("value", [-1, "10", True, 1e300, [], 2e6])
async def test_a_rate_is_a_number(quick: httpx.AsyncClient, value: Any):
    answer = await quick.post("/api/tasks/rate-limit", json={"tasksPerSecond": value})
    refused(answer, 400, "invalid_input", "tasksPerSecond")


async def test_types(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await submit(store, "a/b c")
    await store.heartbeat(heartbeat_of("w", names=["a/b c"]))
    view = (await api.put("/api/types/a%2Fb%20c", json={"paused": True, "rateLimit": 1.5, "concurrency": 4})).json()
    assert (view["paused"], view["rateLimit"], view["concurrency"]) == (True, 1.5, 4)
    view = (await api.put("/api/types/a%2Fb%20c", json={"rateLimit": None})).json()
    assert (view["paused"], view["rateLimit"], view["concurrency"]) == (True, None, 4)
    view = (await api.get("/api/types/a%2Fb%20c")).json()
    assert (view["type"], view["handled"], view["registered"], view["counts"]["pending"]) == ("a/b c", True, False, 1)
    listed = (await api.get("/api/types")).json()["types"]
    assert [(each["type"], each["registered"]) for each in listed] == [("a/b c", False), ("send_email", True)]
    assert (await api.put("/api/types/new", json={"concurrency": 1})).json()["concurrency"] == 1
    refused(await api.get("/api/types/nobody"), 404, "type_not_found")
    assert set((await api.get("/api/controls")).json()["types"]) == {"a/b c", "new"}


@pytest.mark.parametrize("name", ["a/b c", "two\nlines", "ü?#%2F", "/"])
async def test_a_type_may_be_called_anything(quick: httpx.AsyncClient, name: str):
    path = f"/api/types/{quote(name, safe='')}"
    assert (await quick.put(path, json={"paused": True})).json()["type"] == name
    assert (await quick.get(path)).json()["paused"] is True


@pytest.mark.parametrize("body", [{"paused": None}, {"paused": 1}, {"concurrency": 0}, {"rateLimit": -1}, {"x": 1}, []])
async def test_types_refuse(quick: httpx.AsyncClient, body: Any):
    refused(await quick.put("/api/types/t", json=body), 400, "invalid_input")


async def test_null_clears_a_types_rate_and_0_is_refused(api: httpx.AsyncClient, engine: Engine):
    await engine.control(ControlChange(name="t", default_rate=7))
    await api.put("/api/types/t", json={"rateLimit": 2})
    problem = refused(await api.put("/api/types/t", json={"rateLimit": 0}), 400, "invalid_input", "rateLimit")
    assert "greater than 0" in problem["detail"]
    assert (await api.get("/api/types/t")).json()["rateLimit"] == 2
    view = (await api.put("/api/types/t", json={"rateLimit": None})).json()
    assert (view["rateLimit"], view["operatorRateLimit"], view["defaultRateLimit"]) == (7, None, 7)


async def test_workers(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await store.heartbeat(heartbeat_of("worker-1", names=["work"], running=2))
    (worker,) = (await api.get("/api/workers")).json()["workers"]
    assert (worker["id"], worker["types"], worker["running"], worker["live"]) == ("worker-1", ["work"], 2, True)
    assert worker["queues"] == ["default"]


async def test_states_of_workers(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for name, concurrency in (("live", 6), ("stopping", 0), ("stopped", 6)):
        await store.heartbeat(heartbeat_of(name, names=[name], concurrency=concurrency, running=1))
    await store.deregister_worker("stopped")

    async def states(query: str = "") -> dict[str, tuple[str, bool, int]]:
        workers = (await api.get(f"/api/workers{query}")).json()["workers"]
        return {each["id"]: (each["state"], each["live"], each["running"]) for each in workers}

    expected = {"live": ("live", True, 1), "stopping": ("stopping", False, 1)}
    assert await states() == expected
    assert await states("?all=true") == {**expected, "stopped": ("stopped", False, 0)}
    handled = {each["type"]: each["handled"] for each in (await api.get("/api/types")).json()["types"]}
    assert handled == {"live": True, "send_email": False}


def test_a_worker_that_is_not_heard_of_is_lost_and_runs_nothing():
    now = datetime(2030, 1, 1, tzinfo=UTC)
    times: dict[str, Any] = {"started_at": now, "seen_at": now, "stopped_at": None, "seconds_since_seen": 31.0}
    worker = WorkerInfo(id="w", hostname="h", pid=1, names=("t",), concurrency=6, running=1, **times)
    view = worker_view(worker, dead_after=30.0)
    assert (view.state, view.live, view.running) == ("lost", False, 0)


async def test_queues_are_told_by_live_workers(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await store.heartbeat(replace(heartbeat_of("worker-1", names=["mail", "other"]), queues={"mail": "post"}))
    await submit(store, "nobody's")
    (worker,) = (await api.get("/api/workers")).json()["workers"]
    assert worker["queues"] == ["default", "post"]
    queues = {each["type"]: each["queue"] for each in (await api.get("/api/types")).json()["types"]}
    assert (queues["mail"], queues["other"], queues["nobody's"]) == ("post", "default", None)


async def test_about(api: httpx.AsyncClient, engine: Engine):
    about = (await api.get("/api/about")).json()
    assert about["version"] == tasklib.__version__
    assert about["environment"] is None
    assert about["engine"] == (await engine.store()).traits.engine
    async with client_of(make_app(engine, environment="staging")) as client:
        assert (await client.get("/api/about")).json()["environment"] == "staging"


@pytest.mark.parametrize("name", ["", "x" * 41])
def test_an_environment_has_a_short_name(name: str):
    with pytest.raises(InvalidConfig, match="environment: 1 to 40 characters"):
        ServerSettings(environment=name)


async def test_a_list_by_worker_or_id(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    first, second = await submit_several(store, 2)
    running = await claim_one(store, worker="anna")
    by_worker = (await api.get("/api/tasks?worker=anna")).json()
    assert [task["id"] for task in by_worker["tasks"]] == [str(running.id)]
    assert (await api.get("/api/tasks?worker=nobody")).json()["tasks"] == []
    by_id = (await api.get("/api/tasks", params={"id": [str(first), str(second)]})).json()
    assert {task["id"] for task in by_id["tasks"]} == {str(first), str(second)}
    body = {"filter": {"worker": "anna"}, "dryRun": True}
    assert (await api.post("/api/tasks/bulk/cancel", json=body)).json()["matched"] == 1


async def test_a_clean_up_is_counted_first(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for phase in (Phase.COMPLETED, Phase.COMPLETED, Phase.FAILED):
        await in_phase(store, phase, "work")
    store.clock_offset += 60
    query = {"olderThan": (await store.now()).isoformat()}
    dry = (await api.delete("/api/tasks", params={**query, "dryRun": "true"})).json()
    assert dry == {"deleted": 0, "matched": 2, "more": False, "bulkId": None, "dryRun": True}
    assert (await store.stats())["work"].completed == 2
    assert (await api.delete("/api/tasks", params=query)).json()["deleted"] == 2
    actions = [entry["action"] for entry in (await api.get("/api/audit")).json()["entries"]]
    assert actions == ["cleanup"], "a dry run is nobody's action"


async def test_a_bulk_action_shows_in_each_tasks_timeline(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    failures = [await in_phase(store, Phase.FAILED, "work") for _ in range(2)]
    running = await in_phase(store, Phase.RUNNING, "work")
    await api.post("/api/tasks/bulk/retry", json={"filter": {}})
    await api.post("/api/tasks/bulk/cancel", json={"filter": {"ids": [str(running.id)]}})
    for task, action in ((failures[0], "retry"), (failures[1], "retry"), (running, "cancel")):
        (entry,) = (await api.get("/api/audit", params={"taskId": str(task.id)})).json()["entries"]
        assert (entry["action"], entry["type"], entry["detail"]) == (action, "work", {"bulk": True})


async def test_more_keys_can_be_secret(memory_url: str):
    engine = Engine(Config(database_url=memory_url, redact_keys=("iban",)))
    await submit(await engine.store(), payload={"to": {"IBAN": "DE02", "password": "x", "name": "ada"}})
    async with client_of(make_app(engine)) as client:
        (task,) = (await client.get("/api/tasks")).json()["tasks"]
    assert task["payload"] == {"to": {"IBAN": "***", "password": "***", "name": "ada"}}
    await engine.close()


async def test_audit(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    record = await in_phase(store, Phase.FAILED, "t")
    await api.post(f"/api/tasks/{record.id}/retry")
    await api.post(f"/api/tasks/{record.id}/cancel")
    await api.put("/api/types/t", json={"paused": True})
    await api.post(f"/api/tasks/{record.id}/retry")  # refused: nothing to note
    entries = (await api.get("/api/audit", params={"taskId": str(record.id)})).json()["entries"]
    assert [(entry["action"], entry["type"], entry["actor"]) for entry in entries] == [
        ("cancel", "t", "TASKLIB_TOKEN"),
        ("retry", "t", "TASKLIB_TOKEN"),
    ]
    latest = (await api.get("/api/audit?limit=1")).json()["entries"]
    assert [(entry["action"], entry["detail"]) for entry in latest] == [("set-type", {"paused": True})]
