"""What a janitor sees once a minute of what waits, and what follows from it: how many tasks came in between.

Nobody counts submits: a statement more for each of them would be too much. Between two looks, as many tasks came as
ended plus as many as more are unfinished than before. Cells are those of the counters behind charts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

from tasklib.core.decide import UNTIMED

ENDS = ("completed", "failed", "cancelled")
WAITED = "waited"
"""Cells of how long tasks waited from when they were due to their first start, by bucket; written with their end."""
ARRIVED = "arrived"
"""Tasks that came in that minute: submitted, or retried by hand. The cell with the empty name is of all types, and says
that this minute is known."""
BACKLOG = "backlog"
"""A sample: how many tasks were due and waited, and for how many milliseconds the oldest."""
LEVEL = "level"
"""A sample: how many were unfinished, and had ended since the minute began. From one to the next it grows by what came,
less what ended in the minutes between their begins."""
SAMPLES = (BACKLOG, LEVEL)
"""Where cells of these are merged, the most is kept; all others are summed up."""
VERSION = "version"
"""Of the workers' application: its name, and when it was first started, in milliseconds since 1970."""

LONGEST_GAP = timedelta(minutes=5)
"""Between two looks. What came in a longer one is not known."""


class Waiting(NamedTuple):
    """The unfinished tasks of one type."""

    unfinished: int = 0
    due: int = 0
    """Of these, those that could start."""
    oldest_ms: int = 0
    """How long the oldest of them has been due."""


class Earlier(NamedTuple):
    """The look before."""

    minute: datetime
    levels: Mapping[str, int]
    ended: Mapping[str, int]
    """From the begin of its minute to that of this one."""


Cell: TypeAlias = tuple[datetime, str, str, int, int, int]
"""Minute, name, state, bucket, count and time, as the table has them."""


def cells_of(
    minute: datetime, waiting: Mapping[str, Waiting], ended: Mapping[str, int], earlier: Earlier | None
) -> list[Cell]:
    """`ended`: since the minute began. The empty name is for all types, also when nothing waits: that was seen too."""
    due = {name: each for name, each in waiting.items() if each.due}
    levels = {name: each.unfinished + ended.get(name, 0) for name, each in waiting.items()}
    levels = {**ended, **levels}
    cells: list[Cell] = [(minute, name, BACKLOG, UNTIMED, each.due, each.oldest_ms) for name, each in due.items()]
    oldest = max((each.oldest_ms for each in due.values()), default=0)
    cells.append((minute, "", BACKLOG, UNTIMED, sum(each.due for each in due.values()), oldest))
    cells += [(minute, name, LEVEL, UNTIMED, level, 0) for name, level in levels.items() if level]
    cells.append((minute, "", LEVEL, UNTIMED, sum(levels.values()), 0))
    return cells if earlier is None else cells + _arrived(levels, earlier)


def _arrived(levels: Mapping[str, int], earlier: Earlier) -> list[Cell]:
    names = {*levels, *earlier.levels, *earlier.ended} - {""}
    came = {
        name: levels.get(name, 0) - earlier.levels.get(name, 0) + earlier.ended.get(name, 0) for name in sorted(names)
    }
    cells: list[Cell] = [(earlier.minute, name, ARRIVED, UNTIMED, number, 0) for name, number in came.items() if number]
    return [*cells, (earlier.minute, "", ARRIVED, UNTIMED, sum(came.values()), 0)]
