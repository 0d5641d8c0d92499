"""/api/tasks/bulk: one action on everything that matches a filter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from fastapi import APIRouter

from tasklib.core.task import Task
from tasklib.engine import bulk
from tasklib.engine.bulk import Action
from tasklib.server.docs import BODY, problems
from tasklib.server.filters import of_body
from tasklib.server.schemas import Bulk, BulkDone
from tasklib.server.service import IdentityDep, Served
from tasklib.server.tasks import WORK_SECONDS
from tasklib.stores.values import AuditEntry

router = APIRouter(prefix="/api/tasks/bulk", tags=["tasks"])


@router.post("/{action}", operation_id="bulk_action", responses=problems(*BODY))
async def act(action: Action, given: Bulk, service: Served, who: IdentityDep) -> BulkDone:
    """Retry, cancel or delete all tasks that match; those whose status does not allow it are left alone."""
    where = of_body(given.filter, service)
    if given.dry_run:
        found = await bulk.count(service.engine, action, where)
        return BulkDone(
            matched=found.value, matched_capped=found.capped, done=0, more=False, next_cursor=None, dry_run=True
        )
    of_tasks = service.audit_of_tasks(who, action, detail={"bulk": True})
    asked = given.filter.model_dump(mode="json", by_alias=True, exclude_none=True)

    def audit(tasks: Sequence[Task]) -> Sequence[AuditEntry]:
        detail = {"filter": asked, "done": len(tasks)}
        return [*of_tasks(tasks), service.audit_entry(who, f"bulk-{action}", detail=detail)]

    until = asyncio.get_running_loop().time() + WORK_SECONDS
    done = 0
    next_cursor: UUID | None = None
    async for tasks, behind in bulk.perform(service.engine, action, where, given.cursor, audit=audit):
        done += len(tasks)
        if asyncio.get_running_loop().time() >= until:
            next_cursor = behind
            break
    more = next_cursor is not None
    return BulkDone(matched=done, matched_capped=more, done=done, more=more, next_cursor=next_cursor, dry_run=False)
