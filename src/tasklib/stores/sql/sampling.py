"""The looks of janitors at what waits: read first, without a lock, then kept once in a minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from tasklib.stores.samples import ENDS, LEVEL, LONGEST_GAP, Cell, Earlier, Waiting, cells_of
from tasklib.stores.sql.columns import ACTIVE, NOW, POINT, VERSION_START, Active
from tasklib.stores.sql.steps import BEGIN, Query, Steps
from tasklib.stores.sql.upkeep import add_counts
from tasklib.stores.values import Point, VersionStart


def look() -> Steps[list[Cell]]:
    """None where this minute has its sample."""
    clock: list[datetime] = yield Query("clock_if_unsampled", NOW)
    if not clock:
        return []
    [moment] = clock
    minute = moment.replace(second=0, microsecond=0)
    active: list[Active] = yield Query("stats_active", ACTIVE)
    cells: list[Point] = yield Query("latest_cells", POINT, since=minute - LONGEST_GAP, states=[LEVEL, *ENDS])
    levels_at = (cell.minute for cell in cells if cell.state == LEVEL and not cell.name)
    earlier = max((at for at in levels_at if at < minute), default=None)  # a clock may have been set back
    before = None
    if earlier is not None:
        levels = {cell.name: cell.count for cell in cells if cell.state == LEVEL and cell.minute == earlier}
        before = Earlier(earlier, levels, _ended(cells, earlier, minute))
    ended = _ended(cells, minute, minute + timedelta(minutes=1))
    return cells_of(minute, _waiting(active, moment), ended, before)


def keep(cells: Sequence[Cell]) -> Steps[None]:
    """Unless somebody else was quicker: what came would be counted twice."""
    yield BEGIN
    yield Query("sample_lock")
    if (yield Query("sampled", minute=cells[0][0])):
        return
    yield from add_counts(cells)
    yield Query("note_versions")


def versions() -> Steps[list[VersionStart]]:
    found: list[VersionStart] = yield Query("versions", VERSION_START)
    return found


def _ended(cells: Sequence[Point], since: datetime, before: datetime) -> Counter[str]:
    sums: Counter[str] = Counter()
    for cell in cells:
        if cell.state in ENDS and since <= cell.minute < before:
            sums[cell.name] += cell.count
    return sums


def _waiting(active: Sequence[Active], moment: datetime) -> dict[str, Waiting]:
    found: dict[str, Waiting] = {}
    for each in active:
        had = found.get(each.name, Waiting())
        oldest = 0 if each.due_at is None else round(1000 * (moment - each.due_at).total_seconds())
        found[each.name] = Waiting(
            had.unfinished + each.number,
            had.due + (each.number if each.ready else 0),
            max(had.oldest_ms, oldest if each.ready else 0),
        )
    return found
