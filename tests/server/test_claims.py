"""/api/claims: workers in any language, under their own names, against whatever else happens to their tasks."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tasklib.engine.engine import Engine
from tasklib.server.tokens import Role
from tasklib.stores.values import ControlChange
from tests.server.conftest import client_of, make_app, refused, token_for
from tests.server.serving import serving
from tests.waiting import eventually_async

WORKER = {"workerId": "worker-a"}


async def submit(api: httpx.AsyncClient, payload: Any = 1, kind: str = "default", **options: Any) -> str:
    answer = await api.post("/api/tasks", json={"type": kind, "payload": payload, "options": options})
    assert answer.status_code == 201, answer.text
    task_id: str = answer.json()["id"]
    return task_id


async def post(api: httpx.AsyncClient, path: str, **body: Any) -> Any:
    answer = await api.post(f"/api/claims{path}", json={**WORKER, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def claim_next(api: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    claims: list[dict[str, Any]] = (await post(api, "", **body))["claims"]
    return claims


async def look(api: httpx.AsyncClient, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(f"/api/tasks/{task_id}")).json()
    return found


async def test_claim_and_complete(api: httpx.AsyncClient):
    task_id = await submit(api, {"to": "ada"}, tags={"a": 1}, timeoutSeconds=9, idempotencyKey="k", maxAttempts=5)
    (claim,) = await claim_next(api, leaseSeconds=30)
    assert (claim["id"], claim["type"], claim["payload"], claim["tags"]) == (
        task_id,
        "default",
        {"to": "ada"},
        {"a": 1},
    )
    assert (claim["workerId"], claim["attempts"], claim["maxAttempts"]) == ("worker-a", 1, 5)
    assert (claim["timeoutSeconds"], claim["idempotencyKey"], claim["cancelRequested"]) == (9, "k", False)
    task = await look(api, task_id)
    assert (task["status"], task["workerId"], task["version"]) == ("processing", "worker-a", claim["version"])
    assert (task["lockedUntil"], task["lastAttemptAt"]) == (claim["lockedUntil"], claim["claimedAt"])
    done = await post(api, f"/{task_id}/complete", version=claim["version"], result={"sent": True})
    assert done == {"id": task_id, "status": "completed", "attempts": 1, "willRetry": False}
    task = await look(api, task_id)
    assert (task["status"], task["result"], task["attempts"]) == ("completed", {"sent": True}, 1)


async def test_the_next_ones_are_of_the_asked_types_and_in_order(api: httpx.AsyncClient):
    low, high, other = await submit(api, priority=-1), await submit(api, priority=7), await submit(api, kind="mail")
    plain = await submit(api)
    assert [claim["id"] for claim in await claim_next(api, limit=100)] == [high, plain, low]
    assert await claim_next(api) == []
    assert [claim["id"] for claim in await claim_next(api, types=["nothing", "mail"])] == [other]


async def test_payloads_are_whole_for_those_who_work(api: httpx.AsyncClient, engine: Engine):
    """And for nobody else."""
    secret = {"password": "hunter2", "url": "https://ann:pass@example.com/", "token": "t"}
    task_id = await submit(api, secret, tags={"api_key": "k"})
    assert (await look(api, task_id))["payload"]["password"] == "***"
    async with client_of(make_app(engine), await token_for(engine, Role.WORKER)) as worker:
        (claim,) = await claim_next(worker)
        assert (claim["payload"], claim["tags"]) == (secret, {"api_key": "k"})
        assert (await post(worker, f"/{task_id}"))["payload"] == secret
        assert (await post(worker, f"/{task_id}/extend"))["payload"] == secret
        assert (await look(worker, task_id))["payload"]["password"] == "***"
        await post(worker, f"/{task_id}/complete")
    for role in (Role.READ_ONLY, Role.OPERATOR):
        async with client_of(make_app(engine), await token_for(engine, role)) as client:
            for path in ("", *(f"/{task_id}{verb}" for verb in ("", "/complete", "/fail", "/extend", "/release"))):
                refused(await client.post(f"/api/claims{path}", json=WORKER), 403, "forbidden")


async def test_failures_and_retries(api: httpx.AsyncClient, engine: Engine):
    task_id = await submit(api, maxAttempts=3)
    await post(api, f"/{task_id}")
    failed = await post(api, f"/{task_id}/fail", error="no luck")
    assert failed == {"id": task_id, "status": "failed", "attempts": 1, "willRetry": True}
    task = await look(api, task_id)
    assert (task["error"], task["nextRetryAt"] is None) == ("no luck", False)
    problem = refused(await api.post(f"/api/claims/{task_id}", json=WORKER), 409, "task_not_due")
    assert problem["currentStatus"] == "failed"
    engine.advance(60)
    (claim,) = await claim_next(api)
    assert (claim["attempts"], claim["error"]) == (2, "no luck")
    failed = await post(api, f"/{task_id}/fail", error="broken", retryable=False)
    assert failed == {"id": task_id, "status": "failed", "attempts": 2, "willRetry": False}
    problem = refused(await api.post(f"/api/claims/{task_id}", json=WORKER), 409, "task_failed")
    assert (problem["currentStatus"], "workerId" in problem) == ("failed", False)


async def test_a_release_counts_no_attempt(api: httpx.AsyncClient):
    task_id = await submit(api, maxAttempts=1)
    await post(api, f"/{task_id}")
    released = await post(api, f"/{task_id}/release")
    assert released == {"id": task_id, "status": "pending", "attempts": 0, "willRetry": True}
    assert (await claim_next(api, workerId="worker-b"))[0]["attempts"] == 1


async def test_claiming_again_is_the_same_claim(api: httpx.AsyncClient, engine: Engine):
    task_id = await submit(api)
    first = await post(api, f"/{task_id}", leaseSeconds=60)
    engine.advance(30)
    again = await post(api, f"/{task_id}", leaseSeconds=60)
    assert (again["version"], again["attempts"]) == (first["version"], 1)
    assert again["lockedUntil"] > first["lockedUntil"]


async def test_extending_keeps_the_claim_and_tells_of_a_cancel(api: httpx.AsyncClient, engine: Engine):
    task_id = await submit(api)
    claim = await post(api, f"/{task_id}", leaseSeconds=60)
    engine.advance(50)
    extended = await post(api, f"/{task_id}/extend", version=claim["version"], leaseSeconds=60)
    assert (extended["version"], extended["cancelRequested"]) == (claim["version"], False)
    engine.advance(50)
    answer = await api.post(f"/api/claims/{task_id}", json={"workerId": "worker-b"})
    problem = refused(answer, 409, "task_already_claimed")
    assert (problem["currentStatus"], problem["version"], problem["workerId"]) == (
        "processing",
        claim["version"],
        "worker-a",
    )
    await api.post(f"/api/tasks/{task_id}/cancel")
    assert (await post(api, f"/{task_id}/extend"))["cancelRequested"] is True
    stopped = await post(api, f"/{task_id}/fail", error="stopped")
    assert stopped == {"id": task_id, "status": "cancelled", "attempts": 1, "willRetry": False}


VERBS = {"complete": {}, "fail": {"error": "no luck"}, "extend": {}, "release": {}}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_claim_that_is_no_longer_ones_own(api: httpx.AsyncClient, engine: Engine, verb: str):
    """409, with how the task stands now; and nothing has changed."""
    path, body = f"/api/claims/{{}}/{verb}", {**WORKER, **VERBS[verb]}
    task_id = await submit(api)
    path = path.format(task_id)
    problem = refused(await api.post(path, json=body), 409, "task_not_claimed")
    assert (problem["currentStatus"], problem["version"]) == ("pending", 0)

    old = await post(api, f"/{task_id}", leaseSeconds=60)
    for given in ({"workerId": "worker-b"}, {"workerId": "worker-b", "version": old["version"]}):
        problem = refused(await api.post(path, json={**body, **given}), 409, "wrong_worker")
        assert (problem["currentStatus"], problem["version"], problem["workerId"]) == ("processing", 1, "worker-a")

    engine.advance(61)
    (new,) = await claim_next(api, workerId="worker-b", leaseSeconds=60)
    assert (new["id"], new["attempts"]) == (task_id, 2)
    assert "worker-a vanished" in new["error"]
    before = await look(api, task_id)
    for given in ({}, {"version": old["version"]}, {"workerId": "worker-b", "version": old["version"]}):
        problem = refused(await api.post(path, json={**body, **given}), 409, "wrong_worker")
        now = {"currentStatus": "processing", "version": new["version"], "workerId": "worker-b"}
        assert {key: problem[key] for key in now} == now
    assert await look(api, task_id) == before

    await post(api, f"/{task_id}/complete", workerId="worker-b", version=new["version"])
    problem = refused(await api.post(path, json=body), 409, "task_completed")
    assert (problem["currentStatus"], problem["version"]) == ("completed", new["version"] + 1)
    refused(await api.post(f"/api/claims/{uuid4()}/{verb}", json=body), 404, "task_not_found")


async def test_pause_and_limits_hold(api: httpx.AsyncClient, engine: Engine):
    task_id = await submit(api)
    await engine.control(ControlChange(paused=True))
    assert await claim_next(api) == []
    refused(await api.post(f"/api/claims/{task_id}", json=WORKER), 409, "task_not_due")
    await engine.control(ControlChange(paused=False))
    assert len(await claim_next(api)) == 1


async def test_bytes_go_in_their_json_form(api: httpx.AsyncClient):
    task_id = await submit(api, {"$bytes": "aGVsbG8="})
    (claim,) = await claim_next(api)
    assert claim["payload"] == {"$bytes": "aGVsbG8="}
    await post(api, f"/{task_id}/complete", result=claim["payload"])
    assert (await look(api, task_id))["result"] == {"$bytes": "aGVsbG8="}


async def test_a_claim_can_wait(api: httpx.AsyncClient):
    waiting = asyncio.create_task(claim_next(api, waitSeconds=25))
    task_id = await submit(api)
    async with asyncio.timeout(20):
        (claim,) = await waiting
    assert claim["id"] == task_id
    assert await claim_next(api, waitSeconds=0.05) == []


async def test_who_stopped_waiting_gets_nothing(tmp_path, sqlite_url: str):
    """A task that comes after the client has gone is for others, and no attempt of it is used up."""
    token = "a-token-for-this-test"
    env = {"TASKLIB_DATABASE_URL": sqlite_url, "TASKLIB_TOKEN": token}
    headers = {"Authorization": f"Bearer {token}"}
    with serving(tmp_path, env=env) as server:
        async with httpx.AsyncClient(base_url=server.url, headers=headers) as api:
            with pytest.raises(httpx.ReadTimeout):
                await api.post("/api/claims", json={**WORKER, "waitSeconds": 20}, timeout=0.5)
            task_id = await submit(api)

            async def another_gets_it() -> bool:
                claims = await claim_next(api, workerId="worker-b")
                # Version 1: nobody has claimed it before, not even for a moment.
                return [(claim["id"], claim["attempts"], claim["version"]) for claim in claims] == [(task_id, 1, 1)]

            await eventually_async(another_gets_it)


async def test_who_left_while_it_was_claimed_leaves_it_to_others(
    quick: httpx.AsyncClient, memory_engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """The client goes between the claim and the answer."""
    task_id = await submit(quick)

    async def gone(request: object) -> bool:
        return True

    with monkeypatch.context() as patched:
        patched.setattr("fastapi.Request.is_disconnected", gone)
        await post(quick, "", waitSeconds=5)
    (claim,) = await claim_next(quick, workerId="worker-b")
    assert (claim["id"], claim["attempts"], claim["version"]) == (task_id, 1, 3)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("", {}, "workerId"),
        ("", {"workerId": ""}, "workerId"),
        ("", {"workerId": 7}, "workerId"),
        ("", {"workerId": "x" * 256}, "workerId"),
        ("", {"workerId": "nul\0"}, "workerId"),
        ("", {**WORKER, "types": []}, "types"),
        ("", {**WORKER, "types": "default"}, "types"),
        ("", {**WORKER, "types": [""]}, "types.0"),
        ("", {**WORKER, "limit": 0}, "limit"),
        ("", {**WORKER, "limit": 101}, "limit"),
        ("", {**WORKER, "limit": True}, "limit"),
        ("", {**WORKER, "leaseSeconds": 0}, "leaseSeconds"),
        ("", {**WORKER, "leaseSeconds": "60"}, "leaseSeconds"),
        ("", {**WORKER, "waitSeconds": 26}, "waitSeconds"),
        ("", {**WORKER, "worker_id": "w"}, "worker_id"),
        ("/{id}", {**WORKER, "limit": 1}, "limit"),
        ("/{id}/complete", {}, "workerId"),
        ("/{id}/complete", {**WORKER, "version": -1}, "version"),
        ("/{id}/complete", {**WORKER, "version": "1"}, "version"),
        ("/{id}/complete", {**WORKER, "result": "nul\0"}, "result"),
        ("/{id}/fail", WORKER, "error"),
        ("/{id}/fail", {**WORKER, "error": {"a": 1}}, "error"),
        ("/{id}/fail", {**WORKER, "error": "x", "retryable": "no"}, "retryable"),
        ("/nothing", WORKER, "task_id"),
    ],
    ids=str,
)
async def test_bad_input_is_refused(quick: httpx.AsyncClient, path: str, body: dict[str, Any], field: str):
    task_id = await submit(quick)
    await post(quick, f"/{task_id}")
    before = await look(quick, task_id)
    answer = await quick.post("/api/claims" + path.replace("{id}", task_id), json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["field"] == field
    assert await look(quick, task_id) == before


async def test_an_error_of_any_length_and_kind_is_kept(quick: httpx.AsyncClient):
    task_id = await submit(quick)
    await post(quick, f"/{task_id}")
    await post(quick, f"/{task_id}/fail", error="nul\0 " + "x" * 20_000)
    error = (await look(quick, task_id))["error"]
    assert error.startswith("nul\\x00")
    assert len(error) <= 16 * 1024
