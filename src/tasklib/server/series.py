"""/api/series: how it went, step by step: what charts are drawn from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from tasklib.core.decide import UNTIMED
from tasklib.server.distributions import Times
from tasklib.server.docs import problems
from tasklib.server.fields import Instant, Name
from tasklib.server.figure_schemas import Series, SeriesPoint, VersionMark
from tasklib.server.schemas import RequestModel
from tasklib.server.service import Served, Service
from tasklib.stores.samples import ARRIVED, WAITED
from tasklib.stores.values import Age, Point

router = APIRouter(prefix="/api", tags=["figures"])

MOST_MINUTES = 60 * 24 * 60
"""Older figures have no time any more."""
STEPS = (1, 5, 15, 30, 60, 180, 360, 720)
MOST_POINTS = 120
BY_HOUR_AFTER = timedelta(days=2)
"""Older figures are kept by the hour."""


class SeriesQuery(RequestModel):
    minutes: Annotated[int, Field(ge=1, le=MOST_MINUTES)] = 60
    until: Annotated[Instant | None, Field(description="The end of the time that is shown; now unless given.")] = None
    type: Name | None = None


@router.get("/series", operation_id="get_series", responses=problems())
async def series(query: Annotated[SeriesQuery, Query()], service: Served) -> Series:
    """How many tasks came and ended, how long they took and waited, and how many waited, in at most 121 steps. What is
    more than two days old is known by the hour."""
    now = await (await service.engine.store()).now()
    until = now if query.until is None else min(query.until, now)
    window = _Window(now, until, query.minutes)
    steps = {at: _Step(at) for at in range(window.first, window.last + 1, window.step)}
    span = {"until_seconds": window.until_seconds, "name": query.type}
    for cell in await service.engine.series(window.since_seconds, window.step, **span):
        found = steps.get(int(cell.minute.timestamp()))
        if found is not None:
            found.add(cell, query.type)
    _add_samples(
        steps, await service.engine.backlog_history(window.since_seconds, window.step, **span), query.type or ""
    )
    run_time, waited = Times(), Times()
    for each in steps.values():
        run_time.include(each.run_time)
        waited.include(each.waited)
    return Series(
        minutes=query.minutes,
        step_minutes=window.step // 60,
        until=datetime.fromtimestamp(window.last + window.step, UTC),
        points=[each.shown() for each in steps.values()],
        run_time=run_time.shown(),
        waited=waited.shown(),
        versions=await _versions(service, window),
    )


class _Window:
    """Whole steps, in seconds since 1970."""

    def __init__(self, now: datetime, until: datetime, minutes: int) -> None:
        old = now - until + timedelta(minutes=minutes) > BY_HOUR_AFTER
        self.step = 60 * next(step for step in STEPS if minutes <= step * MOST_POINTS and (step >= 60 or not old))
        end = int(until.timestamp())
        self.last = (end if until == now else end - 1) // self.step * self.step
        self.first = self.last - minutes * 60 // self.step * self.step
        if until != now:  # nothing grows: the last step is a whole one
            self.first = min(self.last, self.first + self.step)
        self.since_seconds = now.timestamp() - self.first + 1
        self.until_seconds = max(0.0, now.timestamp() - self.last - self.step)


class _Step:
    def __init__(self, at: int) -> None:
        self.point = SeriesPoint(at=datetime.fromtimestamp(at, UTC))
        self.run_time = Times()
        self.waited = Times()

    def add(self, cell: Point, name: str | None) -> None:
        if cell.state == ARRIVED:
            if cell.name == (name or ""):
                self.point.arrived = max(0, (self.point.arrived or 0) + cell.count)
            elif not cell.name:
                self.point.arrived = self.point.arrived or 0  # others were looked at, and of this type none came
        elif cell.state == WAITED:
            self.waited.add(cell)
        elif cell.state in ("completed", "failed", "cancelled", "retried"):
            setattr(self.point, cell.state, getattr(self.point, cell.state) + cell.count)
            self.point.run_ms += cell.run_ms
            if cell.bucket != UNTIMED:
                self.run_time.add(cell)

    def shown(self) -> SeriesPoint:
        point, run_time, waited = self.point, self.run_time.percentiles(), self.waited.percentiles()
        point.p50_ms, point.p95_ms, point.p99_ms = run_time
        point.waited_p50_ms, point.waited_p95_ms, point.waited_p99_ms = waited
        return point


def _add_samples(steps: dict[int, _Step], samples: Iterable[Age], name: str) -> None:
    for sample in samples:
        found = steps.get(int(sample.minute.timestamp()))
        if found is None:
            continue
        point = found.point
        if sample.name == name:
            point.backlog_seconds, point.depth = round(sample.seconds, 3), sample.depth
        elif not sample.name and point.backlog_seconds is None:
            point.backlog_seconds, point.depth = 0.0, 0  # the others were looked at, and this type had nothing due


async def _versions(service: Service, window: _Window) -> list[VersionMark]:
    """A version whose workers have only just started is not kept yet."""
    started = {each.version: each.started_ms / 1000 for each in await service.engine.versions()}
    for worker in await service.engine.workers():
        if worker.version is not None:
            at = worker.started_at.timestamp()
            started[worker.version] = min(at, started.get(worker.version, at))
    return [
        VersionMark(version=version, at=datetime.fromtimestamp(at, UTC))
        for version, at in sorted(started.items(), key=lambda each: each[1])
        if window.first <= at < window.last + window.step
    ]
