"""The counters behind charts: cells of (minute, type, end, latency).

Each store adds up what it settles and writes it a few times a second to an entry of its own for each minute, so that
nobody waits for anybody; compaction merges what is past into entries by hour, by day and, in the end, into one. They
are figures for people: a process that is killed takes its latest with it. Totals of tasks do not come from here.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tasklib.core.decide import UNTIMED, Change, bucket_of
from tasklib.core.errors import StoreError
from tasklib.core.task import TaskState
from tasklib.stores.nats import keys
from tasklib.stores.nats.clock import EPOCH
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.kv import LARGEST_BATCH, Entry, KeyValueStore, Write
from tasklib.stores.samples import (
    BACKLOG,
    ENDS,
    LEVEL,
    LONGEST_GAP,
    SAMPLES,
    VERSION,
    WAITED,
    Earlier,
    Waiting,
    cells_of,
)
from tasklib.stores.values import Age, Point, VersionStart, WorkerInfo

log = logging.getLogger("tasklib.store")

MINUTES_KEPT = timedelta(days=2)
HOURS_KEPT = timedelta(days=60)
_LIVE = timedelta(minutes=3)
"""Entries this young may still be written to."""
_VERSIONS = f"{keys.COUNT}total.versions"
_FLUSH_SECONDS = 0.25
_CLOSE_SECONDS = 2.0


class Cell(NamedTuple):
    minute: int
    """Seconds since 1970; 0 for what is too old to belong to any."""
    name: str
    state: str
    bucket: int


class Cells:
    """Counts and times by cell: summed up, but of samples the most is kept, and of versions the first start."""

    def __init__(self) -> None:
        self.counts: Counter[Cell] = Counter()
        self.times: Counter[Cell] = Counter()

    def add(self, cell: Cell, count: int, run_ms: int) -> None:
        if cell.state in SAMPLES:
            self.counts[cell] = max(self.counts[cell], count)
            self.times[cell] = max(self.times[cell], run_ms)
            return
        if cell.state == VERSION:
            self.counts[cell] = 1
            self.times[cell] = min(self.times[cell] or run_ms, run_ms)
            return
        self.counts[cell] += count
        if run_ms:
            self.times[cell] += run_ms

    def include(self, other: Cells) -> None:
        for cell, count in other.counts.items():
            self.add(cell, count, other.times[cell])

    def encode(self) -> bytes:
        return json.dumps([[*cell, count, self.times[cell]] for cell, count in self.counts.items()]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Cells:
        cells = cls()
        for *cell, count, run_ms in json.loads(data):
            cells.add(Cell(*cell), count, run_ms)
        return cells


class _Page:
    """This store's entry for one minute."""

    def __init__(self, minute: int) -> None:
        self.key = f"{keys.COUNT}m.{minute}.{secrets.token_hex(6)}"
        self.revision = 0
        self.written = Cells()
        self.fresh = Cells()
        """Not written yet."""


