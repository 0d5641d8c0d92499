"""Reads: tasks by id and by key, figures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tasklib.core.task import Task, TaskState
from tasklib.stores import values
from tasklib.stores.sql.columns import ACTIVE, AGE, FAILURE, ID, NOW, POINT, TASK, Active
from tasklib.stores.sql.steps import Query, Steps
from tasklib.stores.values import Age, Failure, NameStats, Point


def now() -> Steps[datetime]:
    [found] = yield Query("clock", NOW)
    instant: datetime = found
    return instant


def get(ids: Sequence[UUID]) -> Steps[list[Task | None]]:
    found: list[Task] = (yield Query("get", TASK, ids=list(ids))) if ids else []
    by_id = {task.id: task for task in found}
    return [by_id.get(task_id) for task_id in ids]


def get_by_key(key: str) -> Steps[Task | None]:
    found: list[Task] = yield Query("get_by_key", TASK, key=key)
    return found[0] if found else None


def watch(task_id: UUID) -> Steps[Task | None]:
    """The task as it is, marked so that whoever ends it tells. Marked first: an end in between is then told."""
    found: list[Task] = yield Query("watch", TASK, id=task_id)
    return found[0] if found else (yield from get([task_id]))[0]


def stats() -> Steps[dict[str, NameStats]]:
    moment = yield from now()
    active: list[Active] = yield Query("stats_active", ACTIVE)
    finished = yield Query("stats_finished")
    names: dict[str, dict[str, Any]] = {}
    for name, state, number, due_at, _ in active:
        figures = names.setdefault(name, {})
        field = "waiting" if state == TaskState.FAILED else state
        figures[field] = figures.get(field, 0) + number
        if due_at is not None and due_at <= moment:
            overdue = (moment - due_at).total_seconds()
            figures["oldest_due_seconds"] = max(overdue, figures.get("oldest_due_seconds", 0.0))
    for name, state, number in finished:
        if number:
            names.setdefault(name, {})[state] = number
    return {name: NameStats(**figures) for name, figures in sorted(names.items())}


def series(
    since_seconds: float, step_seconds: int = 60, *, until_seconds: float = 0.0, name: str | None = None
) -> Steps[list[Point]]:
    found: list[Point] = yield Query("series", POINT, **_window(since_seconds, step_seconds, until_seconds), name=name)
    return found


def backlog_history(
    since_seconds: float, step_seconds: int = 60, *, until_seconds: float = 0.0, name: str | None = None
) -> Steps[list[Age]]:
    window = _window(since_seconds, step_seconds, until_seconds)
    found: list[Age] = yield Query("backlog_history", AGE, **window, name=name)
    return found


def latest_failures(name: str | None, limit: int) -> Steps[list[Failure]]:
    ids = yield Query("latest_failed", ID, name=name, looked=values.SEARCHED_TASKS, limit=limit)
    found: list[Failure] = (yield Query("failures", FAILURE, ids=ids)) if ids else []
    return sorted(found, key=lambda each: (each.completed_at, each.id), reverse=True)


def _window(since_seconds: float, step_seconds: int, until_seconds: float) -> dict[str, Any]:
    since, until = timedelta(seconds=-since_seconds), timedelta(seconds=-until_seconds)
    return {"since": since, "until": until, "step": step_seconds}
