"""The counters: cells of (minute, type, end, latency), kept in the same atomic batch as the tasks they count.

Each store writes an entry of its own for each minute, so that nobody waits for anybody; tidying merges what is past into
entries by hour, by day and, in the end, into one.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tasklib.core.decide import UNTIMED, Change
from tasklib.core.task import TaskState
from tasklib.stores.base import Point
from tasklib.stores.nats import keys
from tasklib.stores.nats.bucket import LARGEST_BATCH, Bucket, Entry, Write
from tasklib.stores.nats.clock import EPOCH
from tasklib.stores.nats.failures import Conflict

MINUTES_KEPT = timedelta(days=2)
HOURS_KEPT = timedelta(days=60)
_LIVE = timedelta(minutes=3)
"""Entries this young may still be written to."""
_EPOCH_MINUTE = 0


class Cell(NamedTuple):
    minute: int
    """Seconds since 1970; 0 for what belongs to no minute."""
    name: str
    state: str
    bucket: int


class Cells:
    """Counts and times by cell."""

    def __init__(self) -> None:
        self.counts: Counter[Cell] = Counter()
        self.times: Counter[Cell] = Counter()

    def add(self, cell: Cell, count: int, run_ms: int) -> None:
        self.counts[cell] += count
        if run_ms:
            self.times[cell] += run_ms

    def include(self, other: Cells) -> None:
        self.counts.update(other.counts)
        self.times.update(other.times)

    def encode(self) -> bytes:
        return json.dumps([[*cell, count, self.times[cell]] for cell, count in self.counts.items()]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Cells:
        cells = cls()
        for *cell, count, run_ms in json.loads(data):
            cells.add(Cell(*cell), count, run_ms)
        return cells

    def note(self, change: Change, name: str, minute: int) -> None:
        """What a change counts for; releases and snoozes count for nothing."""
        if change.terminal:
            self.add(Cell(minute, name, str(change.state), change.bucket), 1, change.run_ms)
        elif change.state == TaskState.FAILED:
            self.add(Cell(minute, name, "retried", change.bucket), 1, change.run_ms)
        if change.leaves is not None:
            self.remove(name, str(change.leaves))

    def remove(self, name: str, state: str) -> None:
        self.add(Cell(_EPOCH_MINUTE, name, state, UNTIMED), -1, 0)

    def __bool__(self) -> bool:
        return bool(self.counts)


class _Lane:
    """One entry that is being written to, by one call at a time."""

    def __init__(self) -> None:
        self.minute = -1
        self.key = ""
        self.revision = 0
        self.cells = Cells()


class Counting:
    """One call's counts, on their way into a lane."""

    def __init__(self, counts: Counts, lane: _Lane, minute: int) -> None:
        self._counts = counts
        self._lane = lane
        if lane.minute != minute:
            lane.minute, lane.key, lane.revision, lane.cells = minute, counts.key(minute), 0, Cells()

    def write(self, cells: Cells) -> list[Write]:
        """What to put in the batch."""
        if not cells:
            return []
        merged = Cells()
        merged.include(self._lane.cells)
        merged.include(cells)
        return [Write(self._lane.key, self._lane.revision, merged.encode())]

    def written(self, cells: Cells, revision: int) -> None:
        if cells:
            self._lane.cells.include(cells)
            self._lane.revision = revision

    def abandon(self) -> None:
        """Nobody knows whether it was written: the lane goes on in a new entry."""
        self._lane.minute = -1

    def release(self) -> None:
        self._counts.idle.append(self._lane)


class Counts:
    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self.idle: list[_Lane] = []

    def begin(self) -> Counting:
        lane = self.idle.pop() if self.idle else _Lane()
        return Counting(self, lane, self.minute())

    def minute(self) -> int:
        return self._bucket.clock.micros() // 60_000_000 * 60

    def key(self, minute: int) -> str:
        return f"{keys.COUNT}m.{minute}.{secrets.token_hex(6)}"

    # -- looking ------------------------------------------------------------------------------------------------------

    async def totals(self) -> dict[tuple[str, str], int]:
        sums: Counter[tuple[str, str]] = Counter()
        for entry in await self._bucket.under(keys.COUNT):
            for cell, count in Cells.decode(entry.data).counts.items():
                sums[cell.name, cell.state] += count
        return sums

    async def series(self, since_seconds: float) -> Sequence[Point]:
        since = self._bucket.clock.micros() // 1_000_000 - since_seconds
        cells = Cells()
        for entry in await self._bucket.under(keys.COUNT):
            found = Cells.decode(entry.data)
            for cell, count in found.counts.items():
                if cell.minute >= since - 60 and cell.minute != _EPOCH_MINUTE:
                    cells.add(cell, count, found.times[cell])
        return [
            Point(EPOCH + timedelta(seconds=cell.minute), cell.name, cell.state, cell.bucket, count, cells.times[cell])
            for cell, count in sorted(cells.counts.items())
        ]

    # -- merging ------------------------------------------------------------------------------------------------------

    async def tidy(self) -> None:
        await self._bucket.run(self._tidy)

    async def _tidy(self) -> None:
        now = self._bucket.clock.now()
        entries = {entry.key: entry for entry in await self._bucket.under(keys.COUNT)}
        groups: dict[str, list[Entry]] = {}
        for entry in entries.values():
            target = _target(entry.key, now)
            if target is not None:
                groups.setdefault(target, []).append(entry)
        for target, merged in groups.items():
            await self._merge(target, entries.get(target), merged[: LARGEST_BATCH - 1])

    async def _merge(self, target: str, there: Entry | None, merged: Iterable[Entry]) -> None:
        """In one batch: what comes in is gone elsewhere, whoever tidies at the same time."""
        cells = Cells() if there is None else Cells.decode(there.data)
        for entry in merged:
            found = Cells.decode(entry.data)
            for cell, count in found.counts.items():
                cells.add(_coarser(cell, target), count, found.times[cell])
        data = cells.encode()
        if len(data) > self._bucket.link.max_payload // 2:
            return  # better many entries than one that nobody can write
        if there is None:
            there = (await self._bucket.read([target])).get(target)
        writes = [Write(entry.key, entry.revision, deletes=True) for entry in merged]
        try:
            await self._bucket.write([*writes, Write(target, 0 if there is None else there.revision, data)])
        except Conflict:
            pass  # another janitor did it


def _target(key: str, now: datetime) -> str | None:
    """Where an entry's counts belong by now; None: where they are."""
    kind, _, rest = key.removeprefix(keys.COUNT).partition(".")
    if kind == "total":
        return None
    start = EPOCH + timedelta(seconds=int(rest.partition(".")[0]))
    if now - start > HOURS_KEPT + timedelta(days=1):
        return f"{keys.COUNT}total"
    if now - start > MINUTES_KEPT + timedelta(hours=1):
        day = start.astimezone(UTC).replace(hour=0, minute=0, second=0)
        target = f"{keys.COUNT}d.{_seconds(day)}"
    elif kind == "m" and now - start > _LIVE:
        target = f"{keys.COUNT}h.{_seconds(start.replace(minute=0, second=0))}"
    else:
        return None
    return None if target == key else target


def _coarser(cell: Cell, target: str) -> Cell:
    if target.startswith(f"{keys.COUNT}h.") or cell.minute == _EPOCH_MINUTE:
        return cell
    if target.startswith(f"{keys.COUNT}d."):
        return cell._replace(minute=cell.minute // 3600 * 3600)
    return cell._replace(minute=_EPOCH_MINUTE, bucket=UNTIMED)


def _seconds(moment: datetime) -> int:
    return int((moment - EPOCH).total_seconds())
