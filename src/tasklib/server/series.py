"""/api/series: how it went, step by step: what charts are drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from tasklib.core.decide import LATENCY_BOUNDS_MS, UNTIMED
from tasklib.server.docs import problems
from tasklib.server.fields import Name
from tasklib.server.schemas import RequestModel, Series, SeriesPoint
from tasklib.server.service import Served
from tasklib.stores.values import Age, Point

router = APIRouter(prefix="/api", tags=["figures"])

MOST_MINUTES = 60 * 24 * 60
"""Older figures have no time any more."""
STEPS = (1, 5, 15, 30, 60, 180, 360, 720)
MOST_POINTS = 120


class SeriesQuery(RequestModel):
    minutes: Annotated[int, Field(ge=1, le=MOST_MINUTES)] = 60
    type: Name | None = None


@router.get("/series", operation_id="get_series", responses=problems())
async def series(query: Annotated[SeriesQuery, Query()], service: Served) -> Series:
    """How many tasks ended how, how long they took and how old the backlog was, in at most 121 steps."""
    step = next(step for step in STEPS if query.minutes <= step * MOST_POINTS)
    store = await service.engine.store()
    last = int((await store.now()).timestamp()) // (step * 60) * step * 60
    first = last - query.minutes * 60 // (step * 60) * step * 60
    span = query.minutes * 60.0 + step * 60
    steps = {at: _Step(at) for at in range(first, last + 1, step * 60)}
    for cell in await service.engine.series(span, step * 60):
        if query.type in (None, cell.name) and (found := steps.get(int(cell.minute.timestamp()))) is not None:
            found.add(cell)
    _add_ages(steps, await service.engine.backlog_history(span, step * 60), query.type)
    return Series(minutes=query.minutes, step_minutes=step, points=[each.shown() for each in steps.values()])


class _Step:
    def __init__(self, at: int) -> None:
        self.point = SeriesPoint(at=datetime.fromtimestamp(at, UTC))
        self.latency: Counter[int] = Counter()

    def add(self, cell: Point) -> None:
        if cell.state in ("completed", "failed", "cancelled", "retried"):
            setattr(self.point, cell.state, getattr(self.point, cell.state) + cell.count)
        self.point.run_ms += cell.run_ms
        if cell.bucket != UNTIMED:
            self.latency[cell.bucket] += cell.count

    def shown(self) -> SeriesPoint:
        self.point.p50_ms, self.point.p95_ms, self.point.p99_ms = (
            percentile(self.latency, share) for share in (0.50, 0.95, 0.99)
        )
        return self.point


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


def _add_ages(steps: dict[int, _Step], ages: Iterable[Age], name: str | None) -> None:
    for age in ages:
        found = steps.get(int(age.minute.timestamp()))
        if found is None:
            continue
        if age.name == (name or ""):
            found.point.backlog_seconds = round(age.seconds, 3)
        elif not age.name and found.point.backlog_seconds is None:
            found.point.backlog_seconds = 0.0  # the others were looked at, and this type had nothing due