class Counts:
    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv
        self._pages: dict[int, _Page] = {}
        self._flushing = asyncio.Lock()
        self._flusher: asyncio.Task[None] | None = None
        self._flushed_at = float("-inf")

    def note(self, change: Change, name: str, waited_ms: int | None) -> None:
        """What a change counts for; releases and snoozes count for nothing. `waited_ms`: how long the task had waited,
        if that is known and was not counted before."""
        if change.terminal:
            state = str(change.state)
        elif change.state == TaskState.FAILED:
            state = "retried"
        else:
            return
        minute = self._kv.clock.micros() // 60_000_000 * 60
        page = self._pages.get(minute)
        if page is None:
            page = self._pages[minute] = _Page(minute)
        page.fresh.add(Cell(minute, name, state, change.bucket), 1, change.run_ms)
        if waited_ms is not None:
            page.fresh.add(Cell(minute, name, WAITED, bucket_of(waited_ms)), 1, waited_ms)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.get_running_loop().create_task(self._flush_soon())

    async def close(self) -> None:
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.wait([self._flusher])
            if not self._kv.connection.alive:  # the loop is on its way out, and has ended the connection already
                return
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self.flush()
            except (StoreError, TimeoutError) as error:
                log.warning("the latest counts are lost: %s", error)

    async def _flush_soon(self) -> None:
        loop = asyncio.get_running_loop()
        while any(page.fresh.counts for page in self._pages.values()):
            await asyncio.sleep(max(0.0, self._flushed_at + _FLUSH_SECONDS - loop.time()))
            self._flushed_at = loop.time()
            with suppress(StoreError):  # the next round has another chance
                await self.flush()

    async def flush(self) -> None:
        async with self._flushing:
            for page in list(self._pages.values()):
                if page.fresh.counts:
                    await self._kv.run(lambda page=page: self._write(page))  # type: ignore[misc]
            latest = max(self._pages, default=0)
            self._pages = {m: page for m, page in self._pages.items() if m == latest or page.fresh.counts}

    async def _write(self, page: _Page) -> None:
        while True:
            fresh, merged = page.fresh, Cells()
            merged.include(page.written)
            merged.include(fresh)
            page.fresh = Cells()
            try:
                page.revision = await self._kv.write([Write(page.key, page.revision, merged.encode())])
                page.written = merged
                return
            except BaseException as error:
                fresh.include(page.fresh)
                page.fresh = fresh
                if not isinstance(error, Conflict):
                    raise
            # The reply to an earlier write was lost, or the entry was merged with others.
            entry = (await self._kv.read([page.key])).get(page.key)
            if entry is not None and not entry.deleted:
                page.revision = entry.revision
            else:
                page.key, page.revision, page.written = f"{page.key}-", 0, Cells()

    # -- looking ------------------------------------------------------------------------------------------------------

    async def series(
        self, since_seconds: float, step_seconds: int, until_seconds: float, name: str | None
    ) -> Sequence[Point]:
        cells = await self._between(since_seconds, until_seconds, step_seconds)
        return [
            Point(EPOCH + timedelta(seconds=cell.minute), cell.name, cell.state, cell.bucket, count, cells.times[cell])
            for cell, count in sorted(cells.counts.items())
            if cell.state not in SAMPLES and name in (None, cell.name, cell.name or name)
        ]

    async def backlog_history(
        self, since_seconds: float, step_seconds: int, until_seconds: float, name: str | None
    ) -> Sequence[Age]:
        cells = await self._between(since_seconds, until_seconds, step_seconds)
        return [
            Age(EPOCH + timedelta(seconds=cell.minute), cell.name, cells.times[cell] / 1000, count)
            for cell, count in sorted(cells.counts.items())
            if cell.state == BACKLOG and name in (None, cell.name, cell.name or name)
        ]

    async def versions(self) -> Sequence[VersionStart]:
        entry = (await self._kv.run(lambda: self._kv.read([_VERSIONS]))).get(_VERSIONS)
        cells = Cells() if entry is None else Cells.decode(entry.data)
        found = [VersionStart(cell.name, started) for cell, started in cells.times.items()]
        return sorted(found, key=lambda each: (each.started_ms, each.version))

    async def _between(self, since_seconds: float, until_seconds: float, step: int) -> Cells:
        await self.flush()
        entries = await self._kv.run(lambda: self._kv.under(keys.COUNT))
        now = self._kv.clock.micros() / 1_000_000
        since, until = now - since_seconds - 60, now - until_seconds
        cells = Cells()
        for entry in entries:
            found = Cells.decode(entry.data)
            for cell, count in found.counts.items():
                if cell.minute and since <= cell.minute < until:
                    cells.add(cell._replace(minute=cell.minute // step * step), count, found.times[cell])
        return cells

    # -- sampling -----------------------------------------------------------------------------------------------------

    async def sample_backlog(
        self, waiting: Callable[[], Awaitable[dict[str, Waiting]]], workers: Callable[[], Awaitable[list[WorkerInfo]]]
    ) -> None:
        """Whoever creates the minute's entry has sampled it."""
        minute = self._kv.clock.micros() // 60_000_000 * 60
        key = f"{keys.COUNT}m.{minute}.backlog"
        if key in await self._kv.run(lambda: self._kv.read([key])):
            return
        found = await waiting()
        latest = await self._between(LONGEST_GAP.total_seconds(), 0.0, 60)
        levels_at = (c.minute for c in latest.counts if c.state == LEVEL and not c.name)
        earlier = max((at for at in levels_at if at < minute), default=None)  # a clock may have been set back
        before = None
        if earlier is not None:
            levels = {c.name: n for c, n in latest.counts.items() if c.state == LEVEL and c.minute == earlier}
            before = Earlier(_moment(earlier), levels, _ended(latest, earlier, minute))
        cells = Cells()
        for at, name, state, bucket, count, run_ms in cells_of(
            _moment(minute), found, _ended(latest, minute, minute + 60), before
        ):
            cells.add(Cell(_seconds(at), name, state, bucket), count, run_ms)
        try:
            await self._kv.run(lambda: self._kv.write([Write(key, 0, cells.encode())]))
        except Conflict:  # somebody else was quicker
            return
        await self._note_versions(await workers())

    async def _note_versions(self, workers: Sequence[WorkerInfo]) -> None:
        known = {each.version for each in await self.versions()}
        new = Cells()
        for worker in workers:
            if worker.version is not None and worker.version not in known:
                started_ms = round(1000 * worker.started_at.timestamp())
                new.add(Cell(0, worker.version, VERSION, UNTIMED), 1, started_ms)

        def change(entry: Entry | None) -> bytes:
            cells = Cells() if entry is None else Cells.decode(entry.data)
            cells.include(new)
            return cells.encode()

        if new.counts:
            await self._kv.update(_VERSIONS, change)

    # -- merging ------------------------------------------------------------------------------------------------------

    async def compact_stats(self) -> None:
        await self.flush()
        await self._kv.run(self._compact)

    async def _compact(self) -> None:
        now = self._kv.clock.now()
        entries = {entry.key: entry for entry in await self._kv.under(keys.COUNT)}
        groups: dict[str, list[Entry]] = {}
        for entry in entries.values():
            target = _target(entry.key, now)
            if target is not None:
                groups.setdefault(target, []).append(entry)
        for target, merged in groups.items():
            await self._merge(target, entries.get(target), merged[: LARGEST_BATCH - 1])

    async def _merge(self, target: str, there: Entry | None, merged: Sequence[Entry]) -> None:
        """In one batch: what comes in is gone elsewhere, whoever tidies at the same time."""
        cells = Cells() if there is None else Cells.decode(there.data)
        for entry in merged:
            found = Cells.decode(entry.data)
            for cell, count in found.counts.items():
                cells.add(_coarser(cell, target), count, found.times[cell])
        data = cells.encode()
        if len(data) > self._kv.connection.max_payload // 2:
            return  # better many entries than one that nobody can write
        if there is None:
            there = (await self._kv.read([target])).get(target)
        writes = [Write(entry.key, entry.revision, deletes=True) for entry in merged]
        with suppress(Conflict):  # another janitor did it
            await self._kv.write([*writes, Write(target, 0 if there is None else there.revision, data)])


def _target(key: str, now: datetime) -> str | None:
    """Where an entry's counts belong by now; None: where they are."""
    kind, _, rest = key.removeprefix(keys.COUNT).partition(".")
    if kind == "total":
        return None
    start = EPOCH + timedelta(seconds=int(rest.partition(".")[0]))
    if now - start > HOURS_KEPT + timedelta(days=1):
        return f"{keys.COUNT}total"
    if now - start > MINUTES_KEPT + timedelta(hours=1):
        target = f"{keys.COUNT}d.{_seconds(start.astimezone(UTC).replace(hour=0, minute=0, second=0))}"
    elif kind == "m" and now - start > _LIVE:
        target = f"{keys.COUNT}h.{_seconds(start.replace(minute=0, second=0))}"
    else:
        return None
    return None if target == key else target


def _coarser(cell: Cell, target: str) -> Cell:
    if target.startswith(f"{keys.COUNT}h."):
        return cell
    if target.startswith(f"{keys.COUNT}d."):
        return cell._replace(minute=cell.minute // 3600 * 3600)
    return cell._replace(minute=0, bucket=UNTIMED)


def _seconds(moment: datetime) -> int:
    return int((moment - EPOCH).total_seconds())


def _moment(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def _ended(cells: Cells, since: int, before: int) -> Counter[str]:
    sums: Counter[str] = Counter()
    for cell, count in cells.counts.items():
        if cell.state in ENDS and since <= cell.minute < before:
            sums[cell.name] += count
    return sums
