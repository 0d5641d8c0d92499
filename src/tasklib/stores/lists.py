"""How a list is served: which of the indexes hold what a filter asks for, and which ids need not be looked at.

A filter falls into arms. Each arm has an index of its own that gives it in the order of the ids, or is small enough to
be sorted; no task is in two of them, and together they hold every task, also those that somebody edited by hand:

- finished tasks of given names, by `ix_tasks_finished`;
- failed and cancelled ones, by `ix_tasks_failed`;
- what runs, what is pending: their indexes are for the claim, so these are sorted;
- what no code of ours writes (an unknown state, say), by `ix_tasks_odd`, which is empty.

What fits none of this is met soon by walking the primary key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from tasklib.core.ids import uuid7
from tasklib.stores.values import Filter

FINISHED = ("completed", "failed", "cancelled")

SEARCHED_ROWS = 50_000
"""Searches by text or tag look at the newest so many tasks only."""
KNOWN_NAMES = 1_000
"""Where there are more task types than this, lists that name none of them walk the primary key."""
SORTED_ROWS = 120_000
"""So many pending tasks are sorted for a list; where there are more, walking meets them often enough."""
WALKED_ROWS = 20_000
"""Where there are more pending tasks than this, a page is first looked for among so many tasks from its beginning."""
NEAREST_ROWS = 10_000
"""Of tasks just outside a time range by their ids, so many are looked at on each side: see `Window`."""

_DAY = 86_400_000
_MINUTE = 60_000
_FIRST = UUID(int=0)
_LAST = UUID(int=(1 << 128) - 1)


class Arms(NamedTuple):
    finished: tuple[str, ...]
    """These finished states, by name."""
    failed: tuple[tuple[str, bool], ...]
    """These states, each with whether `completed_at` is null."""
    pending: bool
    running: bool


class Region(NamedTuple):
    """From one id to another, both included."""

    low: UUID
    high: UUID


def is_empty(where: Filter) -> bool:
    """An empty list matches nothing."""
    return any(given is not None and not given for given in (where.names, where.states, where.ids))


def searches(where: Filter) -> bool:
    """By what has no index."""
    return where.ids is None and bool(where.tags or where.error_text)


def wants_walk(where: Filter) -> bool:
    """Everything, or everything of some time: the primary key leads straight to it."""
    given = (where.names, where.name_prefix or None, where.states, where.terminal, where.worker_id)
    return all(value is None for value in given)


def wants_known_names(where: Filter, *, states: Sequence[str] = ("completed",)) -> bool:
    """Whether it helps to know which names there are: the filter asks for finished tasks, and names no type. `states`
    are those that are found by name alone."""
    if where.names is not None or where.terminal is False:
        return False
    return bool(where.name_prefix) or any(_has(where, state) for state in states)


def names_of(where: Filter, known: Sequence[str] | None) -> list[str] | None:
    """The names that the filter can mean among the finished. None: it may be any, or there are too many."""
    if where.names is not None:
        names = where.names
    elif known is None or len(known) > KNOWN_NAMES:
        return None
    else:
        names = known
    return [name for name in dict.fromkeys(names) if name.startswith(where.name_prefix or "")]


def needs_walk(where: Filter, by_name: bool) -> bool:
    """Completed tasks have no other index than that by name."""
    return where.worker_id is None and not by_name and where.terminal is not False and _has(where, "completed")


def arms(where: Filter, by_name: bool) -> Arms:
    if where.worker_id is not None:  # only what runs has a worker
        return Arms((), (), pending=False, running=True)
    may_be_over, may_be_open = where.terminal is not False, where.terminal is not True
    finished = tuple(state for state in FINISHED if may_be_over and by_name and _has(where, state))
    failed = [(state, True) for state in ("failed", "cancelled") if may_be_open and _has(where, state)]
    if not by_name:
        failed += [(state, False) for state in ("failed", "cancelled") if may_be_over and _has(where, state)]
    return Arms(finished, tuple(failed), pending=may_be_open and _has(where, "pending"), running=_has(where, "running"))


def _has(where: Filter, state: str) -> bool:
    return where.states is None or state in where.states


class Window:
    """A time range as a range of ids.

    Ids carry the time by the submitter's clock, `created_at` is by the database's. So a task may lie outside by its id
    although it was created inside: it is looked for up to a day away, but no further than the nearest 10,000 tasks (and
    always a minute away). Beyond tomorrow there are only ids that were made by hand, or under a clock that is far
    ahead: those are always looked at."""

    def __init__(self, where: Filter, clock_offset: float) -> None:
        # The offset moves `created_at`, not the ids. It may have been anything between zero and what it is now.
        after, before = where.created_after, where.created_before
        self._after = None if after is None else _milliseconds(after.timestamp() - max(0.0, clock_offset))
        self._before = None if before is None else _milliseconds(before.timestamp() - min(0.0, clock_offset)) + 1

    @property
    def low(self) -> UUID | None:
        """Below it, the nearest tasks count."""
        return None if self._after is None else _id_at(self._after - _MINUTE)

    @property
    def high(self) -> UUID | None:
        return None if self._before is None else _id_at(self._before + _MINUTE)

    def regions(self, now: float, nearest_below: UUID | None, nearest_above: UUID | None) -> list[Region]:
        """`nearest_...`: the id that ends the nearest tasks on that side; None where there are not so many."""
        low = _FIRST if self._after is None else max(_id_at(self._after - _DAY), nearest_below or _FIRST)
        if self._before is None:
            return [Region(low, _LAST)]
        high = min(_id_at(self._before + _DAY), nearest_above or _LAST)
        future = _id_at(_milliseconds(now) + _DAY)
        if high >= future:
            return [Region(low, _LAST)]
        return [Region(low, high), Region(max(low, future), _LAST)]


def narrowed(regions: Iterable[Region], *, above: UUID | None = None, below: UUID | None = None) -> list[Region]:
    """What of the regions lies between two ids, which are excluded."""
    least = _FIRST if above is None else UUID(int=min(above.int + 1, _LAST.int))
    most = _LAST if below is None else UUID(int=max(below.int - 1, 0))
    found = [Region(max(low, least), min(high, most)) for low, high in regions]
    if above == _LAST or below == _FIRST:
        return []
    return [region for region in found if region.low <= region.high]


def _id_at(milliseconds: int) -> UUID:
    return uuid7(max(0, milliseconds), 0, 0)


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
