"""Each operation of the OpenAPI file succeeds once, and its answer is as the file says. What is generated at random for
tests/server/test_schema.py meets few tasks, no worker, and makes no schedule that would be taken."""

import json
from typing import Any

import httpx
import schemathesis
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tasklib.core.cron import every
from tasklib.core.registry import TaskOptions, define
from tasklib.engine.engine import Engine
from tasklib.server.schema_file import FILE
from tests.conformance.builders import apply, claim_one, failed, heartbeat_of
from tests.server.conftest import TOKEN

DOCUMENT = json.loads(FILE.read_text())
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
WORKER = {"workerId": "w"}
TIMED = {"type": "t", "payload": {"a": [1]}, "cron": "0 8 * * 1-5", "timezone": "Europe/Berlin"}
FLOW = {
    "name": "import 42",
    "tasks": [
        {"ref": "a", "type": "t", "payload": {}, "options": {"maxAttempts": 1}},
        {"ref": "b", "type": "t", "payload": {"of": None}, "inputs": {"/of": "a"}, "options": {"tags": {"x": 1}}},
        *({"ref": f"c{number}", "type": "u", "payload": {}, "after": ["b"], "on": "end"} for number in range(3)),
    ],
}


class Told:
    """Sends requests, and holds the answers to the file."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._schema = schemathesis.openapi.from_dict(DOCUMENT)
        self.done: set[str] = set()

    async def __call__(self, operation: str, query: str = "", json: Any = None, **names: str) -> Any:
        path, method = next(
            (path, method)
            for path, operations in DOCUMENT["paths"].items()
            for method, each in operations.items()
            if each["operationId"] == operation
        )
        answer = await self._client.request(method, path.format(**names) + query, json=json)
        assert answer.is_success, (operation, answer.text)
        case = self._schema[path][method.upper()].Case(path_parameters=names)
        case.validate_response(answer, checks=CHECKS)
        self.done.add(operation)
        return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text


async def test_each_operation_succeeds_as_the_schema_says(quick: httpx.AsyncClient, memory_engine: Engine):
    tell = Told(quick)
    store = await memory_engine.store()
    worker = heartbeat_of("host-1", names=["t", "u"])
    await store.heartbeat(worker)

    async def new(**options: Any) -> str:
        made = await tell("submit_task", json={"type": "t", "payload": {"a": 1}, "options": options})
        task_id: str = made["id"]
        return task_id

    # tasks
    later = await new(runAfter="2090-01-01T00:00:00Z", tags={"a": {"b": [1]}}, unique={"key": "k"}, priority=9)
    again = await tell("submit_task", json={"type": "t", "payload": {}, "options": {"unique": {"key": "k"}}})
    assert (again["id"], again["replaced"]) == (later, False)
    assert (await tell("get_task", task_id=later))["waitingFor"]
    await tell("cancel_task", task_id=later)
    await tell("revive_task", task_id=later)
    await tell("run_task_now", task_id=later)
    await tell("claim_task", json={**WORKER, "leaseSeconds": 60}, task_id=later)
    await tell("extend_claim", json=WORKER, task_id=later)
    await tell("complete_claim", json={**WORKER, "result": [1]}, task_id=later)
    copied = await tell("copy_task", json={"payload": {"a": 2}}, task_id=later)
    assert copied["copyOf"] == later
    await tell("delete_task", task_id=later)
    broken = await new(maxAttempts=1)
    await tell("claim_next", json={**WORKER, "types": ["t"], "limit": 100})
    await tell("release_claim", json=WORKER, task_id=copied["id"])
    await tell("fail_claim", json={**WORKER, "error": "Traceback\nValueError: no"}, task_id=broken)
    groups = await tell("list_failures", "?type=t")
    assert groups["groups"], "of the one that has failed"
    for query in ("", "?status=failed&fields=error", "?sort=ended&status=failed", "?sort=duration", "?word=no"):
        await tell("list_tasks", query)
    for form in ("json", "csv"):
        assert broken in str(await tell("export_tasks", f"?format={form}"))
    await tell("retry_task", task_id=broken)
    for action in ("cancel", "retry", "delete"):
        await tell("bulk_action", json={"filter": {"type": ["t"]}, "dryRun": False}, action=action)
    await tell("clean_up", "?olderThan=2020-01-01T00:00:00Z")

    # flows
    flow = await tell("submit_flow", json={**FLOW, "idempotencyKey": "k"})
    assert (await tell("submit_flow", json={**FLOW, "idempotencyKey": "k"}))["created"] is False
    await apply(store, failed(await claim_one(store, "t"), error="no"))
    assert (await tell("list_flows", "?limit=1"))["flows"][0]["id"] == flow["id"]
    drawn = await tell("get_flow", flow_id=flow["id"])
    assert [node["total"] for node in drawn["graph"]["nodes"]] == [1, 1, 3]
    for task_id in flow["tasks"].values():
        seen = await tell("get_task", task_id=task_id)
        assert seen["parents"]["total"] + seen["feeds"]["total"] > 0
    assert (await tell("retry_flow", json={}, flow_id=flow["id"]))["done"] == 1
    assert (await tell("cancel_flow", json={}, flow_id=flow["id"]))["done"] > 0

    # schedules
    assert len((await tell("preview_schedule", "?cron=0%208%20*%20*%201&timezone=Europe/Berlin"))["times"]) > 1
    await tell("preview_schedule", "?every=900")
    await tell("set_schedule", json={**TIMED, "late": 60, "jitter": 1, "options": {"tags": {"x": [1]}}}, name="s")
    await tell("set_schedule", json={"every": 900, "missed": "all", "overlap": "skip"}, name="s")
    await tell("trigger_schedule", name="s")
    assert (await tell("get_schedule", "?times=3", name="s"))["runs"]
    await tell("pause_schedule", name="s")
    await tell("resume_schedule", name="s")
    assert (await tell("list_schedules"))["total"] == 1
    await tell("delete_schedule", name="s")
    every_minute = TaskOptions(schedule=every(60))
    await memory_engine.schedules.declare([define(lambda: None, name="in code", options=every_minute)])
    await tell("set_schedule", json={"every": 900}, name="in code")
    assert (await tell("clear_schedule", name="in code"))["every"] == 60

    # types, workers, figures
    await tell("set_type", json={"paused": True, "rateLimit": 5, "concurrency": 2}, type="t")
    await tell("get_type", type="t")
    await tell("list_types")
    await tell("get_worker", worker="host-1")
    assert (await tell("drain_worker", worker="host-1"))["drainRequestedAt"]
    assert (await tell("list_workers", "?all=true"))["workers"]
    await tell("pause")
    await tell("resume")
    await tell("set_rate_limit", json={"tasksPerSecond": 5})
    for operation in ("get_controls", "get_stats", "get_series", "get_about", "get_session", "get_metrics"):
        await tell(operation)
    assert (await tell("get_audit", "?folded=true"))["entries"]
    await tell("is_alive")
    await tell("is_ready")
    await tell("log_in", json={"token": TOKEN})
    await tell("log_out")

    said = {each["operationId"] for operations in DOCUMENT["paths"].values() for each in operations.values()}
    assert said - tell.done == {"stream_events"}, "it has no end"
