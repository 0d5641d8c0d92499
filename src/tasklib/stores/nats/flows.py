"""Flows: tasks that wait for tasks.

A child's record has the set of parents that it still waits for, a parent's record its children. What the end of a
parent makes of its children, and of theirs, is written together with that end, in one atomic batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from tasklib.core.decide import Change
from tasklib.core.errors import InvalidOption, TaskConflict
from tasklib.core.flows import NEVER, Child, End, as_ids, in_order, parent_ids, recounted
from tasklib.core.task import NewTask, TaskState
from tasklib.core.unique import key_after_end
from tasklib.stores.nats.claim import read_records
from tasklib.stores.nats.clock import instant, later, written
from tasklib.stores.nats.kv import LARGEST_BATCH, KeyValueStore
from tasklib.stores.nats.record import Record, after_column

FEEDS_LIMIT = LARGEST_BATCH - 100
"""So many tasks may wait for one: they are written in one batch with its end, and with what an audit trail says."""

Records = dict[UUID, Record]


class Released(NamedTuple):
    """What changes with the ends of tasks."""

    records: Records
    changes: list[tuple[Change, str]]
    """What the counters are told: a change, and the type of its task."""


def children_of(record: Record) -> list[UUID]:
    return list(as_ids(record.head.get("feeds")))


def parents_of(record: Record) -> list[UUID]:
    return list(parent_ids(record.after) or ())


def is_unfinished(record: Record | None) -> bool:
    return record is not None and record.head["completed_at"] is None


def due_after(after: Mapping[str, Any], now: datetime) -> str:
    """When a task is due that waits for nobody any more. What somebody edited into something else counts as nothing."""
    run_at, delay = after.get("runAt"), after.get("delay")
    if isinstance(run_at, str):
        return written(instant(run_at))
    return written(later(now, max(0, delay)) if isinstance(delay, int | float) else now)


async def release(kv: KeyValueStore, changed: Mapping[UUID, Record], now: datetime) -> Released:
    """What becomes of the children of tasks that ended or were reopened; then of theirs, if that ends or reopens them;
    level by level. Each child is judged by the records that are about to be written. Those that were revived by hand
    are judged first: what they wait for may have failed meanwhile."""
    revived = [task_id for task_id, record in changed.items() if _child(record).waiting]
    return await _recount_all(kv, dict(changed), [*revived, *_children(changed.values())], now, by_all_parents=revived)


async def recount(kv: KeyValueStore, ids: Sequence[UUID], now: datetime) -> Released:
    """The same for tasks that wait, whatever became of their parents."""
    known: dict[UUID, Record | None] = {}
    await _read_missing(kv, known, ids)
    return await _recount_all(kv, known, list(ids), now, by_all_parents=ids)


async def _recount_all(
    kv: KeyValueStore,
    known: dict[UUID, Record | None],
    children: list[UUID],
    now: datetime,
    *,
    by_all_parents: Sequence[UUID],
) -> Released:
    """`by_all_parents`: those for which all parents count, as for what was cut off. For the others those that have
    ended now are enough."""
    released = Released({}, [])
    while children:
        await _read_missing(kv, known, children)
        found = {child: record for child in children if (record := known[child]) is not None}
        thorough = [record for child, record in found.items() if child in by_all_parents or _child(record).cut_off]
        await _read_missing(kv, known, [parent for record in thorough for parent in parents_of(record)])
        next_level = []
        for child, record in found.items():
            new = _recounted(record, known, now)
            if new is None:
                continue
            known[child] = released.records[child] = new
            if is_unfinished(new) != is_unfinished(record):
                next_level.append(new)
                released.changes.append((_counted(new), new.head["name"]))
        children = _children(next_level)
    return released


def _children(records: Iterable[Record]) -> list[UUID]:
    return sorted({child for record in records for child in children_of(record)})


async def _read_missing(kv: KeyValueStore, known: dict[UUID, Record | None], ids: Sequence[UUID]) -> None:
    wanted = [each for each in dict.fromkeys(ids) if each not in known]
    if wanted:
        found = await read_records(kv, wanted)
        known.update((each, found.get(each)) for each in wanted)


def link(tasks: Sequence[NewTask], records: Mapping[UUID, Record], now: datetime) -> Records:
    """The records that change when these new tasks are tied to what they wait for, and to what is to wait for them.
    `records` has them all, as they are read or about to be written."""
    in_order({task.id: task.after.parents if task.after is not None else () for task in tasks})
    changed: Records = {}

    def record_of(task_id: UUID, field: str) -> Record:
        record = changed.get(task_id) or records.get(task_id)
        if record is None:
            to_wait_for = " to wait for" if field == "after" else ""
            raise InvalidOption(f"{field}: there is no task {task_id}{to_wait_for}", field=field)
        return record

    for task in tasks:
        parents = task.after.parents if task.after is not None else ()
        for parent in parents:
            changed[parent] = _with_child(record_of(parent, "after"), task.id)
        if parents:
            child = _waiting_for(record_of(task.id, "after").changed(after=after_column(task)), parents)
            changed[task.id] = _recounted(child, {parent: changed[parent] for parent in parents}, now) or child
    for task in tasks:
        for child_id in dict.fromkeys(task.before):
            child = record_of(child_id, "before")
            if task.id in parents_of(child):  # said from both sides
                continue
            if child.head["state"] != TaskState.PENDING or not child.head.get("waits_for"):
                text = (
                    f"before: task {child_id} was released already; it waits for nothing, and is {child.head['state']}"
                )
                raise TaskConflict(text, task_id=child_id, state=child.head["state"])
            changed[task.id] = _with_child(record_of(task.id, "before"), child_id)
            after = {**(child.after or {}), "parents": [str(each) for each in (*parents_of(child), task.id)]}
            changed[child_id] = _waiting_for(child.changed(after=after), [*_waits_for(child), task.id])
    return changed


async def check_before(kv: KeyValueStore, tasks: Sequence[NewTask]) -> None:
    """What is to wait for a new task must not be what that task waits for, through however many others."""
    for task in tasks:
        if not (task.before and task.after):
            continue
        below: set[UUID] = set(task.before)
        level = list(task.before)
        while level:
            children = _children((await read_records(kv, level)).values())
            level = [child for child in children if child not in below]
            below.update(level)
        if not below.isdisjoint(task.after.parents):
            text = f"before: task {task.before[0]} cannot wait for what waits for it"
            raise InvalidOption(text, field="before")


def linked_to(tasks: Sequence[NewTask]) -> list[UUID]:
    """All that these are to be tied to."""
    return [each for task in tasks for each in (*(task.after.parents if task.after is not None else ()), *task.before)]


def _with_child(parent: Record, child: UUID) -> Record:
    feeds = parent.head.get("feeds") or []
    if str(child) in feeds:
        return parent
    if len(feeds) >= FEEDS_LIMIT:
        text = f"after: more than {FEEDS_LIMIT} tasks would wait for task {parent.head['id']}; NATS holds no more"
        raise InvalidOption(text, field="after")
    return parent.changed(feeds=[*feeds, str(child)])


def _waits_for(record: Record) -> list[UUID]:
    return list(as_ids(record.head.get("waits_for")))


def _waiting_for(child: Record, parents: Sequence[UUID]) -> Record:
    return child.changed(waits_for=list(map(str, parents)), scheduled_at=written(NEVER))


def _recounted(record: Record, parents: Mapping[UUID, Record | None], now: datetime) -> Record | None:
    """The child, now that these of its parents are so; the others are as they were. None: it stays as it is.

    What was cut off is written in any case: of two that change its parents at once, the second has to look again."""
    child = _child(record)
    if not child.held:
        return None
    waited_for = set(_waits_for(record))
    ends: dict[UUID, End] = {}
    for parent in parents_of(record):
        found = parents.get(parent)
        if found is not None:
            ends[parent] = _end(found)
        elif parent not in parents:
            open_yet = parent in waited_for
            ends[parent] = End(parent, "", TaskState.PENDING if open_yet else TaskState.COMPLETED, not open_yet)
    new = recounted(child, parents_of(record), ends)
    left = [parent for parent in parents_of(record) if parent not in ends or not ends[parent].done(child.on)]
    if new == child and set(left) == waited_for and not child.cut_off:
        return None
    moment = written(now)
    changed = record.changed(waits_for=list(map(str, left)), after=new.after, error=new.error, updated_at=moment)
    if new.released:
        changed = changed.changed(scheduled_at=due_after(new.after or {}, now))
    if new.state == child.state:
        return changed
    changed = changed.changed(
        state=str(new.state),
        version=child.version + 1,
        updated_at=moment,
        completed_at=moment if new.over else None,
    )
    if new.over:
        key, until = changed.head.get("unique_key"), changed.head.get("unique_until")
        changed.head["unique_key"] = key_after_end(key, until)
    return changed


def _child(record: Record) -> Child:
    head = record.head
    return Child(
        UUID(head["id"]),
        head["name"],
        head["state"],
        head["completed_at"] is not None,
        head["version"],
        record.waits,
        record.after,
        error=head["error"],
    )


def _end(record: Record) -> End:
    head = record.head
    return End(UUID(head["id"]), head["name"], head["state"], head["completed_at"] is not None)


def _counted(record: Record) -> Change:
    head = record.head
    over = head["completed_at"] is not None
    return Change(UUID(head["id"]), head["version"], None, None, TaskState(head["state"]), head["retry_count"], over)
