"""Whole records of another queue, as they were there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tasklib.core.decide import UNTIMED, WriteResult
from tasklib.core.flows import as_ids, parent_ids
from tasklib.core.lifecycle import STATE_OF, TERMINAL
from tasklib.core.task import Task
from tasklib.stores.sql.columns import ID, ROW_COUNT, TASK, TASK_ROW, Batch, Kind
from tasklib.stores.sql.flow_columns import FED_TASK, FEEDS, STEP
from tasklib.stores.sql.reads import get
from tasklib.stores.sql.steps import BEGIN, Query, Steps
from tasklib.stores.sql.upkeep import add_counts
from tasklib.stores.values import NO_LINKS, KeptLinks

_FINISHED = {STATE_OF[phase] for phase in TERMINAL}
_RESOLUTION = timedelta(milliseconds=1)
"""To which every engine keeps times."""


def kept_links(tasks: Sequence[Task]) -> Steps[KeptLinks]:
    feeds: list[tuple[UUID, Any]] = yield Query("fed_tasks", FED_TASK, ids=[task.id for task in tasks])
    many = [task.id for task in tasks if parent_ids(task.after) is None]
    steps: list[tuple[UUID, str, str]] = (yield Query("parent_steps", STEP, ids=many)) if many else []
    return KeptLinks([(task_id, as_ids(fed)) for task_id, fed in feeds], steps)


def restore(tasks: Sequence[Task], links: KeptLinks = NO_LINKS) -> Steps[list[WriteResult]]:
    if not tasks:
        return []
    yield BEGIN
    made = set((yield Query("restore", ID, batch=Batch(TASK_ROW, [_row(task) for task in tasks]))))
    there = yield from get([task.id for task in tasks])
    write_results = [
        WriteResult.APPLIED if task.id in made else WriteResult.DUPLICATE if _same(task, found) else WriteResult.STALE
        for task, found in zip(tasks, there, strict=True)
    ]
    feeds = [(task_id, json.dumps([str(each) for each in fed])) for task_id, fed in links.feeds if task_id in made]
    if feeds:
        yield Query("add_feeds", ROW_COUNT, batch=Batch(FEEDS, feeds))
    steps = [step for step in links.steps if step[0] in made]
    if steps:
        yield Query("add_steps", ROW_COUNT, batch=Batch(STEP, steps))
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
    kinds = TASK.columns
    return [_json(task, name) if kinds[name] is Kind.JSON else getattr(task, name) for name in TASK_ROW.names]


def _json(task: Task, name: str) -> str | None:
    value = getattr(task, name)
    # A payload may be null; of the other columns null says that there is nothing.
    return None if value is None and name != "kwargs" else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
