"""Counters for Prometheus. The queue keeps its counts by the minute; here they become totals that only grow."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from tasklib.core.decide import LATENCY_BOUNDS_MS, UNTIMED
from tasklib.engine.engine import Engine
from tasklib.stores.samples import ARRIVED, WAITED
from tasklib.stores.values import Point

FIRST_LOOK_SECONDS = 3600.0
LATE_SECONDS = 180.0
"""A minute may still grow for so long after it was first read."""
_REMEMBERED = timedelta(hours=2)

_Cell = tuple[datetime, str, str, int]


class Meters:
    """Totals begin with the last hour when the server starts; `rate()` takes care of restarts, as for any counter."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = asyncio.Lock()
        self._read_at: float | None = None
        self._seen: dict[_Cell, tuple[int, int]] = {}
        self.finished: dict[tuple[str, str], int] = {}
        """By type and outcome."""
        self.buckets: dict[str, list[int]] = {}
        """By type: how many attempts fell into each bucket of the latency histogram."""
        self.run_ms: dict[str, int] = {}
        self.waited: dict[str, list[int]] = {}
        """The same of the times that tasks waited for their first start."""
        self.waited_ms: dict[str, int] = {}
        self.arrived: Counter[str] = Counter()
        """By type; known with each sample of the janitor."""
        self.submits: Counter[str] = Counter()
        """Tasks that were created through this server, by type. Nobody else's are known."""

    async def refresh(self) -> None:
        async with self._lock:
            now = time.monotonic()
            since = FIRST_LOOK_SECONDS if self._read_at is None else now - self._read_at + LATE_SECONDS
            self.add(await self._engine.series(since))
            self._read_at = now

    def add(self, points: Iterable[Point]) -> None:
        """Adds by how much each minute has grown since it was read before."""
        cells: dict[_Cell, tuple[int, int]] = {}
        for point in points:
            if point.state == ARRIVED and not point.name:
                continue  # of all types together
            cell = (point.minute, point.name, point.state, point.bucket)
            count, run_ms = cells.get(cell, (0, 0))
            cells[cell] = (count + point.count, run_ms + point.run_ms)
        for cell, (count, run_ms) in cells.items():
            before, before_ms = self._seen.get(cell, (0, 0))
            _, name, state, bucket = cell
            grown = max(0, count - before)
            if not grown:
                continue
            if state == ARRIVED:
                self.arrived[name] += grown
                continue
            buckets, sums = (self.waited, self.waited_ms) if state == WAITED else (self.buckets, self.run_ms)
            if state != WAITED:
                self.finished[name, state] = self.finished.get((name, state), 0) + grown
            if bucket != UNTIMED:
                counts = buckets.setdefault(name, [0] * (len(LATENCY_BOUNDS_MS) + 1))
                counts[min(bucket, len(LATENCY_BOUNDS_MS))] += grown
                sums[name] = sums.get(name, 0) + max(0, run_ms - before_ms)
        if cells:
            oldest = max(cell[0] for cell in cells) - _REMEMBERED
            self._seen = {cell: value for cell, value in {**self._seen, **cells}.items() if cell[0] >= oldest}
