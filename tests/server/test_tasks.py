"""/api/tasks, endpoint by endpoint: what it answers, and each of its error codes."""

import asyncio
import inspect
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw
import httpx
import psycopg
import pytest
from fastapi.routing import APIRoute

from tasklib import Config
from tasklib.core.lifecycle import Phase
from tasklib.core.retry import RetryPolicy
from tasklib.engine.engine import Engine
from tasklib.server import bulk, tasks
from tasklib.server.app import ROUTERS
from tests.conformance.builders import apply, claim_one, completed, failed, in_phase, submit, submit_several
from tests.server.conftest import client_of, make_app, refused

NOBODY = uuid.UUID(int=7)


async def test_submit_and_get(api: httpx.AsyncClient):
    payload = {"to": "user@example.com", "big": 2**80, "small": 1e-9, "list": [1, 1.5, None, True, "é"]}
    answer = await api.post("/api/tasks", json={"type": "crawl", "payload": payload})
    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == {"id", "type", "status", "createdAt", "validated"}
    assert (made["type"], made["status"]) == ("crawl", "pending")
    assert made["createdAt"].endswith("Z")
    assert answer.headers["location"] == f"/api/tasks/{made['id']}"
    task = (await api.get(answer.headers["location"])).json()
    assert task == {
        "id": made["id"],
        "type": "crawl",
        "payload": payload,
        "status": "pending",
        "attempts": 0,
        "maxAttempts": 3,
        "lastAttemptAt": None,
        "nextRetryAt": None,
        "result": None,
        "error": None,
        "runAfter": None,
        "createdAt": made["createdAt"],
        "updatedAt": task["updatedAt"],
        "completedAt": None,
        "workerId": None,
        "lastWorkerId": None,
        "runMs": None,
        "lockedUntil": None,
        "timeoutSeconds": None,
        "priority": 0,
        "tags": {},
        "cancelRequestedAt": None,
        "version": task["version"],
        "idempotencyKey": None,
        "uniqueKey": None,
        "copyOf": None,
        "waits": 0,
        "after": None,
        "flowId": None,
        "history": [],
        "parents": {"tasks": [], "total": 0, "unfinished": 0},
        "feeds": {"tasks": [], "total": 0, "unfinished": 0},
        "waitingFor": [{"cause": "no_worker", "text": "No worker is running to handle the type crawl.", "until": None}],
    }


@pytest.mark.parametrize("payload", [None, 0, False, "", "text", [], [1], {}, 1.5])
async def test_any_json_is_a_payload(quick: httpx.AsyncClient, payload: Any):
    made = (await quick.post("/api/tasks", json={"type": "t", "payload": payload})).json()
    assert (await quick.get(f"/api/tasks/{made['id']}")).json()["payload"] == payload


async def test_options(api: httpx.AsyncClient, engine: Engine):
    options = {
        "maxAttempts": 5,
        "runAfter": "2035-01-15T12:00:00+02:00",
        "priority": -4,
        "tags": {"tenant": "a"},
        "timeoutSeconds": 30,
        "idempotencyKey": "once",
    }
    made = (await api.post("/api/tasks", json={"type": "t", "payload": 1, "options": options})).json()
    task = (await api.get(f"/api/tasks/{made['id']}")).json()
    assert {**options, "runAfter": "2035-01-15T10:00:00Z"} == {name: task[name] for name in options}
    stored = await engine.get_or_raise(uuid.UUID(made["id"]))
    assert stored.retry_policy is not None
    assert stored.retry_policy["base"] == RetryPolicy.QUEUE.base
    assert stored.max_retries == 4


async def test_unlimited_attempts(api: httpx.AsyncClient, engine: Engine):
    made = (await api.post("/api/tasks", json={"type": "t", "payload": 1, "options": {"maxAttempts": 0}})).json()
    assert (await engine.get_or_raise(uuid.UUID(made["id"]))).max_retries == -1
    assert (await api.get(f"/api/tasks/{made['id']}")).json()["maxAttempts"] == 0


