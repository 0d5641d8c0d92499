"""/api/workers, /api/audit, /api/about: who works, who did what, and where we are."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import Field

import tasklib.server.asgi  # noqa: F401 - has {worker:text}
from tasklib import __version__
from tasklib.core.errors import WorkerNotFound
from tasklib.engine.diagnose import WorkerState
from tasklib.server.docs import problems
from tasklib.server.fields import Instant, Name, SearchText
from tasklib.server.schemas import PAGE_LIMIT, About, Audit, RequestModel, WorkerDetail, Workers, WorkerView
from tasklib.server.service import IdentityDep, Served
from tasklib.server.views import audit_view, worker_detail, worker_view
from tasklib.stores.values import AuditFilter

router = APIRouter(prefix="/api", tags=["figures"])


class AuditQuery(RequestModel):
    task_id: UUID | None = None
    actor: SearchText | None = None
    action: SearchText | None = None
    type: Name | None = None
    after: Annotated[Instant | None, Field(description="From this instant on.")] = None
    before: Instant | None = None
    bulk_id: Annotated[UUID | None, Field(description="The batches of this mass action.")] = None
    folded: Annotated[
        bool,
        Field(description="A mass action is one entry with the count of all its batches, without each of its tasks."),
    ] = False
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT
    cursor: Annotated[SearchText | None, Field(description="The `nextCursor` of the page before.")] = None


WorkerId = Annotated[SearchText, Path(alias="worker")]


class WorkersQuery(RequestModel):
    all: bool = False


@router.get("/workers", operation_id="list_workers", responses=problems())
async def workers(query: Annotated[WorkersQuery, Query()], service: Served) -> Workers:
    """Workers that are live, stopping or lost; with `all=true` those that stopped within the last day, too."""
    views = [worker_view(each, service.dead_after) for each in await service.engine.workers()]
    return Workers(workers=[each for each in views if query.all or each.state is not WorkerState.STOPPED])


@router.post("/workers/{worker:text}/drain", operation_id="drain_worker", responses=problems(404, 409))
async def drain_worker(worker_id: WorkerId, service: Served, who: IdentityDep) -> WorkerView:
    """Ask a worker to take nothing more, to finish what it runs, and to end."""
    entry = service.auditor(who).entry("drain", detail={"worker": worker_id})
    return worker_view(await service.engine.drain(worker_id, who.label, audit=[entry]), service.dead_after)


@router.get("/workers/{worker:text}", operation_id="get_worker", responses=problems(404))
async def get_worker(worker_id: WorkerId, service: Served) -> WorkerDetail:
    """One worker, and those before it."""
    known = await service.engine.workers()
    found = next((each for each in known if each.id == worker_id), None)
    if found is None:
        raise WorkerNotFound(worker_id)
    return worker_detail(found, known, service.dead_after)


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
        bulk_id=query.bulk_id,
        folded=query.folded,
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
