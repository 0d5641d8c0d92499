"""One action on everything that matches a filter, in batches, each task under its own guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from tasklib.core import decide
from tasklib.core.decide import Change, WriteResult
from tasklib.core.errors import TaskConflict
from tasklib.core.task import Task, TaskState
from tasklib.engine.engine import Engine, audit_by_id
from tasklib.engine.filters import count_cap
from tasklib.engine.listeners import Settled
from tasklib.stores.values import Audit, Count, Filter

BATCH = 500
COUNT_CAP = 1_000_000


class Action(StrEnum):
    RETRY = "retry"
    CANCEL = "cancel"
    DELETE = "delete"
    REVIVE = "revive"
    RUN_NOW = "run-now"


class Batch(NamedTuple):
    tasks: list[Task]
    """What it was done to, as it was before."""
    next_cursor: UUID | None
    """Where to go on; None at the end."""


CONCERNS: dict[Action, tuple[str, ...]] = {
    Action.RETRY: (TaskState.FAILED,),
    Action.CANCEL: (TaskState.PENDING, TaskState.FAILED, TaskState.RUNNING),
    Action.DELETE: (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED),
    Action.REVIVE: (TaskState.CANCELLED,),
    Action.RUN_NOW: (TaskState.PENDING, TaskState.FAILED),
}
"""The states in which a task can be the object of the action; others that match the filter are left alone."""

_DECIDED: dict[Action, Callable[[Task, datetime], Change | None]] = {
    Action.RETRY: lambda task, _: decide.retry_by_hand(task),
    Action.CANCEL: lambda task, _: decide.cancel(task),
    Action.REVIVE: lambda task, _: decide.revive(task),
    Action.RUN_NOW: decide.run_now,
}


def concerned(action: Action, where: Filter) -> Filter:
    """The filter, narrowed to what the action can be done to."""
    where = replace(where, not_due=action is Action.RUN_NOW or None)
    asked = CONCERNS[action] if where.states is None else [state for state in where.states if state in CONCERNS[action]]
    needed = {Action.CANCEL: False, Action.RUN_NOW: False, Action.DELETE: True, Action.REVIVE: True}.get(action)
    if needed is None:
        return replace(where, states=asked)
    contradicted = where.terminal is not None and where.terminal is not needed
    return replace(where, states=[] if contradicted else asked, terminal=needed)


async def count(engine: Engine, action: Action, where: Filter) -> Count:
    """How many tasks the action would be done to. A search counts among the newest tasks only, and says so; `perform`
    goes on to the end."""
    narrowed = concerned(action, where)
    return await engine.count(narrowed, count_cap(where, COUNT_CAP)) if narrowed.states else Count(0, False)


async def perform(
    engine: Engine,
    action: Action,
    where: Filter,
    cursor: UUID | None = None,
    *,
    audit: Audit[Task] | None = None,
) -> AsyncIterator[Batch]:
    """Does it to all that match now, oldest first, from behind the cursor on, a batch at a time. What somebody else
    changed meanwhile is passed over. A batch of a search may be empty with others behind it."""
    narrowed = concerned(action, where)
    while narrowed.states:
        page = await engine.page(narrowed, limit=BATCH, cursor=cursor, oldest_first=True)
        yield Batch(await _do(engine, action, page.tasks, audit), page.next_cursor)
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


async def _do(engine: Engine, action: Action, tasks: Sequence[Task], audit: Audit[Task] | None) -> list[Task]:
    store = await engine.store()
    entries = audit_by_id(tasks, audit)
    if action is Action.DELETE:
        finished = [task for task in tasks if task.completed_at is not None]
        guards = [(task.id, task.version) for task in finished]
        return _applied(finished, await store.delete(guards, audit=entries))
    now = await store.now()
    changed: list[Task] = []
    changes: list[Change] = []
    running: dict[UUID, Task] = {}
    for task in tasks:
        try:
            change = _DECIDED[action](task, now)
        except TaskConflict:
            continue
        if change is None:
            if action is Action.CANCEL:  # else there is nothing left to do: it has fallen due meanwhile
                running[task.id] = task
        else:
            changed.append(task)
            changes.append(change)
    done: list[Task] = []
    if changes:
        write_results = await store.settle(changes, audit=entries)
        done = _applied(changed, write_results)
        settled = zip(changed, changes, write_results, strict=True)
        await engine.announce([Settled(*each[:2]) for each in settled if each[2] is WriteResult.APPLIED])
    asked = await store.request_cancel(list(running), audit=entries) if running else []
    return done + [running[task_id] for task_id in asked]


def _applied(tasks: Sequence[Task], write_results: Sequence[WriteResult]) -> list[Task]:
    return [
        task for task, write_result in zip(tasks, write_results, strict=True) if write_result is WriteResult.APPLIED
    ]
