"""/api/flows: made, seen, carried out, cancelled, retried, and what is refused; what a task's JSON says of it."""

import sqlite3
from contextlib import closing
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.server.tokens import Role
from tasklib.stores.sql import links
from tests.server.conftest import client_of, make_app, refused, token_for

UNKNOWN = str(uuid4())
EDITS = (
    "UPDATE tasks SET waits = -3 WHERE name = 'clean'",
    f"""UPDATE tasks SET after = '{{"parents": ["{UNKNOWN}", "x", 7], "inputs": [1], "delay": "soon"}}'
        WHERE name = 'merge'""",
    "UPDATE tasks SET after = '[1]' WHERE name = 'tell'",
)
FLOW: dict[str, Any] = {
    "name": "import 42",
    "tasks": [
        # In any order: what is waited for may come later.
        {"ref": "tell", "type": "tell", "payload": {}, "after": ["total"], "on": "end"},
        {"ref": "total", "type": "merge", "payload": {}, "inputs": {"/parts/0": "part 0", "/parts/1": "part 1"}},
        {"ref": "part 0", "type": "clean", "payload": {"n": 0}, "inputs": {"/raw": "raw"}},
        {"ref": "part 1", "type": "clean", "payload": {"n": 1}, "inputs": {"/raw": "raw"}},
        {"ref": "raw", "type": "extract", "payload": {"url": "s3://42", "password": "hunter2"}},
    ],
}
FLOW["tasks"][1]["payload"] = {"parts": [None, None]}


@pytest.fixture
def backend_url(shared_url: str) -> str:
    return shared_url


async def make(api: httpx.AsyncClient, **change: Any) -> tuple[str, dict[str, str]]:
    answer = await api.post("/api/flows", json={**FLOW, **change})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/flows/{answer.json()['id']}"
    return answer.json()["id"], answer.json()["tasks"]


async def look(api: httpx.AsyncClient, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(f"/api/tasks/{task_id}")).json()
    return found


async def claim(api: httpx.AsyncClient, *types: str) -> list[dict[str, Any]]:
    answer = await api.post("/api/claims", json={"workerId": "w", "types": types, "limit": 10})
    claims: list[dict[str, Any]] = answer.json()["claims"]
    return claims


async def end(api: httpx.AsyncClient, claimed: dict[str, Any], how: str, **body: Any) -> None:
    held = {"workerId": "w", "version": claimed["version"], **body}
    assert (await api.post(f"/api/claims/{claimed['id']}/{how}", json=held)).status_code == 200


