"""Workers as they tell of themselves, and the leases of those that no longer do."""

from __future__ import annotations

import json
from datetime import timedelta

from tasklib.core.task import Task
from tasklib.stores.sql.columns import TASK, WORKER
from tasklib.stores.sql.steps import Query, Steps
from tasklib.stores.values import WorkerHeartbeat, WorkerInfo


def heartbeat(worker: WorkerHeartbeat, *, listening: bool) -> Steps[None]:
    yield Query(
        "heartbeat",
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


def deregister_worker(worker_id: str) -> Steps[None]:
    yield Query("deregister_worker", id=worker_id)


def workers() -> Steps[list[WorkerInfo]]:
    found: list[WorkerInfo] = yield Query("workers", WORKER)
    return found


def lost_leases(dead_after_seconds: float, limit: int) -> Steps[list[Task]]:
    silence = timedelta(seconds=-dead_after_seconds)
    found: list[Task] = yield Query("lost_leases", TASK, silence=silence, limit=limit)
    return found
