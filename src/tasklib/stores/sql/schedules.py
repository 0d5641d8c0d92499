"""Schedules: read, written under their version, and fired: the tasks of a time go in with the schedule's next one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tasklib.core.schedules import ORPHANED_AFTER, Run, Schedule, ScheduleWrite, definition_of
from tasklib.stores.sql.access import add_audit
from tasklib.stores.sql.columns import Batch, Kind, Shape, row_values
from tasklib.stores.sql.steps import BEGIN, Notify, Query, Steps
from tasklib.stores.sql.submit import submit
from tasklib.stores.values import AuditEntry, DueSchedules, Inserted


def _schedule(declared: Any, operator: Any, runs: Any, **values: Any) -> Schedule:
    return Schedule(declared=definition_of(declared), operator=definition_of(operator), runs=_runs(runs), **values)


def _runs(found: Any) -> tuple[Run, ...]:
    """People edit rows."""
    try:
        return tuple(
            Run(datetime.fromisoformat(slot), UUID(task_id), datetime.fromisoformat(fired_at), bool(created))
            for slot, task_id, fired_at, created in found
        )
    except (ValueError, TypeError, AttributeError):
        return ()


SCHEDULE = Shape(
    _schedule,
    {
        "name": Kind.TEXT,
        "declared": Kind.JSON,
        "operator": Kind.JSON,
        "paused": Kind.BOOLEAN,
        "version": Kind.INTEGER,
        "next_at": Kind.TIME,
        "declared_at": Kind.TIME,
        "code_at": Kind.TIME,
        "runs": Kind.JSON,
        "fired": Kind.BIG_INTEGER,
        "missed": Kind.BIG_INTEGER,
        "created_at": Kind.TIME,
        "updated_at": Kind.TIME,
    },
)
_WRITTEN = Shape(
    row_values,
    {
        name: Kind.JSON_TEXT if kind is Kind.JSON else kind
        for name, kind in SCHEDULE.columns.items()
        if name not in ("created_at", "updated_at")
    },
)
_GUARD = Shape(row_values, {name: SCHEDULE.columns[name] for name in ("name", "version")})
_NAME = Shape(lambda name: name, {"name": Kind.TEXT})
_NEXT = Shape(row_values, {"next_at": Kind.TIME, "now": Kind.TIME}, {"next_at": "min(next_at)", "now": "{now}"})


def schedules(names: Sequence[str] | None = None) -> Steps[list[Schedule]]:
    query = Query("schedules", SCHEDULE) if names is None else Query("schedules_named", SCHEDULE, names=list(names))
    found: list[Schedule] = yield query
    return found


def due_schedules(limit: int) -> Steps[DueSchedules]:
    """One statement, as long as nothing is due."""
    [(next_at, now)] = yield Query("next_schedule", _NEXT, kept=-ORPHANED_AFTER)
    due: list[Schedule] = []
    if next_at is not None and next_at <= now:
        declared_after = now - ORPHANED_AFTER
        due = yield Query("due_schedules", SCHEDULE, now_at=now, declared_after=declared_after, limit=limit)
        [(next_at, _)] = yield Query("next_schedule_after", _NEXT, now_at=now, declared_after=declared_after)
    wait = None if next_at is None else max(timedelta(0), next_at - now).total_seconds()
    return DueSchedules(due, now, 0.0 if len(due) == limit else wait)


def write_schedules(
    writes: Sequence[ScheduleWrite], audit: Sequence[AuditEntry], *, wait: bool
) -> Steps[list[Sequence[Inserted] | None]]:
    yield BEGIN
    new = [write for write in writes if write.schedule.version == 0]
    old = [write for write in writes if write.schedule.version > 0]
    won: set[str] = set()
    if new:
        rows = [_row(write.schedule) for write in new]
        won.update((yield Query("add_schedules", _NAME, batch=Batch(_WRITTEN, rows))))
    if old:
        guards = sorted((write.schedule.name, write.schedule.version) for write in old)
        parts = {"locked": "" if wait else "SKIP LOCKED"}
        won.update((yield Query("lock_schedules", _NAME, batch=Batch(_GUARD, guards), parts=parts)))
    winners = [write for write in writes if write.schedule.name in won]
    tasks = [task for write in winners for task in write.tasks]
    inserted = iter((yield from submit(tasks)))
    answers = {write.schedule.name: [next(inserted) for _ in write.tasks] for write in winners}
    rows = [_row(fired(write, answers[write.schedule.name])) for write in winners if write.schedule.version > 0]
    if rows:
        yield Query("set_schedules", batch=Batch(_WRITTEN, rows))
    if winners:
        yield from add_audit(audit)
    if any(not write.slots for write in winners):
        yield Notify(everybody=True)  # its time may be another one now
    return [answers.get(write.schedule.name) for write in writes]


def delete_schedule(name: str, version: int, *, audit: Sequence[AuditEntry] = ()) -> Steps[bool]:
    yield BEGIN
    gone = yield Query("delete_schedule", name=name, version=version)
    if gone:
        yield from add_audit(audit)
    return bool(gone)


def keep_schedules(names: Sequence[str]) -> Steps[None]:
    yield Query("keep_schedules", names=list(names))


def fired(write: ScheduleWrite, inserted: Sequence[Inserted]) -> Schedule:
    return write.schedule.ran(write.runs([(each.id, each.created) for each in inserted]))


def _row(schedule: Schedule) -> tuple[Any, ...]:
    runs = [(run.slot.isoformat(), str(run.task_id), run.fired_at.isoformat(), run.created) for run in schedule.runs]
    values: dict[str, Any] = {
        "declared": None if schedule.declared is None else schedule.declared.as_json(),
        "operator": None if schedule.operator is None else schedule.operator.as_json(),
        "runs": json.dumps(runs),
    }
    return tuple(values[name] if name in values else getattr(schedule, name) for name in _WRITTEN.names)