async def test_a_flow_from_its_making_to_its_end(api: httpx.AsyncClient):
    flow_id, ids = await make(api)
    assert set(ids) == {"raw", "part 0", "part 1", "total", "tell"}
    total = await look(api, ids["total"])
    assert (total["status"], total["waits"], total["runAfter"], total["flowId"]) == ("pending", 2, None, flow_id)
    assert total["after"] == {
        "on": "success",
        "parents": [ids["part 0"], ids["part 1"]],
        "inputs": {"/parts/0": ids["part 0"], "/parts/1": ids["part 1"]},
        "delay": None,
        "runAt": None,
        "cutBy": None,
    }
    assert total["waitingFor"][0] == {"cause": "tasks", "text": "It waits for 2 of 2 tasks to complete.", "until": None}
    waiting = [{"id": ids[ref], "type": "clean", "status": "pending"} for ref in ("part 0", "part 1")]
    assert total["parents"] == {"tasks": waiting, "total": 2, "unfinished": 2}
    tell = {"id": ids["tell"], "type": "tell", "status": "pending"}
    assert total["feeds"] == {"tasks": [tell], "total": 1, "unfinished": 1}
    refused(await api.post(f"/api/tasks/{ids['total']}/run-now"), 409, "task_not_due")
    refused(await api.post(f"/api/claims/{ids['total']}", json={"workerId": "w"}), 409, "task_not_due")

    shown = (await api.get(f"/api/flows/{flow_id}")).json()
    assert (shown["name"], shown["status"], shown["total"]) == ("import 42", "running", 5)
    assert {name: count for name, count in shown["counts"].items() if count} == {"pending": 1, "waiting": 4}
    nodes = {node["type"]: node for node in shown["graph"]["nodes"]}
    assert [(node["type"], node["layer"], node["total"]) for node in shown["graph"]["nodes"]] == [
        ("extract", 0, 1),
        ("clean", 1, 2),
        ("merge", 2, 1),
        ("tell", 3, 1),
    ]
    assert nodes["clean"]["parents"] == [nodes["extract"]["key"]]
    assert (nodes["clean"]["taskId"], nodes["merge"]["taskId"]) == (None, ids["total"])
    assert (shown["graph"]["truncated"], nodes["clean"]["counts"]["waiting"]) == (False, 2)
    assert "hunter2" not in (await api.get("/api/tasks", params={"flow": flow_id})).text

    (raw,) = await claim(api, "extract", "clean", "merge", "tell")
    await end(api, raw, "complete", result={"rows": 3})
    parts = await claim(api, "extract", "clean", "merge", "tell")
    assert [part["payload"] for part in parts] == [{"n": n, "raw": {"rows": 3}} for n in (0, 1)]
    await end(api, parts[0], "complete", result="a")
    await end(api, parts[1], "fail", error="boom", retryable=False)
    total = await look(api, ids["total"])
    assert (total["status"], total["after"]["cutBy"]) == ("cancelled", ids["part 1"])
    assert total["error"] == f"DependencyFailed: task {ids['part 1']} (clean) failed"
    (told,) = await claim(api, "merge", "tell")
    await end(api, told, "complete", result=None)
    [failed] = (await api.get("/api/flows")).json()["flows"]
    assert (failed["id"], failed["status"], failed["total"]) == (flow_id, "failed", 5)
    assert {name: count for name, count in failed["counts"].items() if count} == {
        "completed": 3,
        "failed": 1,
        "cancelled": 1,
    }

    dry = (await api.post(f"/api/flows/{flow_id}/retry", json={"dryRun": True})).json()
    assert (dry["matched"], dry["done"], dry["dryRun"]) == (1, 0, True)
    assert (await api.post(f"/api/flows/{flow_id}/retry")).json()["done"] == 1
    assert (await look(api, ids["total"]))["waits"] == 1
    (again,) = await claim(api, "clean")
    await end(api, again, "complete", result="b")
    (merged,) = await claim(api, "merge")
    assert merged["payload"] == {"parts": ["a", "b"]}
    await end(api, merged, "complete", result="ab")
    assert (await api.get(f"/api/flows/{flow_id}")).json()["status"] == "completed"
    trail = (await api.get("/api/audit", params={"folded": True})).json()["entries"]
    assert [(entry["action"], entry["detail"]["filter"]) for entry in trail] == [("bulk-retry", {"flow": flow_id})]


async def test_a_flow_is_cancelled_and_a_key_stands_for_one(api: httpx.AsyncClient):
    flow_id, ids = await make(api, idempotencyKey="import-42", name="import token=hunter2")
    again = await api.post("/api/flows", json={**FLOW, "idempotencyKey": "import-42"})
    assert (again.status_code, again.json()["id"]) == (200, flow_id)
    await api.post("/api/tasks", json={"type": "t", "payload": {}, "options": {"idempotencyKey": "of a task"}})
    refused(
        await api.post("/api/flows", json={**FLOW, "idempotencyKey": "of a task"}),
        400,
        "invalid_option",
        "idempotencyKey",
    )
    other_id, _ = await make(api, name=None)
    first = (await api.get("/api/flows", params={"limit": 1})).json()
    assert [(each["id"], each["name"]) for each in first["flows"]] == [(other_id, None)]
    second = (await api.get("/api/flows", params={"limit": 1, "cursor": first["nextCursor"]})).json()
    assert ([each["id"] for each in second["flows"]], second["nextCursor"]) == ([flow_id], None)

    assert (await api.post(f"/api/flows/{flow_id}/cancel", json={"dryRun": True})).json()["matched"] == 5
    await api.post(f"/api/flows/{flow_id}/cancel")
    shown = (await api.get(f"/api/flows/{flow_id}")).json()
    assert (shown["status"], shown["counts"]["cancelled"]) == ("cancelled", 5)
    assert shown["name"] == "import token=***"
    found = (await api.get("/api/tasks", params={"flow": flow_id, "status": "cancelled", "type": "clean"})).json()
    assert {task["id"] for task in found["tasks"]} == {ids["part 0"], ids["part 1"]}
    assert (await api.get(f"/api/flows/{other_id}")).json()["status"] == "running"


