"""/api/workers, /api/audit, /api/about: who works, who did what, and where we are."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from tasklib import __version__
from tasklib.engine.diagnose import WorkerState
from tasklib.server.docs import problems
from tasklib.server.fields import Instant, Name, SearchText
from tasklib.server.schemas import PAGE_LIMIT, About, Audit, RequestModel, Workers
from tasklib.server.service import Served
from tasklib.server.views import audit_view, worker_view
from tasklib.stores.values import AuditFilter

router = APIRouter(prefix="/api", tags=["figures"])


class AuditQuery(RequestModel):
    task_id: UUID | None = None
    actor: SearchText | None = None
    action: SearchText | None = None
    type: Name | None = None
    after: Annotated[Instant | None, Field(description="From this instant on.")] = None
    before: Instant | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT
    cursor: Annotated[SearchText | None, Field(description="The `nextCursor` of the page before.")] = None


class WorkersQuery(RequestModel):
    all: bool = False


@router.get("/workers", operation_id="list_workers", responses=problems())
async def workers(query: Annotated[WorkersQuery, Query()], service: Served) -> Workers:
    """Workers that are live, stopping or lost; with `all=true` those that stopped within the last day, too."""
    views = [worker_view(each, service.dead_after) for each in await service.engine.workers()]
    return Workers(workers=[each for each in views if query.all or each.state is not WorkerState.STOPPED])


@router.get("/audit", operation_id="get_audit", responses=problems())
async def audit(query: Annotated[AuditQuery, Query()], service: Served) -> Audit:
    """The latest actions of operators that match, newest first."""
    store = await service.engine.store()
    where = AuditFilter(
        task_id=query.task_id,
        actor=query.actor,
        action=query.action,
        name=query.type,
        after=query.after,
        before=query.before,
    )
    found = await store.list_audit(where, limit=query.limit + 1, cursor=query.cursor)
    page = found[: query.limit]
    return Audit(
        entries=[audit_view(entry) for entry in page], next_cursor=page[-1].cursor if len(found) > len(page) else None
    )


@router.get("/about", operation_id="get_about", responses=problems())
async def about(service: Served) -> About:
    """Which queue this is."""
    store = await service.engine.store()
    return About(
        version=__version__,
        environment=service.settings.environment,
        engine=store.traits.engine,
        server_time=await store.now(),
    )
