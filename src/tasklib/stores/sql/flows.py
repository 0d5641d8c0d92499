"""Flows as people and workers look at them, and the net under their release."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from tasklib.core.flows import (
    After,
    Feeds,
    FlowSummary,
    FlowTask,
    Parent,
    as_ids,
    inputs_of,
    on_of,
    parent_ids,
)
from tasklib.core.task import Task
from tasklib.stores.sql.columns import ID
from tasklib.stores.sql.flow_columns import FED, FLOW_COUNT, GRAPH, PARENT
from tasklib.stores.sql.reads import get
from tasklib.stores.sql.release import parent_steps
from tasklib.stores.sql.steps import Query, Steps

_LAST = UUID(int=(1 << 128) - 1)
_LOOKED = 20_000
"""So many tasks that wait are looked at."""
_YOUNG = timedelta(hours=1)


def parents(ids: Sequence[UUID]) -> Steps[list[Parent]]:
    found: list[Parent] = (yield Query("parents", PARENT, ids=list(ids))) if ids else []
    return found


def after_of(task_id: UUID) -> Steps[After | None]:
    [task] = yield from get([task_id])
    after = None if task is None else task.after
    if after is None or "parents" not in after:
        return None
    named = parent_ids(after)
    if named is not None:
        return After(named, on_of(after), inputs_of(after))
    kept = [value for _, value in (yield from parent_steps([task_id]))]
    many = [parent for value in kept for parent in as_ids(value.get("parents"))]
    return After(tuple(many), on_of(after), tuple(pair for value in kept for pair in inputs_of(value)))


def feeds(task_id: UUID, limit: int) -> Steps[Feeds]:
    rows: list[tuple[UUID, int, int]] = yield Query("feeds", FED, id=task_id, limit=limit)
    number, unfinished = rows[0][1:] if rows else (0, 0)
    return Feeds([row[0] for row in rows], number, unfinished)


def flows(limit: int, cursor: UUID | None = None) -> Steps[list[FlowSummary]]:
    ids: list[UUID] = yield Query("latest_flows", ID, cursor=cursor or _LAST, limit=limit)
    if not ids:
        return []
    counts: dict[UUID, dict[str, int]] = {}
    begun: dict[UUID, datetime] = {}
    for flow_id, state, number, created_at in (yield Query("flow_counts", FLOW_COUNT, ids=ids)):
        counts.setdefault(flow_id, {})[state] = number
        begun[flow_id] = min(created_at, begun.get(flow_id, created_at))
    first: dict[UUID, Task] = {task.id: task for task in (yield from get(ids)) if task is not None}
    names = {task_id: (task.after or {}).get("flow") for task_id, task in first.items()}
    return [FlowSummary(each, names.get(each), begun[each], counts[each]) for each in ids if each in counts]


def flow_graph(flow_id: UUID, limit: int) -> Steps[list[FlowTask]]:
    found: list[FlowTask] = yield Query("flow_graph", GRAPH, flow_id=flow_id, limit=limit)
    return found


def stranded(limit: int, *, all_ages: bool) -> Steps[list[UUID]]:
    """What waits although nothing it waits for is still to end. Young ones, as a rule: it happens to those that were
    linked while a parent ended."""
    found: list[UUID] = yield Query("stranded", ID, all_ages=all_ages, young=-_YOUNG, looked=_LOOKED, limit=limit)
    return found
