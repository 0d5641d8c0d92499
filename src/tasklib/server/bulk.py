"""/api/tasks/bulk: one action on everything that matches a filter."""

from __future__ import annotations

import asyncio
from uuid import UUID

from fastapi import APIRouter

from tasklib.engine import bulk
from tasklib.engine.bulk import Action
from tasklib.server.docs import BODY, problems
from tasklib.server.filters import of_body
from tasklib.server.schemas import Bulk, BulkDone
from tasklib.server.service import IdentityDep, Served
from tasklib.server.tasks import WORK_SECONDS

router = APIRouter(prefix="/api/tasks/bulk", tags=["tasks"])


@router.post("/{action}", operation_id="bulk_action", responses=problems(*BODY))
async def act(action: Action, given: Bulk, service: Served, who: IdentityDep) -> BulkDone:
    """Retry, cancel or delete all tasks that match; those whose status does not allow it are left alone."""
    where = of_body(given.filter)
    if given.dry_run:
        found = await bulk.count(service.engine, action, where)
        return BulkDone(
            matched=found.value, matched_capped=found.capped, done=0, more=False, next_cursor=None, dry_run=True
        )
    until = asyncio.get_running_loop().time() + WORK_SECONDS
    done = 0
    next_cursor: UUID | None = None
    async for tasks, behind in bulk.perform(service.engine, action, where, given.cursor):
        done += len(tasks)
        # One for each task, so that its own timeline tells; and below one for the whole.
        await service.add_audit(who, action, [(task.id, task.name) for task in tasks], detail={"bulk": True})
        if asyncio.get_running_loop().time() >= until:
            next_cursor = behind
            break
    detail = {"filter": given.filter.model_dump(mode="json", by_alias=True, exclude_none=True), "done": done}
    await service.add_audit(who, f"bulk-{action}", detail=detail)
    more = next_cursor is not None
    return BulkDone(matched=done, matched_capped=more, done=done, more=more, next_cursor=next_cursor, dry_run=False)