async def test_a_task_waits_for_what_is_there_already(api: httpx.AsyncClient):
    def task(kind: str, **options: Any) -> dict[str, Any]:
        return {"type": kind, "payload": {}, "options": options}

    first = (await api.post("/api/tasks", json=task("first"))).json()["id"]
    second = (await api.post("/api/tasks", json=task("second", after=[first]))).json()["id"]
    assert (await look(api, first))["feeds"]["tasks"] == [{"id": second, "type": "second", "status": "pending"}]
    extra = (await api.post("/api/tasks", json=task("extra", before=[second]))).json()["id"]
    assert [each["id"] for each in (await look(api, second))["parents"]["tasks"]] == [first, extra]
    answer = await api.delete(f"/api/tasks/{first}")
    refused(answer, 400, "task_not_terminal")
    for claimed in await claim(api, "first", "extra"):
        await end(api, claimed, "complete")
    answer = await api.post("/api/tasks", json=task("late", before=[second]))
    refused(answer, 409, "task_conflict")
    refused(await api.delete(f"/api/tasks/{first}"), 409, "task_conflict")
    (claimed,) = await claim(api, "second")
    await end(api, claimed, "complete")
    assert (await api.delete(f"/api/tasks/{first}")).status_code == 204
    refused(await api.post("/api/tasks", json=task("orphan", after=[first])), 400, "invalid_option", "options.after")
    assert (await api.get("/api/tasks", params={"type": "orphan"})).json()["total"] == 0


async def test_rows_that_somebody_edited_are_shown(api: httpx.AsyncClient, backend_url: str):
    flow_id, ids = await make(api)
    if backend_url.startswith("postgres"):
        address, _, schema = backend_url.rpartition("schema=")
        with psycopg.connect(address.rstrip("?&"), options=f"-c search_path={schema}") as postgres:
            for statement in (*EDITS, f"UPDATE tasks SET feeds = feeds || '{UNKNOWN}'::uuid WHERE name = 'extract'"):
                postgres.execute(statement.encode())
    else:
        with closing(sqlite3.connect(backend_url.removeprefix("sqlite:///"))) as file, file:
            for statement in (*EDITS, f"UPDATE tasks SET feeds = '[\"{UNKNOWN}\", 7]' WHERE name = 'extract'"):
                file.execute(statement)
    shown = {ref: await look(api, task_id) for ref, task_id in ids.items()}
    assert [shown[ref]["waits"] for ref in ("part 0", "total", "tell")] == [-3, 2, 1]
    assert (shown["total"]["after"]["parents"], shown["total"]["parents"]["total"]) == ([UNKNOWN], 1)
    assert shown["raw"]["feeds"]["total"] <= 2
    assert (await api.get("/api/tasks", params={"flow": flow_id})).json()["total"] == 5
    drawn = (await api.get(f"/api/flows/{flow_id}")).json()
    assert (drawn["total"], sum(node["total"] for node in drawn["graph"]["nodes"])) == (5, 5)
    [listed] = (await api.get("/api/flows")).json()["flows"]
    assert listed["total"] == 5
    assert (await api.post(f"/api/flows/{flow_id}/cancel")).json()["done"] >= 1
    assert (await api.get(f"/api/flows/{flow_id}")).json()["status"] == "cancelled"


def tasks(*given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "t", "payload": {}, **each} for each in given]


