"""Submit. Tasks without keys are one plain insert. An idempotency key or a unique key that is taken answers with its
task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tasklib.core.checks import LONGEST_DELAY_SECONDS
from tasklib.core.column_batch import ColumnBatch
from tasklib.core.errors import StoreRefused, TaskConflict
from tasklib.core.task import NewTask
from tasklib.core.unique import Holder
from tasklib.stores.sql.access import add_audit_of
from tasklib.stores.sql.columns import (
    CREATED_AT,
    HOLDER,
    ID,
    ID_ROW,
    KEYED,
    NEW_TASK,
    PLAIN_FIELDS,
    ROW_COUNT,
    UNIQUE_TASK,
    Batch,
)
from tasklib.stores.sql.flow_columns import FLOW_TASK, LINKS
from tasklib.stores.sql.links import link
from tasklib.stores.sql.release import recount
from tasklib.stores.sql.steps import BEGIN, IN_DOUBT, Notify, Query, Steps
from tasklib.stores.sql.upkeep import existing
from tasklib.stores.values import Audit, Inserted

_SOON = 60.0
"""Workers are told of what is due within this, so that they sleep no longer than until then."""
_ROUNDS = 20
_PLAIN = NewTask(UUID(int=0), "", "")[PLAIN_FIELDS:]
_SEVERAL = ""
"""In place of a name: tasks of more than one type."""


def submit(tasks: Sequence[NewTask], *, dated: bool = False) -> Steps[Sequence[Inserted]]:
    """`dated`: asks for the time of tasks without keys. An answer with rows takes longer than a count."""
    if not tasks:
        return []
    if (yield IN_DOUBT):
        return (yield from _submit_again(tasks, dated=dated))
    samples = _samples(tasks)
    plain, keyed = True, False
    for task in samples:
        if task.delay_seconds is not None and task.delay_seconds > LONGEST_DELAY_SECONDS:
            # It may be beyond the calendar, and would take the whole batch with it.
            return (yield from submit([_capped(each) for each in tasks], dated=dated))
        plain = plain and task[PLAIN_FIELDS:] == _PLAIN
        keyed = keyed or task.idempotency_key is not None
    if not plain:
        return (
            yield from (_submit_linked(tasks) if any(task.is_linked for task in samples) else _submit_unique(tasks))
        )
    if keyed:
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
        return [Inserted(task.id, True, created_at) for task, created_at in zip(tasks, answer, strict=True)]
    if type(tasks) is ColumnBatch:
        return ColumnBatch(Inserted(tasks.first.id, True), id=tasks.columns["id"])
    return [Inserted(task.id, True) for task in tasks]


def submit_told(tasks: Sequence[NewTask], copy_of: UUID | None, audit: Audit[UUID] | None) -> Steps[Sequence[Inserted]]:
    """With what they are copies of, and what the audit trail says of them."""
    in_doubt = yield IN_DOUBT
    yield BEGIN
    inserted = yield from (_submit_again(tasks) if in_doubt else submit(tasks))
    made = [each.id for each in inserted if each.created]
    if copy_of is not None and made:
        yield Query("set_copy_of", ROW_COUNT, batch=Batch(ID_ROW, [(task_id,) for task_id in made]), copy_of=copy_of)
    yield from add_audit_of(audit, made)
    return inserted


def is_one_statement(tasks: Sequence[NewTask]) -> bool:
    """Whether the steps of this submit are no more than that."""
    return len(tasks) == 1 and tasks[0].is_plain


def _submit_again(tasks: Sequence[NewTask], *, dated: bool = False) -> Steps[Sequence[Inserted]]:
    """The reply to this submit was lost. What it stored may have run by now and be gone. The look comes after the
    insert: once that went through, whoever may have deleted these tasks has said so."""
    yield BEGIN
    inserted = yield from submit(tasks, dated=dated)
    ids = [task.id for task in tasks]
    if (yield Query("deleted_lately", ID, ids=ids)):
        raise TaskConflict("these tasks were stored, and deleted since")  # undoes the insert: see `find_submitted`
    return inserted


def find_submitted(tasks: Sequence[NewTask]) -> Steps[list[Inserted] | None]:
    """After a conflict. An id that is there is of this very submit, whose reply was lost. All of it was stored then,
    and what is not there any more was deleted since. None: not one is there, or was, so it is somebody's unique
    index."""
    ids = [task.id for task in tasks]
    if not (yield from existing(ids)) and not (yield Query("deleted_lately", ID, ids=ids)):
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


def _submit_unique(tasks: Sequence[NewTask]) -> Steps[Sequence[Inserted]]:
    """A lone task whose key is free, as it nearly always is, goes in by one statement. Otherwise whoever has the key is
    locked and looked at. Of several with one key in this batch, each meets the one before it."""
    answers: dict[UUID, Inserted] = {}
    left = list(tasks)
    if len(left) == 1 and left[0].idempotency_key is None:
        left = yield from _insert_unique(left, answers)
    if left:
        yield BEGIN
    for _ in range(_ROUNDS):
        if not left:
            break
        left = yield from _find_known(left, answers)
        left = yield from _meet_holders(left, answers)
        left = yield from _insert_unique(left, answers)
    else:
        raise _dropped(len(left), len(tasks))
    yield Notify(_due_soon([task for task in tasks if answers[task.id].created or answers[task.id].replaced])[0])
    return [answers[task.id] for task in tasks]


def _insert_unique(tasks: Sequence[NewTask], answers: dict[UUID, Inserted]) -> Steps[list[NewTask]]:
    """The first for each key. Gives those that were not stored."""
    first: dict[Any, NewTask] = {}
    for task in tasks:
        first.setdefault(task.id if task.unique_rule is None else (task.name, task.unique_rule.key), task)
    if first:
        names, due_at = _due_soon(list(first.values()))
        batch = Batch(UNIQUE_TASK, [_unique_row(task, task.id) for task in first.values()])
        stored = yield Query("insert_unique", ID, batch=batch, wake=_wake(names), due_at=due_at)
        answers.update((task_id, Inserted(task_id, True)) for task_id in stored)
    return [task for task in tasks if task.id not in answers]


def _find_known(tasks: Sequence[NewTask], answers: dict[UUID, Inserted]) -> Steps[list[NewTask]]:
    """Those that are there by their idempotency key, or by their id: a submit whose reply was lost."""
    known = set((yield from existing([task.id for task in tasks])))
    keys = [task.idempotency_key for task in tasks if task.idempotency_key is not None]
    found = (yield from _find_keys(keys)) if keys else {}
    for task in tasks:
        if task.id in known or task.idempotency_key in found:
            answers[task.id] = _inserted(task, found)
    return [task for task in tasks if task.id not in answers]


def _meet_holders(tasks: Sequence[NewTask], answers: dict[UUID, Inserted]) -> Steps[list[NewTask]]:
    """Joins or replaces those that have the keys; gives the tasks whose keys are free."""
    rules = [(task, task.unique_rule) for task in tasks if task.unique_rule is not None]
    wanted = sorted({(task.name, rule.key) for task, rule in rules})
    names, keys = [name for name, _ in wanted], [key for _, key in wanted]
    rows: list[Holder] = yield Query("lock_unique", HOLDER, names=names, keys=keys)
    holders = {(row.name, row.unique_key): row for row in rows}
    given_up: dict[UUID, None] = {}
    replaced: dict[UUID, NewTask] = {}
    for task, rule in rules:
        holder = holders.get((task.name, rule.key))
        if holder is None:
            continue
        if holder.gives_way_to(rule):
            given_up[holder.id] = None
            continue
        if holder.is_replaced_by(rule):
            replaced[holder.id] = task  # the newest wins
        answers[task.id] = Inserted(holder.id, False, replaced=holder.is_replaced_by(rule))
    if given_up:
        yield Query("clear_unique", ids=list(given_up))
    if replaced:
        soon, due_at = _due_soon(list(replaced.values()))
        batch = Batch(UNIQUE_TASK, [_unique_row(task, task_id) for task_id, task in replaced.items()])
        yield Query("replace_unique", ID, batch=batch, wake=_wake(soon), due_at=due_at)
    return [task for task in tasks if task.id not in answers]


def _submit_linked(tasks: Sequence[NewTask]) -> Steps[Sequence[Inserted]]:
    """Tasks of a flow, or linked to others. Those with keys are stored first, as plain tasks: what is there under a key
    is linked to nothing, and others of the batch wait for it in place of the one that was given."""
    if (yield IN_DOUBT):
        found = yield from find_submitted(tasks)
        if found is not None:
            return found
    yield BEGIN
    answers: dict[UUID, Inserted] = {}
    keyed = [task for task in tasks if task.idempotency_key is not None or task.unique_rule is not None]
    first = [task for task in keyed if task.flow_id == task.id]
    yield from _store_keyed(first, answers)
    for task in first:
        if not answers[task.id].created:
            yield from _known_flow(task.id, answers[task.id].id, tasks, answers)
    yield from _store_keyed([task for task in keyed if task.id not in answers], answers)
    known = {task_id: answer.id for task_id, answer in answers.items()}
    new = [task for task in tasks if known.get(task.id, task.id) == task.id]
    linked = yield from link(new, known)
    rows = [each for each in linked if each.task.id not in answers]
    names, due_at = _due_soon([each.task for each in linked if each.waits == 0])
    if rows:
        batch = Batch(FLOW_TASK, [each.row for each in rows])
        stored = yield Query("insert_flow", ROW_COUNT, batch=batch, wake=_wake(names), due_at=due_at)
        if stored < len(rows):
            raise _dropped(len(rows) - stored, len(tasks))
    if len(rows) < len(linked):
        stored_links = [each.links for each in linked if each.task.id in answers]
        yield Query("link_stored", ROW_COUNT, batch=Batch(LINKS, stored_links))
    yield from recount([each.task.id for each in linked if each.lost])
    yield Notify(names)
    return [answers.get(task.id) or Inserted(task.id, True) for task in tasks]


def _store_keyed(tasks: Sequence[NewTask], answers: dict[UUID, Inserted]) -> Steps[None]:
    alone = [task._replace(after=None, before=(), flow_id=None, flow_name=None) for task in tasks]
    for task, answer in zip(tasks, (yield from submit(alone)), strict=True):
        answers[task.id] = answer


def _known_flow(flow_id: UUID, there: UUID, tasks: Sequence[NewTask], answers: dict[UUID, Inserted]) -> Steps[None]:
    """A flow with this key is there: its tasks answer for those that were given, one for one, as long as all of them
    are there; otherwise its first."""
    given = [task for task in tasks if task.flow_id == flow_id]
    ids: list[UUID] = yield Query("flow_ids", ID, flow_id=there, limit=len(given))
    stand = ids if len(ids) == len(given) else [there] * len(given)
    answers.update((task.id, Inserted(task_id, False)) for task, task_id in zip(given, stand, strict=True))


def _unique_row(task: NewTask, task_id: UUID) -> tuple[Any, ...]:
    """In the order of `UNIQUE_TASK`."""
    rule = task.unique_rule
    of_rule = (None, None, None) if rule is None else (rule.key, rule.until, rule.at_most)
    return (task_id, *task[1:PLAIN_FIELDS], *of_rule)


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
        f"{number} of {of} were not stored: a trigger, a rule or an index of the table tasks kept them out{others}"
    )
