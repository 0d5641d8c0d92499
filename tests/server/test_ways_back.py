"""Run now, revive, run again, drain: an operator's ways back, and who asked for them."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tasklib.core.lifecycle import Phase
from tasklib.core.published import PublishedType
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.server.tokens import Role
from tasklib.stores.protocol import Store
from tasklib.stores.values import AuditFilter, Filter, Page
from tests.conformance.builders import claim_one, completed, fetch, heartbeat_of, in_phase, new_task, submit
from tests.server.conftest import BROWSER, TOKEN, client_of, make_app, refused, token_for


@pytest.fixture
async def store(engine: Engine) -> Store:
    return await engine.store()


@pytest.fixture
async def ann(engine: Engine, registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """An operator, on each store."""
    token = await token_for(engine, Role.OPERATOR, "ann")
    async with client_of(make_app(engine, registry), token) as client:
        yield client


async def done_by(store: Store, task_id: uuid.UUID) -> list[tuple[str, str]]:
    return [(entry.actor, entry.action) for entry in await store.list_audit(AuditFilter(task_id=task_id))]


async def test_run_now_and_revive(ann: httpx.AsyncClient, store: Store):
    later = await submit(store, "work", delay_seconds=3600)
    first, again = [(await ann.post(f"/api/tasks/{later}/run-now")).json() for _ in range(2)]
    assert (first["status"], first["version"]) == ("pending", again["version"])
    assert await done_by(store, later) == [("ann", "run-now")], "what is due stays as it is"
    assert (await claim_one(store, "work")).id == later
    refused(await ann.post(f"/api/tasks/{later}/run-now"), 409, "task_conflict")

    cancelled = await in_phase(store, Phase.CANCELLED)
    revived = await asyncio.gather(*(ann.post(f"/api/tasks/{cancelled.id}/revive") for _ in range(3)))
    assert {answer.status_code for answer in revived} <= {200, 409}
    assert (await fetch(store, cancelled.id)).state == "pending"
    assert await done_by(store, cancelled.id) == [("ann", "revive")]
    problem = refused(await ann.post(f"/api/tasks/{cancelled.id}/revive"), 409, "task_conflict")
    assert problem["currentStatus"] == "pending"
    refused(await ann.post(f"/api/tasks/{uuid.uuid4()}/revive"), 404, "task_not_found")


async def test_all_that_wait_and_match_run_now(ann: httpx.AsyncClient, store: Store):
    """What is due, runs or is over is neither counted nor touched; the cancel of a running task is asked by nobody."""
    later = [await submit(store, "work", delay_seconds=3600, tags={"n": 1}) for _ in range(2)]
    retried = await in_phase(store, Phase.WAITING, "retried")
    other = await submit(store, "other", delay_seconds=3600)
    left = [await in_phase(store, phase, f"{phase}") for phase in (Phase.PENDING, Phase.RUNNING, Phase.COMPLETED)]

    async def sent(where: dict[str, Any], **more: Any) -> dict[str, Any]:
        return dict((await ann.post("/api/tasks/bulk/run-now", json={"filter": where, **more})).json())

    assert (await sent({}, dryRun=True))["matched"] == 4
    assert (await sent({"status": ["completed", "processing"]}))["done"] == 0
    assert (await sent({"type": ["work", "retried"], "tags": {"n": 1}}, dryRun=True))["matched"] == 2
    assert (await sent({"type": ["work", "retried"]}))["done"] == 3
    assert (await sent({"type": ["work", "retried"]}))["done"] == 0, "they are due"
    assert {(await claim_one(store, "work")).id for _ in later} == set(later)
    assert (await claim_one(store, "retried")).attempt == 2
    assert await done_by(store, retried.id) == [("ann", "run-now")]
    assert (await fetch(store, other)).due_at > await store.now() + timedelta(minutes=50)
    assert [await fetch(store, task.id) for task in left] == left
    [line] = (await ann.get("/api/audit?folded=true")).json()["entries"]
    assert (line["action"], line["done"]) == ("bulk-run-now", 3)


async def test_what_has_fallen_due_meanwhile_is_not_asked_to_stop(
    ann: httpx.AsyncClient, store: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    task_id = await submit(store, "work", delay_seconds=60)
    page = engine.page

    async def and_then_it_runs(where: Filter, **how: Any) -> Page:
        found = await page(where, **how)
        store.clock_offset += 61
        await claim_one(store, "work")
        return found

    monkeypatch.setattr(engine, "page", and_then_it_runs)
    answer = await ann.post("/api/tasks/bulk/run-now", json={"filter": {"type": ["work"]}})
    assert (answer.json()["done"], (await fetch(store, task_id)).cancel_requested_at) == (0, None)


async def test_many_are_revived_in_one_action_that_their_trail_leads_to(
    ann: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tasklib.engine.bulk.BATCH", 2)
    monkeypatch.setattr("tasklib.server.bulk.WORK_SECONDS", 0.0)
    tasks = [await in_phase(store, Phase.CANCELLED, "work") for _ in range(5)]
    kept = await in_phase(store, Phase.COMPLETED, "work")
    body: dict[str, Any] = {"filter": {"type": ["work"]}}
    assert (await ann.post("/api/tasks/bulk/revive", json={**body, "dryRun": True})).json()["matched"] == 5
    done, requests = 0, 0
    while True:
        answer = (await ann.post("/api/tasks/bulk/revive", json=body)).json()
        done, requests = done + answer["done"], requests + 1
        if answer["nextCursor"] is None:
            break
        body |= {"cursor": answer["nextCursor"], "bulkId": answer["bulkId"]}
    assert (done, requests) == (5, 3)
    assert {(await fetch(store, task.id)).state for task in tasks} == {"pending"}
    assert (await fetch(store, kept.id)).state == "completed"
    [line] = (await ann.get("/api/audit?folded=true")).json()["entries"]
    assert (line["actor"], line["action"], line["type"], line["done"]) == ("ann", "bulk-revive", "work", 5)
    assert line["detail"]["filter"] == {"type": ["work"]}
    [own] = (await ann.get(f"/api/audit?taskId={tasks[3].id}")).json()["entries"]
    assert (own["action"], own["bulkId"]) == ("revive", line["bulkId"])
    found = (await ann.get(f"/api/audit?folded=true&bulkId={own['bulkId']}")).json()["entries"]
    assert [(each["action"], each["done"]) for each in found] == [("bulk-revive", 5)]
    stranger = {"filter": {}, "bulkId": own["bulkId"]}
    refused(await ann.post("/api/tasks/bulk/delete", json=stranger), 400, "invalid_input", "bulkId")


async def test_a_clean_up_in_parts_is_one_action(ann: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasklib.server.tasks.WORK_SECONDS", 0.0)
    monkeypatch.setattr("tasklib.server.tasks.CLEANUP_BATCH", 2)
    for _ in range(3):
        await in_phase(store, Phase.COMPLETED, "work")
    path, more = "/api/tasks?olderThan=2999-01-01T00:00:00Z", True
    bulk_id = ""
    while more:
        answer = (await ann.delete(path + bulk_id)).json()
        more, bulk_id = answer["more"], f"&bulkId={answer['bulkId']}"
    [line] = (await ann.get("/api/audit?folded=true")).json()["entries"]
    assert (line["action"], line["done"]) == ("cleanup", 3)


async def test_a_finished_task_is_run_again_under_a_new_id(ann: httpx.AsyncClient, engine: Engine, store: Store):
    made = new_task(
        "pay",
        {"to": "ada", "card": {"number": 4711}, "order": 2**64 + 1},
        max_retries=5,
        priority=7,
        tags={"team": "red"},
        timeout_seconds=9,
        key="once",
    )
    await store.insert([made])
    refused(await ann.post(f"/api/tasks/{made.id}/copy", json={}), 400, "task_not_terminal")
    await store.settle([completed(await claim_one(store, "pay"))])
    answer = await ann.post(f"/api/tasks/{made.id}/copy", json={})
    assert answer.status_code == 201, answer.text
    same = await fetch(store, uuid.UUID(answer.json()["id"]))
    first = await fetch(store, made.id)
    assert answer.headers["location"] == f"/api/tasks/{same.id}"
    assert (same.copy_of, same.state, same.kwargs, same.idempotency_key) == (made.id, "pending", first.kwargs, None)
    for name in ("name", "max_retries", "priority", "tags", "timeout_seconds"):
        assert getattr(same, name) == getattr(first, name), name
    shown = (await ann.get(f"/api/tasks/{made.id}")).json()
    assert shown["payload"]["card"] == "***"
    edited = await ann.post(f"/api/tasks/{made.id}/copy", json={"payload": {**shown["payload"], "to": "bob"}})
    other = await fetch(store, uuid.UUID(edited.json()["id"]))
    assert other.kwargs == {**first.kwargs, "to": "bob"}, "what was masked is taken from the task"
    refused(
        await ann.post(f"/api/tasks/{made.id}/copy", json={"payload": {"other": "***"}}),
        400,
        "invalid_input",
        "payload",
    )
    entries = (await ann.get(f"/api/audit?taskId={made.id}")).json()["entries"]
    assert [(entry["actor"], entry["action"], entry["detail"]) for entry in entries] == [
        ("ann", "copy", {"copy": str(other.id), "edited": True}),
        ("ann", "copy", {"copy": str(same.id), "edited": False}),
    ], "the way from the first to its copies"


async def test_a_copy_is_checked_like_every_submit(ann: httpx.AsyncClient, store: Store):
    task = await in_phase(store, Phase.COMPLETED, "send_email")
    refused(await ann.post(f"/api/tasks/{task.id}/copy", json={}), 400, "invalid_arguments", "payload.to")
    good = await ann.post(f"/api/tasks/{task.id}/copy", json={"payload": {"to": "ada", "times": 2}})
    assert (good.status_code, good.json()["payload"]) == (201, {"to": "ada", "times": 2})


async def test_what_a_person_submits_in_a_browser_is_in_the_trail(engine: Engine, registry: Registry):
    async with client_of(make_app(engine, registry), None) as browser:
        browser.headers.update(BROWSER)
        assert (await browser.post("/api/login", json={"token": TOKEN})).status_code == 200
        answer = await browser.post("/api/tasks", json={"type": "send_email", "payload": {"to": "ada"}})
        assert answer.status_code == 201
        browser.headers["Authorization"] = f"Bearer {TOKEN}"
        assert (await browser.post("/api/tasks", json={"type": "any", "payload": {}})).status_code == 201
        entries = (await browser.get("/api/audit")).json()["entries"]
    told = [(entry["action"], entry["type"], entry["taskId"]) for entry in entries]
    assert told == [("submit", "send_email", answer.json()["id"])], "what programs submit is not"


async def test_a_type_tells_what_it_takes(api: httpx.AsyncClient, engine: Engine):
    own = (await api.get("/api/types/send_email")).json()
    assert set(own["argumentSchema"]["properties"]) == {"to", "times"}
    store = await engine.store()
    await store.heartbeat(heartbeat_of("w", names=["told", "untold"]))
    await store.publish([PublishedType("told", "{}", '{"type": "object", "properties": {"n": {"type": "integer"}}}')])
    assert (await api.get("/api/types/told")).json()["argumentSchema"]["properties"] == {"n": {"type": "integer"}}
    assert (await api.get("/api/types/untold")).json()["argumentSchema"] is None


async def test_who_paused_it(ann: httpx.AsyncClient, api: httpx.AsyncClient):
    await ann.put("/api/types/send_email", json={"paused": True})
    await ann.post("/api/tasks/pause")
    await api.post("/api/tasks/pause")  # it is paused: nobody else paused it
    controls = (await api.get("/api/controls")).json()
    assert (controls["pausedBy"], controls["types"]["send_email"]["pausedBy"]) == ("ann", "ann")
    assert controls["pausedAt"] is not None
    await api.post("/api/tasks/resume")
    assert (await api.get("/api/controls")).json()["pausedBy"] is None


async def test_a_worker_and_its_drain(ann: httpx.AsyncClient, store: Store):
    name = "web/1 ✓"
    for number, worker in enumerate((f"{name}-aaaa", f"{name}-bbbb", "other-1-cccc")):
        store.clock_offset = number - 10.0
        await store.heartbeat(heartbeat_of(worker))
        if number == 0:
            await store.deregister_worker(worker)
    store.clock_offset = 0.0
    shown = (await ann.get(f"/api/workers/{name}-bbbb")).json()
    assert [each["id"] for each in shown["earlier"]] == [f"{name}-aaaa"], "its restarts"
    assert (shown["state"], shown["version"], shown["drainRequestedAt"]) == ("live", None, None)
    drained = [(await ann.post(f"/api/workers/{name}-bbbb/drain")).json() for _ in range(2)]
    assert {each["drainRequestedBy"] for each in drained} == {"ann"}
    assert drained[0]["drainRequestedAt"] == drained[1]["drainRequestedAt"] is not None
    [entry] = (await ann.get("/api/audit")).json()["entries"]
    assert (entry["actor"], entry["action"], entry["detail"]) == ("ann", "drain", {"worker": f"{name}-bbbb"})
    refused(await ann.post(f"/api/workers/{name}-aaaa/drain"), 409, "worker_stopped")
    refused(await ann.post("/api/workers/nobody/drain"), 404, "worker_not_found")
    refused(await ann.get("/api/workers/nobody"), 404, "worker_not_found")
