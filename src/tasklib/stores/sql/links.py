"""How new tasks are linked to those that they wait for: of the same batch, or there already.

Whoever links to a task that is there locks it first: its end then waits, and finds the link. What has ended already
counts at once. All of it is one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from tasklib.core.errors import InvalidOption, TaskConflict
from tasklib.core.flows import FLOW_FEEDS_LIMIT, INLINE_PARENTS, NEVER, After, Child, after_json, in_order, resolved
from tasklib.core.task import NewTask
from tasklib.stores.sql.columns import ID, PLAIN_FIELDS, ROW_COUNT, Batch
from tasklib.stores.sql.flow_columns import FEEDS, STEP
from tasklib.stores.sql.release import PARENTS_STEP, locked, write_children
from tasklib.stores.sql.steps import Query, Steps

_BELOW = 100_000
_SIDE_BY_SIDE = 256
"""So many tasks are put in another order at a time: as many as SQLite stores in one statement, and at one instant."""
_ALIKE = 100
"""More parents than these that have the same children are told by a statement of their own."""


class Linked(NamedTuple):
    """A new task with what its links come to."""

    task: NewTask
    after: After | None
    waits: int
    feeds: tuple[UUID, ...]
    lost: bool
    """It needs the success of one that has failed."""

    @property
    def due(self) -> NewTask:
        """What waits is never due: its own time is kept in the column `after`."""
        return self.task._replace(delay_seconds=None, run_at=NEVER) if self.waits > 0 else self.task

    @property
    def links(self) -> tuple[Any, ...]:
        """In the order of `LINKS`."""
        task = self.task
        after = after_json(self.after, delay_seconds=task.delay_seconds, run_at=task.run_at, flow_name=task.flow_name)
        return (task.id, self.waits, after, task.flow_id, _ids(self.feeds) if self.feeds else None)

    @property
    def row(self) -> tuple[Any, ...]:
        """In the order of `FLOW_TASK`."""
        return (*self.due[:PLAIN_FIELDS], *self.links[1:])

    def steps(self) -> list[tuple[UUID, str, str]]:
        """In the order of `STEP`: parents that are too many for the row."""
        if self.after is None or len(self.after.parents) <= INLINE_PARENTS:
            return []
        paths: dict[UUID, list[str]] = {}
        for path, parent in self.after.inputs:
            paths.setdefault(parent, []).append(path)
        steps = []
        for start in range(0, len(self.after.parents), INLINE_PARENTS):
            chunk = self.after.parents[start : start + INLINE_PARENTS]
            value: dict[str, Any] = {"parents": [str(parent) for parent in chunk]}
            if inputs := {path: str(parent) for parent in chunk for path in paths.get(parent, ())}:
                value["inputs"] = inputs
            steps.append((self.task.id, f"{PARENTS_STEP}{start // INLINE_PARENTS:06}", json.dumps(value)))
        return steps


def link(tasks: Sequence[NewTask], known: Mapping[UUID, UUID]) -> Steps[list[Linked]]:
    """What the links of new tasks come to; they are written with the tasks. Those that are there are locked, and know
    of their children when this is over. `known`: tasks that another one stands for, which had their key."""
    new = {task.id: resolved(task.after, known) for task in tasks}
    outside: list[tuple[UUID, UUID]] = []
    inside: dict[UUID, list[UUID]] = {}
    for task in tasks:
        for child in dict.fromkeys(known.get(child, child) for child in task.before):
            if child in new:
                inside.setdefault(child, []).append(task.id)
            else:
                outside.append((task.id, child))
    for child, parents in inside.items():
        of_child = new[child] or After(())
        # Each once: a link may be said from both sides.
        new[child] = of_child._replace(parents=tuple(dict.fromkeys([*of_child.parents, *parents])))
    _check_order(new)
    found = yield from locked(
        [parent for after in new.values() if after for parent in after.parents if parent not in new]
    )
    feeds: dict[UUID, list[UUID]] = {}
    waits = dict.fromkeys(new, 0)
    depths = dict.fromkeys(new, 0)
    lost: set[UUID] = set()
    for task_id, after in new.items():
        for parent in () if after is None else after.parents:
            if parent not in new and parent not in found:
                raise InvalidOption(f"after: there is no task {parent} to wait for", field="after")
            feeds.setdefault(parent, []).append(task_id)
            on = "" if after is None else after.on
            waits[task_id] += parent in new or not found[parent].end.done(on)
            depths[task_id] = max(depths[task_id], depths.get(parent, 0) + 1)
            if parent in found and found[parent].end.failed(on):
                lost.add(task_id)
    yield from _put_before(outside, new, feeds)
    for parent, children in feeds.items():
        _check_feeds(parent, len(children) + (len(found[parent].feeds) if parent in found else 0))
    linked = [
        Linked(task, new[task.id], waits[task.id], tuple(feeds.pop(task.id, ())), task.id in lost) for task in tasks
    ]
    yield from _feed(feeds)
    yield from _add_steps([step for each in linked for step in each.steps()])
    return _side_by_side(linked, depths)


def _side_by_side(linked: Sequence[Linked], depths: Mapping[UUID, int]) -> list[Linked]:
    """What can run at the same time is stored together: of many chains the first links, then the second ones. What is
    claimed, ends and is released together is on few pages then. Of some at a time, so that all keep their turn."""
    parts = (linked[start : start + _SIDE_BY_SIDE] for start in range(0, len(linked), _SIDE_BY_SIDE))
    return [each for part in parts for each in sorted(part, key=lambda each: depths[each.task.id])]


def _check_order(new: Mapping[UUID, After | None]) -> None:
    """Tasks of one batch that wait for each other would wait for ever."""
    seen: set[UUID] = set()
    for task_id, after in new.items():
        if after is not None and any(parent in new and parent not in seen for parent in after.parents):
            in_order({each: [p for p in (of.parents if of else ()) if p in new] for each, of in new.items()})
            return
        seen.add(task_id)


def _check_feeds(parent: UUID, number: int) -> None:
    if number > FLOW_FEEDS_LIMIT:
        raise InvalidOption(
            f"after: {number} tasks would wait for task {parent}, at most {FLOW_FEEDS_LIMIT} can; submit more from a "
            "task that waits for it",
            field="after",
        )


def _put_before(
    pairs: Sequence[tuple[UUID, UUID]], new: Mapping[UUID, After | None], feeds: dict[UUID, list[UUID]]
) -> Steps[None]:
    """Tasks that are there, and wait, wait for these new ones, too."""
    if not pairs:
        return
    children = yield from locked([child for _, child in pairs])
    below: set[UUID] = set((yield Query("below", ID, ids=list(children), state=None, most=_BELOW)))
    written = dict(children)
    steps: list[tuple[UUID, str, str]] = []
    for task_id, child_id in pairs:
        child = written.get(child_id)
        if child is None:
            raise InvalidOption(f"before: there is no task {child_id}", field="before")
        if not child.waiting:
            message = f"before: task {child_id} was released already; it waits for nothing, and is {child.state}"
            raise TaskConflict(message, task_id=child_id, state=child.state)
        after = new[task_id]
        if after is not None and not below.isdisjoint(after.parents):
            raise InvalidOption(f"before: task {child_id} cannot wait for what waits for it", field="before")
        feeds.setdefault(task_id, []).append(child_id)
        written[child_id], step = _one_more(child, task_id)
        steps += step
    yield from write_children(children, written)
    yield from _add_steps(steps)


def _one_more(child: Child, parent: UUID) -> tuple[Child, list[tuple[UUID, str, str]]]:
    """The child with a further parent, and what is kept beside its row of that."""
    after = dict(child.after or {})
    named = after.get("parents", [])
    steps = []
    if isinstance(named, int):
        after["parents"] = named + 1
        steps.append((child.id, f"{PARENTS_STEP}{parent}", json.dumps({"parents": [str(parent)]})))
    else:
        after["parents"] = [*(named if isinstance(named, list) else ()), str(parent)]
    return child._replace(waits=child.waits + 1, after=after), steps


def _feed(feeds: Mapping[UUID, list[UUID]]) -> Steps[None]:
    """Tells parents of their children. Those of a fan-in, which all have the same, together."""
    alike: dict[tuple[UUID, ...], list[UUID]] = {}
    for parent, children in sorted(feeds.items()):
        alike.setdefault(tuple(children), []).append(parent)
    rows: list[tuple[UUID, str]] = []
    for same, parents in alike.items():
        if len(parents) > _ALIKE:
            yield Query("add_children", ids=parents, children=list(same))
        else:
            rows += [(parent, _ids(same)) for parent in parents]
    if rows:
        yield Query("add_feeds", ROW_COUNT, batch=Batch(FEEDS, rows))


def _add_steps(steps: Sequence[tuple[UUID, str, str]]) -> Steps[None]:
    if steps:
        yield Query("add_steps", ROW_COUNT, batch=Batch(STEP, steps))


def _ids(ids: Sequence[UUID]) -> str:
    return json.dumps([str(each) for each in ids])
