"""What the end of a task, and an operator's way back from it, make of those that wait for it.

Completions release in the statement that writes them. This is the rest: ends that cut off, level by level and in one
transaction, their inverse, and the exact look at all parents of a task, which sets right whatever was missed. Children
are locked before their parents are looked at, and a parent ends in the transaction that counts for its children: so
what is seen here does not change any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tasklib.core.flows import Child, End, after_ends, as_ids, parent_ids, recounted
from tasklib.stores.sql.columns import ID, SETTLED, Batch, Settled
from tasklib.stores.sql.flow_columns import CHILD, END, MOVED, STEP
from tasklib.stores.sql.steps import BEGIN, Notify, Query, Steps
from tasklib.stores.sql.upkeep import merge_counts

_MOST = 10_000
"""So many tasks are locked by one statement."""
PARENTS_STEP = "after:"
"""The steps of a task that keep its many parents."""


def follow(settled: Sequence[UUID]) -> Steps[None]:
    """After these were written: what has ended is an end to those that wait for it, what was taken back is none any
    more. One of them that waits itself is looked at, too."""
    rows = yield from locked(settled)
    ended = [row for row in rows.values() if row.over]
    back = [row for row in rows.values() if not row.over]
    yield from _end(ended)
    yield from _take_back(back)
    yield from recount([row.id for row in back if row.waiting])


def recount(ids: Sequence[UUID]) -> Steps[int]:
    """Looks at all parents of these tasks; how many of them were not as they should be."""
    if not ids:
        return 0
    yield BEGIN
    before = yield from locked(ids)
    parents = yield from _parents(list(before.values()))
    ends = yield from _ends(parents)
    after = {row.id: recounted(row, parents[row.id], ends) for row in before.values()}
    written = yield from write_children(before, after)
    yield from _end([row for row in after.values() if row.over and not before[row.id].over])
    return written


def told(rows: Iterable[Settled]) -> Steps[list[str]]:
    """Tells and counts what the statement did not tell and count by itself. The ids of what was missed."""
    missed: list[str] = []
    claimable: set[str] = set()
    finished: list[UUID] = []
    counts: list[tuple[Any, ...]] = []
    for row in rows:
        missed += row.missed
        claimable.update(row.claimable)
        finished += map(UUID, row.finished)
        counts += [(datetime.fromisoformat(minute), *cell) for minute, *cell in row.counts or ()]
    if counts:
        yield from merge_counts(counts)
    if claimable or finished:
        yield Notify(sorted(claimable), finished)
    return missed


def _end(level: Sequence[Child]) -> Steps[None]:
    """These are over: what waits for them, and what that cuts off, and so on."""
    before: dict[UUID, Child] = {}
    after: dict[UUID, Child] = {}
    while level:
        ends: dict[UUID, list[End]] = {}
        for parent in level:
            for child in dict.fromkeys(parent.feeds):
                ends.setdefault(child, []).append(parent.end)
        yield from _look(ends, "pending", before, after)
        level = []
        for child, of_child in ends.items():
            row = after.get(child)
            if row is not None:
                after[child] = moved = after_ends(row, of_child)
                if moved.over and not row.over:
                    level.append(moved)
    yield from write_children(before, after)


def _take_back(level: Sequence[Child]) -> Steps[None]:
    """These are to run again: what was cut off because of them waits for them again, and so on. Where one of them waits
    for another it stays as it is: it is looked at when this is written, with all that follows from it."""
    settled = {row.id for row in level}
    before: dict[UUID, Child] = {}
    after: dict[UUID, Child] = {}
    parents: dict[UUID, tuple[UUID, ...] | None] = {}
    ends: dict[UUID, End] = {}
    while level:
        children = dict.fromkeys(child for parent in level for child in parent.feeds)
        new = yield from _look(children, "cancelled", before, after)
        found = yield from _parents(new)
        parents |= found
        ends |= yield from _ends(found)
        level = []
        for child in children:
            row = after.get(child)
            if row is not None and child not in settled:
                seen = ends | {parent: after[parent].end for parent in parents[child] or () if parent in after}
                after[child] = moved = recounted(row, parents[child], seen)
                if row.over and not moved.over:
                    level.append(moved)
    yield from write_children(before, after)


def _look(ids: Iterable[UUID], state: str, before: dict[UUID, Child], after: dict[UUID, Child]) -> Steps[list[Child]]:
    """Locks those that are not yet, and with them what may follow them from this state, so that a long chain takes few
    statements. Gives the new ones."""
    unknown = [child for child in ids if child not in before]
    if not unknown:
        return []
    guessed: list[UUID] = yield Query("below", ID, ids=unknown, state=state, most=_MOST)
    new = yield from locked([each for each in dict.fromkeys([*unknown, *guessed]) if each not in before])
    before |= new
    after |= new
    return list(new.values())


def locked(ids: Sequence[UUID]) -> Steps[dict[UUID, Child]]:
    rows: list[Child] = (yield Query("lock_children", CHILD, ids=list(ids))) if ids else []
    return {row.id: row for row in rows}


def _ends(parents: Mapping[UUID, tuple[UUID, ...] | None]) -> Steps[dict[UUID, End]]:
    distinct = list(dict.fromkeys(parent for each in parents.values() for parent in each or ()))
    rows: list[End] = (yield Query("ends", END, ids=distinct)) if distinct else []
    return {row.id: row for row in rows}


def _parents(children: Sequence[Child]) -> Steps[dict[UUID, tuple[UUID, ...] | None]]:
    """Of each; those of which there are many from beside their rows. None where some of those are gone."""
    found: dict[UUID, tuple[UUID, ...] | None] = {child.id: parent_ids(child.after) for child in children}
    many = [child for child in children if found[child.id] is None]
    if many:
        kept: dict[UUID, list[UUID]] = {}
        for child_id, value in (yield from parent_steps([child.id for child in many])):
            kept.setdefault(child_id, []).extend(as_ids(value.get("parents")))
        for child in many:
            named = kept.get(child.id, [])
            if len(named) == (child.after or {}).get("parents"):
                found[child.id] = tuple(named)
    return found


def parent_steps(ids: Sequence[UUID]) -> Steps[list[tuple[UUID, dict[str, Any]]]]:
    """What is kept beside the rows of these tasks of their many parents, in order."""
    rows: list[tuple[UUID, str, str]] = yield Query("parent_steps", STEP, ids=list(ids))
    values = [(task_id, json.loads(value)) for task_id, _, value in rows]
    return [(task_id, value) for task_id, value in values if isinstance(value, dict)]


def write_children(before: Mapping[UUID, Child], after: Mapping[UUID, Child]) -> Steps[int]:
    rows = [_row(before[row.id], row) for row in after.values() if row != before[row.id]]
    if rows:
        yield from told((yield Query("move_children", SETTLED, batch=Batch(MOVED, rows))))
    return len(rows)


def _row(old: Child, new: Child) -> tuple[Any, ...]:
    """In the order of `MOVED`."""
    after = None if new.after is None else json.dumps(new.after, ensure_ascii=False, separators=(",", ":"))
    cut = new.over and not old.over
    leaves = old.state if old.over and not new.over else None
    return (new.id, new.version, new.state, new.waits, after, new.error, new.released, cut, leaves)