@pytest.mark.parametrize(
    ("given", "code", "field", "text"),
    [
        (
            tasks({"ref": "a", "after": ["c"]}, {"ref": "b", "after": ["a"]}, {"ref": "c", "inputs": {"/x": "b"}}),
            "invalid_option",
            "after",
            "a -> c -> b -> a",
        ),
        (tasks({"ref": "a", "after": ["a"]}), "invalid_option", "after", "a -> a"),
        (tasks({"ref": "a"}, {"ref": "a"}), "invalid_option", "tasks.1.ref", "'a'"),
        (tasks({"ref": "a"}, {"ref": "b", "after": ["c"]}), "invalid_option", "tasks.1.after", "'c'"),
        (tasks({"ref": "a", "inputs": {"/x": "c"}}), "invalid_option", "tasks.0.inputs", "'c'"),
        (tasks({"ref": "a", "after": [UNKNOWN]}), "invalid_option", "after", UNKNOWN),
        (tasks({"ref": "a"}, {"ref": "b", "inputs": {"x": "a"}}), "invalid_option", "tasks.1.inputs", "'x'"),
        (tasks({"ref": "a"}, {"ref": "b", "inputs": {"/x/y": "a"}}), "invalid_option", "tasks.1.inputs", "/x/y"),
        (tasks({"ref": "a"}, {"ref": "b", "after": ["a"], "on": "never"}), "invalid_input", "tasks.1.on", "success"),
        (tasks({"ref": "a", "type": "send_email"}), "invalid_arguments", "tasks.0.payload.to", "send_email"),
        (tasks({"ref": ""}), "invalid_input", "tasks.0.ref", "1"),
        (tasks({"ref": "a", "options": {"idempotencyKey": "k"}}), "invalid_option", "flow", "key of its own"),
        ([], "invalid_input", "tasks", "1"),
        (tasks({"ref": "a"}) * 10_001, "invalid_input", "tasks", "10000"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 30 else "",
)
async def test_what_cannot_be_is_refused_and_nothing_is_stored(
    api: httpx.AsyncClient, given: list[dict[str, Any]], code: str, field: str, text: str
):
    problem = refused(await api.post("/api/flows", json={"tasks": given}), 400, code)
    assert problem["field"].startswith(field), problem
    assert text in problem["detail"], problem
    assert (await api.get("/api/tasks")).json()["total"] == 0


async def test_no_more_than_so_many_wait_for_one(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(links, "FLOW_FEEDS_LIMIT", 30)
    task_id = (await api.post("/api/tasks", json={"type": "t", "payload": {}})).json()["id"]
    many = [{"ref": str(number), "type": "u", "payload": 0, "after": [task_id]} for number in range(30)]
    assert (await api.post("/api/flows", json={"tasks": many})).status_code == 201
    task = {"type": "u", "payload": 0, "options": {"after": [task_id]}}
    problem = refused(await api.post("/api/tasks", json=task), 400, "invalid_option", "options.after")
    assert "at most 30 can" in problem["detail"]
    shown = await look(api, task_id)
    assert (len(shown["feeds"]["tasks"]), shown["feeds"]["total"]) == (20, 30)


async def test_flows_that_are_not_there_and_who_may_do_what(quick: httpx.AsyncClient, memory_engine: Engine):
    for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/retry")):
        refused(await quick.request(method, f"/api/flows/{UNKNOWN}{path}"), 404, "flow_not_found")
    flow_id, _ = await make(quick)
    app = make_app(memory_engine, Registry())
    for role, statuses in (
        (Role.READ_ONLY, (403, 403)),
        (Role.OPERATOR, (403, 200)),
        (Role.WORKER, (201, 403)),
        (Role.ADMIN, (201, 200)),
    ):
        async with client_of(app, await token_for(memory_engine, role)) as client:
            assert (await client.get(f"/api/flows/{flow_id}")).status_code == 200
            answers = await client.post("/api/flows", json=FLOW), await client.post(f"/api/flows/{flow_id}/retry")
            assert tuple(answer.status_code for answer in answers) == statuses, role
