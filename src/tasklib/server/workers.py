"""/api/workers, /api/series, /api/audit: who works, how it went, who did what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from tasklib.server.docs import problems
from tasklib.server.fields import Name
from tasklib.server.schemas import PAGE_LIMIT, Audit, Given, Series, SeriesPoint, Workers
from tasklib.server.service import Served
from tasklib.server.views import audit_view, worker_view

router = APIRouter(prefix="/api", tags=["figures"])

MOST_MINUTES = 2 * 24 * 60
"""Older figures are kept by the hour, or not at all."""


class SeriesQuery(Given):
    minutes: Annotated[int, Field(ge=1, le=MOST_MINUTES)] = 60
    type: Name | None = None


class AuditQuery(Given):
    task_id: UUID | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT


@router.get("/workers", operation_id="list_workers", responses=problems())
async def workers(service: Served) -> Workers:
    """Workers, also those that stopped or vanished not long ago."""
    return Workers(workers=[worker_view(each, service.dead_after) for each in await service.engine.workers()])


@router.get("/series", operation_id="get_series", responses=problems())
async def series(query: Annotated[SeriesQuery, Query()], service: Served) -> Series:
    """How many tasks ended how, minute by minute: what charts are drawn from."""
    points: dict[tuple[datetime, str], SeriesPoint] = {}
    for cell in await service.engine.series(query.minutes * 60.0):
        if query.type is not None and cell.name != query.type:
            continue
        point = points.setdefault((cell.minute, cell.name), SeriesPoint(minute=cell.minute, type=cell.name))
        if cell.state in ("completed", "failed", "cancelled", "retried"):
            setattr(point, cell.state, getattr(point, cell.state) + cell.count)
        point.run_ms += cell.run_ms
    return Series(minutes=query.minutes, points=list(points.values()))


@router.get("/audit", operation_id="get_audit", responses=problems())
async def audit(query: Annotated[AuditQuery, Query()], service: Served) -> Audit:
    """The latest actions of operators, newest first: on one task, or all."""
    entries = await (await service.engine.store()).noted(task_id=query.task_id, limit=query.limit)
    return Audit(entries=[audit_view(entry) for entry in entries])