async def test_a_repeated_key_answers_with_the_task(api: httpx.AsyncClient):
    body = {"type": "t", "payload": 1, "options": {"idempotencyKey": "k"}}
    first = await api.post("/api/tasks", json=body)
    second = await api.post("/api/tasks", json={**body, "payload": 2})
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["payload"] == 1
    assert (await api.get("/api/tasks")).json()["total"] == 1


async def test_a_known_type_is_checked(api: httpx.AsyncClient):
    problem = refused(
        await api.post("/api/tasks", json={"type": "send_email", "payload": {"to": "a", "times": "many", "x": 1}}),
        400,
        "invalid_arguments",
        "payload.times",
    )
    assert {fault["field"] for fault in problem["errors"]} == {"payload.times", "payload.x"}
    refused(await api.post("/api/tasks", json={"type": "send_email", "payload": [1]}), 400, "invalid_arguments")
    made = await api.post("/api/tasks", json={"type": "send_email", "payload": {"to": "a"}})
    task = (await api.get(f"/api/tasks/{made.json()['id']}")).json()
    assert (task["maxAttempts"], task["priority"], task["tags"]) == (8, 3, {"kind": "mail"})


async def test_states_in_the_words_of_the_api(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    expected = {
        Phase.PENDING: ("pending", 0),
        Phase.RUNNING: ("processing", 1),
        Phase.COMPLETED: ("completed", 1),
        Phase.WAITING: ("failed", 1),
        Phase.FAILED: ("failed", None),
        Phase.CANCELLED: ("cancelled", 0),
    }
    for phase, (status, attempts) in expected.items():
        record = await in_phase(store, phase)
        task = (await api.get(f"/api/tasks/{record.id}")).json()
        assert task["status"] == status
        assert attempts is None or task["attempts"] == attempts
        assert (task["completedAt"] is not None) == (phase in (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED))


async def test_result_error_and_history(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    task_id = await submit(store, "t", max_retries=1)
    await apply(store, failed(await claim_one(store, "t"), "first trouble"))
    task = (await api.get(f"/api/tasks/{task_id}")).json()
    assert (task["status"], task["error"], task["attempts"]) == ("failed", "first trouble", 1)
    assert task["nextRetryAt"]
    (entry,) = task["history"]
    assert (entry["attempt"], entry["error"], entry["lost"]) == (1, "first trouble", False)
    assert entry["ended"].endswith("Z")
    await apply(store, completed(await claim_one(store, "t"), {"messageId": "abc123"}))
    task = (await api.get(f"/api/tasks/{task_id}")).json()
    assert (task["result"], task["error"], task["attempts"]) == ({"messageId": "abc123"}, None, 2)


async def test_no_such_task(quick: httpx.AsyncClient):
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("POST", "/cancel")):
        refused(await quick.request(method, f"/api/tasks/{NOBODY}{path}"), 404, "task_not_found")


async def test_retry(api: httpx.AsyncClient, engine: Engine):
    record = await in_phase(await engine.store(), Phase.FAILED)
    answer = await api.post(f"/api/tasks/{record.id}/retry")
    assert answer.status_code == 200
    assert answer.json() == {"id": str(record.id), "status": "pending", "attempts": 0, "nextRetryAt": None}
    problem = refused(await api.post(f"/api/tasks/{record.id}/retry"), 400, "task_not_failed")
    assert problem["currentStatus"] == "pending"


async def test_delete(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for phase in (Phase.PENDING, Phase.RUNNING, Phase.WAITING):
        record = await in_phase(store, phase)
        problem = refused(await api.delete(f"/api/tasks/{record.id}"), 400, "task_not_terminal")
        assert problem["currentStatus"] == {Phase.RUNNING: "processing", Phase.WAITING: "failed"}.get(phase, "pending")
    for phase in (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED):
        record = await in_phase(store, phase)
        answer = await api.delete(f"/api/tasks/{record.id}")
        assert (answer.status_code, answer.content) == (204, b"")
        refused(await api.delete(f"/api/tasks/{record.id}"), 404, "task_not_found")


async def test_cancel(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    waiting = await in_phase(store, Phase.PENDING)
    assert (await api.post(f"/api/tasks/{waiting.id}/cancel")).json()["status"] == "cancelled"
    problem = refused(await api.post(f"/api/tasks/{waiting.id}/cancel"), 409, "task_cancelled")
    assert problem["currentStatus"] == "cancelled"
    running = await in_phase(store, Phase.RUNNING)
    task = (await api.post(f"/api/tasks/{running.id}/cancel")).json()
    assert task["status"] == "processing"
    assert task["cancelRequestedAt"]
    done = await in_phase(store, Phase.COMPLETED)
    refused(await api.post(f"/api/tasks/{done.id}/cancel"), 409, "task_completed")


async def test_list_filters(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    tagged = await submit(store, "mail.send", tags={"tenant": "a", "n": "100%"})
    await submit(store, "mail.fetch", tags={"tenant": "b"})
    await apply(store, failed(await claim_one(store, "mail.fetch"), "100% of it_broke", final=True))
    crawl = await submit(store, "crawl")
    await claim_one(store, "crawl")

    async def types(query: str) -> list[str]:
        answer = await api.get(f"/api/tasks?{query}")
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body["total"] == len(body["tasks"])
        assert body["totalCapped"] is False
        return sorted(task["type"] for task in body["tasks"])

    assert await types("") == ["crawl", "mail.fetch", "mail.send"]
    assert await types("type=crawl") == ["crawl"]
    assert await types("type=crawl&type=mail.send") == ["crawl", "mail.send"]
    assert await types("status=failed&status=processing") == ["crawl", "mail.fetch"]
    assert await types("status=failed&finished=false") == []
    assert await types("namePrefix=mail.") == ["mail.fetch", "mail.send"]
    assert await types("namePrefix=mail_") == []
    assert await types("tag=tenant:a") == ["mail.send"]
    assert await types("tag=tenant:a&tag=n:100%25") == ["mail.send"]
    assert await types("error=100%25+OF+it_b") == ["mail.fetch"]
    assert await types("error=1%25of") == []
    assert await types("error=itxbroke") == []
    later = (datetime(2000, 1, 1, tzinfo=UTC)).isoformat().replace("+", "%2B")
    assert await types(f"createdAfter={later}") == ["crawl", "mail.fetch", "mail.send"]
    assert await types("createdBefore=2000-01-01T00:00:00Z") == []
    assert (await api.get("/api/tasks?limit=1")).json()["tasks"][0]["id"] == str(crawl)
    assert (await api.get("/api/tasks?limit=1&offset=2")).json()["tasks"][0]["id"] == str(tagged)


async def test_pages_by_cursor(api: httpx.AsyncClient, engine: Engine):
    """Ten thousand, in order and without gaps, while others come in."""
    store = await engine.store()
    ids = [str(each) for _ in range(10) for each in await submit_several(store, 1000)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        body = (await api.get("/api/tasks", params={"limit": 100, **({"cursor": cursor} if cursor else {})})).json()
        assert body["total"] == 10_000
        assert body["totalCapped"] is bool(seen)
        seen += [task["id"] for task in body["tasks"]]
        cursor = body["nextCursor"]
        if cursor is None:
            break
        await submit(store)  # newer than all that is still to come
    assert seen == ids[::-1]


async def test_by_when_they_ended(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    early, late = [await in_phase(store, phase) for phase in (Phase.FAILED, Phase.CANCELLED)]
    store.clock_offset += 3600
    last = await in_phase(store, Phase.COMPLETED)
    await in_phase(store, Phase.WAITING)

    async def found(query: dict[str, Any]) -> set[str]:
        return {task["id"] for task in (await api.get("/api/tasks", params=query)).json()["tasks"]}

    assert late.completed_at is not None
    hour_later = (late.completed_at + timedelta(minutes=30)).isoformat()
    assert await found({"endedAfter": hour_later}) == {str(last.id)}
    assert await found({"endedBefore": hour_later}) == {str(early.id), str(late.id)}
    assert await found({"endedBefore": hour_later, "status": "failed"}) == {str(early.id)}
    for given, number in (({"endedBefore": hour_later}, 2), ({"endedAfter": hour_later}, 1)):
        body = {"filter": given, "dryRun": True}
        assert (await api.post("/api/tasks/bulk/delete", json=body)).json()["matched"] == number
    deleted = await api.post("/api/tasks/bulk/delete", json={"filter": {"endedBefore": hour_later}})
    assert deleted.json()["done"] == 2
    assert await found({}) >= {str(last.id)}
    assert await store.get([early.id, late.id]) == [None, None]


async def test_pages_in_the_order_of_ends(api: httpx.AsyncClient, engine: Engine):
    """By a cursor that holds although its task is retried."""
    store = await engine.store()
    waiting = [await submit(store, "late") for _ in range(2)]
    failures = [await in_phase(store, Phase.FAILED) for _ in range(3)]
    await in_phase(store, Phase.WAITING)
    for task_id in waiting:
        store.clock_offset += 1
        await engine.cancel(task_id)
    expected = [*map(str, reversed(waiting)), *(str(task.id) for task in reversed(failures))]
    query: dict[str, Any] = {"status": ["failed", "cancelled"], "sort": "ended", "limit": 3}
    first = (await api.get("/api/tasks", params=query)).json()
    assert [task["id"] for task in first["tasks"]] == expected[:3]
    assert (first["total"], first["totalCapped"]) == (5, False)
    await engine.retry(uuid.UUID(expected[2]))
    second = (await api.get("/api/tasks", params={**query, "cursor": first["nextCursor"]})).json()
    assert [task["id"] for task in second["tasks"]] == expected[3:]
    assert second["nextCursor"] is None
    skipped = (await api.get("/api/tasks", params={**query, "offset": 1})).json()
    assert [task["id"] for task in skipped["tasks"]] == [expected[1], *expected[3:]][:3]


@pytest.mark.parametrize("statuses", [[], ["completed"], ["failed", "completed"], ["pending"]], ids=str)
async def test_the_order_of_ends_is_refused_where_it_would_be_slow(api: httpx.AsyncClient, statuses: list[str]):
    answer = await api.get("/api/tasks", params={"sort": "ended", "status": statuses})
    assert "failed or cancelled" in refused(answer, 400, "invalid_option", "sort")["detail"]


async def test_a_cursor_belongs_to_its_order(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for _ in range(2):
        await in_phase(store, Phase.FAILED)
    query = {"status": "failed", "limit": "1"}
    for one, other in (({}, {"sort": "ended"}), ({"sort": "ended"}, {"sort": "created"})):
        cursor = (await api.get("/api/tasks", params={**query, **one})).json()["nextCursor"]
        answer = await api.get("/api/tasks", params={**query, **other, "cursor": cursor})
        refused(answer, 400, "invalid_input", "cursor")


async def test_stats(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for phase in Phase:
        await in_phase(store, phase, f"type-{phase.name.lower()}")
    body = (await api.get("/api/tasks/stats")).json()
    totals = {name: body[name] for name in ("pending", "processing", "completed", "failed", "cancelled", "waiting")}
    assert totals == {"pending": 1, "processing": 1, "completed": 1, "failed": 2, "cancelled": 1, "waiting": 1}
    assert body["byType"]["type-waiting"]["failed"] == 1
    assert body["byType"]["type-pending"]["handled"] is False


async def test_clean_up(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for phase in (Phase.COMPLETED, Phase.FAILED, Phase.PENDING):
        await in_phase(store, phase)
    now = await store.now()
    past = (now - timedelta(hours=1)).isoformat()
    future = (now + timedelta(hours=1)).isoformat()
    assert (await api.delete("/api/tasks", params={"olderThan": past})).json()["deleted"] == 0
    answer = (await api.delete("/api/tasks", params={"olderThan": future})).json()
    assert answer.pop("bulkId") is not None
    assert answer == {
        "deleted": 1,
        "matched": 1,
        "more": False,
        "dryRun": False,
    }
    answer = await api.delete("/api/tasks", params={"olderThan": future, "status": ["failed", "cancelled"]})
    assert answer.json()["deleted"] == 1
    assert (await api.get("/api/tasks")).json()["total"] == 1


OLD = """
    INSERT INTO tasks (id, name, state, scheduled_at, started_at, completed_at, created_at, updated_at, kwargs)
    SELECT {id}, 'old', 'completed', {at}, {at}, {at}, {at}, {at}, '{{}}' FROM {numbers}
"""


def hundred_thousand_old_tasks(url: str) -> None:
    if url.startswith("sqlite"):
        numbers = "(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100000) SELECT i FROM s)"
        new_id = "printf('01900000-0000-7000-8000-%012x', i)"
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(OLD.format(id=new_id, at="'2020-01-01T00:00:00.000Z'", numbers=numbers))
        connection.close()
    else:
        dsn, _, schema = url.partition("?schema=")
        with psycopg.connect(dsn, autocommit=True, options=f"-csearch_path={schema}") as session:
            new_id = "('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid"
            at = "timestamptz '2020-01-01T00:00:00Z'"
            session.execute(OLD.format(id=new_id, at=at, numbers="generate_series(1, 100000) i").encode())


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_clean_up_of_very_many(backend: str, request: pytest.FixtureRequest):
    """In batches, with other work going on in between."""
    url: str = request.getfixturevalue(f"{backend}_url")
    engine = Engine(Config(database_url=url))
    store = await engine.store()
    hundred_thousand_old_tasks(url)
    async with client_of(make_app(engine)) as client:
        cleaning = asyncio.create_task(client.delete("/api/tasks?olderThan=2025-01-01T00:00:00Z", timeout=60))
        worked = 0
        while not cleaning.done():
            await submit(store, "new")
            await apply(store, completed(await claim_one(store, "new")))
            worked += 1
        answer = (await cleaning).json()
        deleted: int = answer["deleted"]
        while answer["more"]:  # a slow machine takes several requests
            answer = (await client.delete("/api/tasks?olderThan=2025-01-01T00:00:00Z")).json()
            deleted += answer["deleted"]
        assert deleted == 100_000
        assert (await client.get("/api/tasks")).json()["total"] == worked
        assert worked > 5
    await engine.close()


async def test_a_long_action_says_that_there_is_more(
    quick: httpx.AsyncClient, memory_engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    for module in (tasks, bulk):
        monkeypatch.setattr(module, "WORK_SECONDS", 0.0)
    monkeypatch.setattr(tasks, "CLEANUP_BATCH", 2)
    monkeypatch.setattr("tasklib.engine.bulk.BATCH", 2)
    store = await memory_engine.store()
    await submit_several(store, 3)
    body: dict[str, Any] = {"filter": {}}
    assert (await quick.post("/api/tasks/bulk/cancel", json=body)).json()["more"] is True
    assert (await quick.post("/api/tasks/bulk/cancel", json=body)).json()["done"] == 1
    query = "olderThan=2999-01-01T00:00:00Z&status=cancelled"
    answers = [(await quick.delete(f"/api/tasks?{query}")).json() for _ in range(3)]
    assert [(answer["deleted"], answer["more"]) for answer in answers] == [(2, True), (1, True), (0, False)]


@pytest.mark.parametrize(
    "query", ["", "olderThan=", "olderThan=yesterday", "olderThan=2025-01-15T10:00:00", "olderThan=5"]
)
async def test_clean_up_needs_an_instant(quick: httpx.AsyncClient, query: str):
    refused(await quick.delete(f"/api/tasks?{query}"), 400, "invalid_input", "olderThan")


def test_no_request_is_handed_to_a_thread():
    """What is no coroutine, the framework calls in one: handlers, and what they depend on."""
    routes = [route for part in ROUTERS for route in part.router.routes if isinstance(route, APIRoute)]
    calls = [each.call for route in routes for each in (route.dependant, *route.dependant.dependencies)]
    assert len(calls) > len(routes) > 20
    assert [call for call in calls if not inspect.iscoroutinefunction(call)] == []
