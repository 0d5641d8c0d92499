"""Reading: tasks by id and by key, figures, workers. Nothing here writes. Lists are in listing.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import apsw

from tasklib.core.task import Task
from tasklib.stores import serving
from tasklib.stores.sqlite.batches import SQL, Target, rows_of, values_of
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.limits import Control
from tasklib.stores.sqlite.rows import instant, instant_or_none, read_task, seconds, seconds_between
from tasklib.stores.values import Age, Controls, NameStats, Point, WorkerInfo


def now(target: Target, clock_offset: float) -> str:
    text: str = target.execute(SQL["now"], {"offset": seconds(clock_offset)}).get
    return text


def get(connection: apsw.Connection, ids: Sequence[UUID]) -> list[Task | None]:
    wanted = [str(task_id) for task_id in ids]
    rows = rows_of(connection, SQL["get"], {"ids": json.dumps(wanted)})
    found = {row[0]: read_task(row) for row in rows}
    return [found.get(task_id) for task_id in wanted]


def get_by_key(connection: apsw.Connection, key: str) -> Task | None:
    rows = rows_of(connection, SQL["get_by_key"], {"key": key})
    return read_task(rows[0]) if rows else None


def needs_no_mark(connection: apsw.Connection, task_id: UUID) -> bool:
    """The task is finished, or gone, or marked already as waited for."""
    return bool(connection.execute(SQL["needs_no_mark"], {"id": str(task_id)}).get)


def stats(connection: apsw.Connection, clock_offset: float) -> dict[str, NameStats]:
    moment, active, finished = values_of(connection, SQL["stats"], {"offset": seconds(clock_offset)})
    found: dict[str, NameStats] = {}

    def add(name: str, **figures: Any) -> None:
        found[name] = replace(found.get(name, NameStats()), **figures)

    for name, pending, waiting, running, due in active:
        overdue = seconds_between(due, moment) if due is not None and due <= moment else None
        add(name, pending=pending, waiting=waiting, running=running, oldest_due_seconds=overdue)
    for name, state, number in finished:
        add(name, **{state: number})
    return found


def series(connection: apsw.Connection, since: float, step: int, offset: float) -> list[Point]:
    parameters = {"offset": seconds(offset), "since": seconds(-since), "step": step}
    return [Point(instant(row[0]), *row[1:]) for row in rows_of(connection, SQL["series"], parameters)]


def ages(connection: apsw.Connection, since: float, step: int, offset: float) -> list[Age]:
    parameters = {"offset": seconds(offset), "since": seconds(-since), "step": step}
    return [Age(instant(row[0]), *row[1:]) for row in rows_of(connection, SQL["ages"], parameters)]


def workers(connection: apsw.Connection, clock: Clock) -> list[WorkerInfo]:
    moment, rows = values_of(connection, SQL["workers"], {"offset": seconds(clock.offset)})
    steady = clock.steady()
    silent = [seconds_between(row[7], steady) for row in rows]
    return [
        WorkerInfo(
            id=row[0],
            hostname=row[1],
            pid=row[2],
            names=(served := serving.read(json.loads(row[3]))).names,
            queues=served.queues,
            concurrency=row[4],
            running=row[5],
            started_at=instant(row[6]),
            seen_at=instant(moment) - timedelta(seconds=silence),
            stopped_at=instant_or_none(row[8]),
            seconds_since_seen=silence,
        )
        for row, silence in zip(rows, silent, strict=True)
    ]


def controls(connection: apsw.Connection) -> dict[str, Controls]:
    found = [Control.read(row).public() for row in rows_of(connection, SQL["controls"])]
    return {control.name: control for control in found if control != Controls(name=control.name)}
