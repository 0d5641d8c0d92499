"""/api/tasks/bulk: one action on everything that matches a filter."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from fastapi import APIRouter

from tasklib.engine import bulk
from tasklib.engine.bulk import Action
from tasklib.server.docs import BODY, problems
from tasklib.server.filters import of_body
from tasklib.server.schemas import Bulk, BulkDone, BulkSteps
from tasklib.server.service import IdentityDep, Served, Service
from tasklib.server.tasks import WORK_SECONDS, continued
from tasklib.server.tokens import Identity
from tasklib.stores.values import Filter

router = APIRouter(prefix="/api/tasks/bulk", tags=["tasks"])


@router.post("/{action}", operation_id="bulk_action", responses=problems(*BODY))
async def act(action: Action, given: Bulk, service: Served, who: IdentityDep) -> BulkDone:
    """Retry, cancel, delete, revive or run now all tasks that match. Those whose status does not allow it are left
    alone."""
    asked = given.filter.model_dump(mode="json", by_alias=True, exclude_none=True)
    return await act_on(service, who, action, of_body(given.filter, service), given, asked)


async def act_on(
    service: Service,
    who: Identity,
    action: Action,
    where: Filter,
    given: BulkSteps,
    asked: dict[str, Any],
) -> BulkDone:
    """The action on all that match, a step of it or its count. `asked`: the filter as the audit trail tells it."""
    if given.dry_run:
        found = await bulk.count(service.engine, action, where)
        return BulkDone(
            matched=found.value,
            matched_capped=found.capped,
            done=0,
            more=False,
            next_cursor=None,
            bulk_id=None,
            dry_run=True,
        )
    bulk_id = await continued(service, who, f"bulk-{action}", given.bulk_id)
    audit = service.auditor(who).of_bulk(action, bulk_id, asked)
    until = asyncio.get_running_loop().time() + WORK_SECONDS
    done = 0
    next_cursor: UUID | None = None
    async for tasks, behind in bulk.perform(service.engine, action, where, given.cursor, audit=audit):
        done += len(tasks)
        if asyncio.get_running_loop().time() >= until:
            next_cursor = behind
            break
    more = next_cursor is not None
    return BulkDone(
        matched=done,
        matched_capped=more,
        done=done,
        more=more,
        next_cursor=next_cursor,
        bulk_id=bulk_id,
        dry_run=False,
    )
