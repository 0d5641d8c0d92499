"""Lengths of time as the counters keep them: how many fell into each bucket."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tasklib.core.decide import LATENCY_BOUNDS_MS, UNTIMED
from tasklib.engine.engine import Engine
from tasklib.server.figure_schemas import Bucket, Distribution
from tasklib.stores.samples import ARRIVED, WAITED
from tasklib.stores.values import Point

SHARES = (0.50, 0.95, 0.99)
KEPT_SECONDS = 5.0


class Times:
    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.total_ms = 0

    def add(self, cell: Point) -> None:
        self.buckets[cell.bucket] += cell.count
        self.total_ms += cell.run_ms

    def include(self, other: Times) -> None:
        self.buckets.update(other.buckets)
        self.total_ms += other.total_ms

    def percentiles(self) -> list[float | None]:
        return [percentile(self.buckets, share) for share in SHARES]

    def shown(self) -> Distribution:
        count = self.buckets.total()
        p50, p95, p99 = self.percentiles()
        bounds = [*LATENCY_BOUNDS_MS, None]
        return Distribution(
            count=count,
            mean_ms=round(self.total_ms / count, 1) if count else None,
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            buckets=[Bucket(up_to_ms=bound, count=self.buckets[at]) for at, bound in enumerate(bounds)],
        )


def percentile(latency: Counter[int], share: float) -> float | None:
    """From the counts of a histogram, taken to be even within each bucket; what lies beyond the last bound is taken for
    that bound."""
    wanted = latency.total() * share
    if wanted <= 0:
        return None
    for bucket, bound in enumerate(LATENCY_BOUNDS_MS):
        count = latency[bucket]
        if count and wanted <= count:
            lower = LATENCY_BOUNDS_MS[bucket - 1] if bucket else 0
            return round(lower + (bound - lower) * wanted / count, 1)
        wanted -= count
    return float(LATENCY_BOUNDS_MS[-1])


class TypeTimes(NamedTuple):
    """The p95 of one type."""

    run_ms: float | None = None
    waited_ms: float | None = None


class LatestTimes:
    """Of the last hour, by type; read once for all who ask within a few seconds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._by_type: dict[str, TypeTimes] = {}

    async def by_type(self) -> dict[str, TypeTimes]:
        async with self._lock:
            if time.monotonic() - self._read_at >= KEPT_SECONDS:
                self._by_type = _by_type(await self._engine.series(3600.0, 3600))
                self._read_at = time.monotonic()
            return self._by_type


def _by_type(points: Iterable[Point]) -> dict[str, TypeTimes]:
    ran: dict[str, Times] = defaultdict(Times)
    waited: dict[str, Times] = defaultdict(Times)
    for point in points:
        if point.bucket != UNTIMED and point.state != ARRIVED:
            (waited if point.state == WAITED else ran)[point.name].add(point)
    return {
        name: TypeTimes(percentile(ran[name].buckets, 0.95), percentile(waited[name].buckets, 0.95))
        for name in {*ran, *waited}
    }
