"""Whole records of another queue, as they were there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tasklib.core.decide import UNTIMED, WriteResult
from tasklib.core.lifecycle import STATE_OF, TERMINAL
from tasklib.core.task import Task
from tasklib.stores.sql.columns import ID, TASK, TASK_ROW, Batch, Kind
from tasklib.stores.sql.reads import get
from tasklib.stores.sql.steps import BEGIN, Query, Steps
from tasklib.stores.sql.upkeep import add_counts

_FINISHED = {STATE_OF[phase] for phase in TERMINAL}
_RESOLUTION = timedelta(milliseconds=1)
"""To which every engine keeps times."""


def restore(tasks: Sequence[Task]) -> Steps[list[WriteResult]]:
    if not tasks:
        return []
    yield BEGIN
    made = set((yield Query("restore", ID, batch=Batch(TASK_ROW, [_row(task) for task in tasks]))))
    there = yield from get([task.id for task in tasks])
    write_results = [
        WriteResult.APPLIED if task.id in made else WriteResult.DUPLICATE if _same(task, found) else WriteResult.STALE
        for task, found in zip(tasks, there, strict=True)
    ]
    ended = Counter(
        (task.completed_at.replace(second=0, microsecond=0), task.name, task.state)
        for task in tasks
        if task.id in made and task.completed_at is not None and task.state in _FINISHED
    )
    yield from add_counts([(*cell, UNTIMED, number, 0) for cell, number in ended.items()])
    return write_results


def _same(task: Task, found: Task | None) -> bool:
    return found is not None and found.version == task.version and abs(found.updated_at - task.updated_at) < _RESOLUTION


def _row(task: Task) -> list[Any]:
    return [_json(task, name) if kind is Kind.JSON else getattr(task, name) for name, kind in TASK.columns.items()]


def _json(task: Task, name: str) -> str | None:
    value = getattr(task, name)
    # A payload may be null; of the other columns null says that there is nothing.
    return None if value is None and name != "kwargs" else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
