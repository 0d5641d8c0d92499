"""Submit. Tasks without keys are one plain insert. A key that is taken answers with its task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tasklib.core.column_batch import ColumnBatch
from tasklib.core.errors import StoreRefused
from tasklib.core.options import LONGEST_DELAY_SECONDS
from tasklib.core.task import NewTask
from tasklib.stores.sql.access import add_audit_of
from tasklib.stores.sql.columns import CREATED_AT, ID_ROW, KEYED, NEW_TASK, ROW_COUNT, Batch
from tasklib.stores.sql.steps import BEGIN, Notify, Query, Steps
from tasklib.stores.sql.upkeep import existing
from tasklib.stores.values import Audit, Inserted

_SOON = 60.0
"""Workers are told of what is due within this, so that they sleep no longer than until then."""
_ROUNDS = 20
_SEVERAL = ""
"""In place of a name: tasks of more than one type."""


def submit(tasks: Sequence[NewTask], *, dated: bool = False) -> Steps[Sequence[Inserted]]:
    """`dated`: asks for the time of a lone task without a key. An answer with rows takes longer than a count."""
    if not tasks:
        return []
    samples = _samples(tasks)
    for task in samples:
        if task.delay_seconds is not None and task.delay_seconds > LONGEST_DELAY_SECONDS:
            # It may be beyond the calendar, and would take the whole batch with it.
            return (yield from submit([_capped(each) for each in tasks], dated=dated))
    for task in samples:
        if task.idempotency_key is not None:
            return (yield from _submit_keyed(tasks))
    names, due_at = _due_soon(samples)
    insert = ("insert_dated", CREATED_AT) if dated else ("insert", ROW_COUNT)
    answer: Any = yield Query(*insert, batch=Batch(NEW_TASK, tasks), wake=_wake(names), due_at=due_at)
    stored = len(answer) if dated else answer
    if stored < len(tasks):
        raise _dropped(len(tasks) - stored, len(tasks))
    if names:
        yield Notify(names)
    if dated:
        return [Inserted(tasks[0].id, True, answer[0])]
    if type(tasks) is ColumnBatch:
        return ColumnBatch(Inserted(tasks.first.id, True), id=tasks.columns["id"])
    return [Inserted(task.id, True) for task in tasks]


def submit_told(tasks: Sequence[NewTask], copy_of: UUID | None, audit: Audit[UUID] | None) -> Steps[Sequence[Inserted]]:
    """With what they are copies of, and what the audit trail says of them."""
    yield BEGIN
    inserted = yield from submit(tasks)
    made = [each.id for each in inserted if each.created]
    if copy_of is not None and made:
        yield Query("set_copy_of", ROW_COUNT, batch=Batch(ID_ROW, [(task_id,) for task_id in made]), copy_of=copy_of)
    yield from add_audit_of(audit, made)
    return inserted


def is_one_statement(tasks: Sequence[NewTask]) -> bool:
    """Whether the steps of this submit are no more than that."""
    return len(tasks) == 1 and tasks[0].idempotency_key is None


def find_submitted(tasks: Sequence[NewTask]) -> Steps[list[Inserted] | None]:
    """After a conflict. An id that is there is of this very submit, whose reply was lost. All of it was stored then,
    and what is not there any more was deleted since. None: not one is there, so it is somebody's unique index."""
    if not (yield from existing([task.id for task in tasks])):
        return None
    keys = [task.idempotency_key for task in tasks if task.idempotency_key is not None]
    found = (yield from _find_keys(keys)) if keys else {}
    return [_inserted(task, found) for task in tasks]


def _submit_keyed(tasks: Sequence[NewTask]) -> Steps[Sequence[Inserted]]:
    """A key that another transaction holds makes the insert wait for that one's end; whether its row is then to be seen
    or gone, the next round knows."""
    found: dict[str, UUID] = {}
    left = _first_of_each_key(tasks)
    for _ in range(_ROUNDS):
        names, due_at = _due_soon(left)
        batch = Batch(NEW_TASK, left)
        rows = yield Query("insert_keyed", KEYED, batch=batch, wake=_wake(names), due_at=due_at)
        stored = {task_id for task_id, _ in rows}
        dropped = [task for task in left if task.idempotency_key is None and task.id not in stored]
        if dropped:
            raise _dropped(len(dropped), len(tasks))
        found.update((key, task_id) for task_id, key in rows if key is not None)
        left = _without(left, found)
        if left:
            found |= yield from _find_keys([task.idempotency_key for task in left])
            left = _without(left, found)
        if not left:
            inserted = [_inserted(task, found) for task in tasks]
            created = [task for task, kept in zip(tasks, inserted, strict=True) if kept.created]
            yield Notify(_due_soon(created)[0])
            return inserted
    # In theory somebody else stores and deletes the same keys in each of the rounds, between two statements.
    raise _dropped(len(left), len(tasks))


def _find_keys(keys: Sequence[str | None]) -> Steps[dict[str, UUID]]:
    rows = yield Query("find_keys", KEYED, keys=list(keys))
    return {key: task_id for task_id, key in rows}


def _inserted(task: NewTask, found: dict[str, UUID]) -> Inserted:
    key = task.idempotency_key
    task_id = task.id if key is None else found.get(key, task.id)
    return Inserted(task_id, task_id == task.id)


def _first_of_each_key(tasks: Iterable[NewTask]) -> list[NewTask]:
    first: dict[str | UUID, NewTask] = {}
    for task in tasks:
        first.setdefault(task.idempotency_key or task.id, task)
    return list(first.values())


def _without(tasks: Iterable[NewTask], found: dict[str, UUID]) -> list[NewTask]:
    return [task for task in tasks if task.idempotency_key is not None and task.idempotency_key not in found]


def _samples(tasks: Sequence[NewTask]) -> Sequence[NewTask]:
    """One of each kind, as far as options are concerned."""
    return [tasks.first] if type(tasks) is ColumnBatch and tasks.columns.keys() <= {"id", "kwargs", "trace"} else tasks


def _capped(task: NewTask) -> NewTask:
    return task._replace(delay_seconds=min(task.delay_seconds or 0, LONGEST_DELAY_SECONDS))


def _due_soon(tasks: Sequence[NewTask]) -> tuple[list[str], datetime | None]:
    """The names of which something may be due soon, and the first instant, if all of that have one: only the database
    knows whether an instant is soon."""
    names: dict[str, None] = {}
    due_at: datetime | None = None
    at_once = False
    for task in tasks:
        if task.run_at is not None:
            due_at = task.run_at if due_at is None else min(due_at, task.run_at)
        elif task.delay_seconds is None or task.delay_seconds <= _SOON:
            at_once = True
        else:
            continue
        names[task.name] = None
    return list(names), None if at_once else due_at


def _wake(names: list[str]) -> str | None:
    """For a statement that wakes workers itself. None: nobody is to be woken."""
    return None if not names else names[0] if len(names) == 1 else _SEVERAL


def _dropped(number: int, of: int) -> StoreRefused:
    """The statement went well, and rows are missing."""
    others = "" if number == of else "; the others may be stored"
    return StoreRefused(
        f"{number} of {of} tasks were not stored: a trigger or a rule on the table tasks dropped them{others}"
    )
