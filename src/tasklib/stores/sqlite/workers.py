"""Workers as they tell of themselves, and the leases of those that no longer do."""

from __future__ import annotations

import json

import apsw

from tasklib.core.task import Task
from tasklib.stores import serving
from tasklib.stores.sqlite.batches import SQL, rows_of
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.rows import read_task, seconds
from tasklib.stores.values import WorkerBeat


def beat(connection: apsw.Connection, worker: WorkerBeat, clock: Clock) -> None:
    parameters = {
        "id": worker.id,
        "hostname": worker.hostname,
        "pid": worker.pid,
        "names": json.dumps(serving.written(worker)),
        "concurrency": worker.concurrency,
        "running": worker.running,
        "listening": worker.listening,
        "offset": seconds(clock.offset),
        "steady": clock.steady(),
    }
    connection.execute(SQL["beat"], parameters)


def farewell(connection: apsw.Connection, worker_id: str, clock_offset: float) -> None:
    connection.execute(SQL["farewell"], {"id": worker_id, "offset": seconds(clock_offset)})


def lost_leases(connection: apsw.Connection, dead_after_seconds: float, limit: int, clock: Clock) -> list[Task]:
    parameters = {"steady": clock.steady(), "dead_after": seconds(-dead_after_seconds), "limit": limit}
    return [read_task(row) for row in rows_of(connection, SQL["lost_leases"], parameters)]
