"""What a task waits for, and what waits for it, as far as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tasklib.core.flows import Feeds, Parent, parent_ids
from tasklib.core.task import Task
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter

SHOWN = 20
"""Of each kind; there may be ten thousands."""


_NONE = Feeds((), 0, 0)


class Links(NamedTuple):
    tasks: Sequence[Parent]
    """The first `SHOWN` that are there."""
    total: int
    unfinished: int
    """Of all; of parents, those that are still waited for."""


class Linked(NamedTuple):
    parents: Links
    """Those that are not over come first."""
    feeds: Links


async def linked(engine: Engine, task: Task) -> Linked:
    store = await engine.store()
    parents, total = parent_ids(task.after), parents_total(task)
    if parents is None:
        after = await store.after_of(task.id)
        parents = () if after is None else after.parents[:SHOWN]
    elif total > SHOWN:
        unfinished = await engine.page(Filter(ids=parents, terminal=False), limit=SHOWN, oldest_first=True)
        parents = tuple(dict.fromkeys([*(each.id for each in unfinished.tasks), *parents]))[:SHOWN]
    feeds = await store.feeds(task.id, SHOWN) if task.fed else _NONE
    found = {each.id: each for each in await store.parents([*parents, *feeds.ids])} if parents or feeds.ids else {}
    by_end = sorted((found[each] for each in parents if each in found), key=lambda each: each.over)
    fed = [found[each] for each in feeds.ids if each in found]
    return Linked(Links(by_end, total, max(task.waits, 0)), Links(fed, feeds.number, feeds.unfinished))


def parents_total(task: Task) -> int:
    """How many tasks it waits, or waited, for."""
    parents = parent_ids(task.after)
    return int((task.after or {})["parents"]) if parents is None else len(parents)
