"""Workers as they tell of themselves, and the leases of those that no longer do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from tasklib.core.task import Task
from tasklib.stores.sql.access import add_audit
from tasklib.stores.sql.columns import DRAIN, TASK, WORKER
from tasklib.stores.sql.steps import BEGIN, Notify, Query, Steps
from tasklib.stores.values import AuditEntry, Drain, WorkerHeartbeat, WorkerInfo


def heartbeat(worker: WorkerHeartbeat, *, listening: bool) -> Steps[Drain | None]:
    rows: list[Drain] = yield Query(
        "heartbeat",
        DRAIN,
        id=worker.id,
        hostname=worker.hostname,
        pid=worker.pid,
        version=worker.version,
        names=list(worker.names),
        queues=json.dumps(dict(worker.queues), ensure_ascii=False),
        concurrency=worker.concurrency,
        running=worker.running,
        listening=listening,
    )
    return rows[0] if rows[0].at is not None else None


def request_drain(worker_id: str, by: str, *, audit: Sequence[AuditEntry] = ()) -> Steps[bool]:
    yield BEGIN
    asked = bool((yield Query("request_drain", id=worker_id, by=by)))
    if asked:
        yield from add_audit(audit)
        yield Notify(drain_requested=worker_id)
    return asked


def deregister_worker(worker_id: str) -> Steps[None]:
    yield Query("deregister_worker", id=worker_id)


def workers() -> Steps[list[WorkerInfo]]:
    found: list[WorkerInfo] = yield Query("workers", WORKER)
    return found


def lost_leases(dead_after_seconds: float, limit: int) -> Steps[list[Task]]:
    silence = timedelta(seconds=-dead_after_seconds)
    found: list[Task] = yield Query("lost_leases", TASK, silence=silence, limit=limit)
    return found
