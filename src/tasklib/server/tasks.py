"""/api/tasks: submit, look, retry, cancel, delete, clean up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from tasklib.core.errors import InvalidInput, WaitTimeout
from tasklib.core.task import Task, TaskState
from tasklib.engine.diagnose import reasons
from tasklib.server import submits
from tasklib.server.docs import BODY, problems
from tasklib.server.fields import read_cursor, written_cursor
from tasklib.server.filters import of_query
from tasklib.server.schemas import (
    Cleaned,
    CleanupQuery,
    Finished,
    Found,
    ListQuery,
    ResponseModel,
    Retried,
    Sort,
    Stats,
    Submit,
    Submitted,
    TaskDetail,
    TaskPage,
    TaskView,
)
from tasklib.server.service import IdentityDep, Served
from tasklib.server.views import stats_view
from tasklib.stores.values import AuditEntry, Count, EndedCursor

LONGEST_WAIT = 25
"""Seconds; less than a request may take."""

router = APIRouter(prefix="/api/tasks", tags=["tasks"])

COUNT_CAP = 10_000
CLEANUP_BATCH = 1000
WORK_SECONDS = 20.0
"""How long one request may go on with batches; what is left is for the next."""

_NEXT = {"operationId": "get_task", "parameters": {"task_id": "$response.body#/id"}}
_LINKS: dict[str, Any] = {
    "task": _NEXT,
    "cancel": {"operationId": "cancel_task", "parameters": {"task_id": "$response.body#/id"}},
    "delete": {"operationId": "delete_task", "parameters": {"task_id": "$response.body#/id"}},
}


@router.post(
    "",
    status_code=201,
    response_model=Submitted,
    operation_id="submit_task",
    responses={
        201: {"links": _LINKS},
        200: {"model": Found, "description": "There is a task with this idempotency key or unique key: this is it"},
        **problems(*BODY, 429),
    },
)
async def submit(given: Submit, request: Request, service: Served, who: IdentityDep) -> Response:
    """Create a task."""
    service.submits.take(who.key)
    submitted = await submits.submit(given, service.registry, service.engine)
    created_at = submitted.created_at
    if created_at is None:
        task = await service.engine.get(submitted.id)
        if not submitted.created and task is not None:
            shown = vars(service.show(task))
            return _json(Found(**shown, validated=submitted.validated, replaced=submitted.replaced))
        created_at = await (await service.engine.store()).now() if task is None else task.created_at
    # As it was created: a quick worker may have it by now.
    body = Submitted(
        id=submitted.id,
        type=given.type,
        status=TaskState.PENDING,
        created_at=created_at,
        validated=submitted.validated,
    )
    prefix = request.scope.get("root_path", "")
    return _json(body, 201, {"Location": f"{prefix}/api/tasks/{submitted.id}"})


@router.get("", response_model=TaskPage, operation_id="list_tasks", responses=problems())
async def list_tasks(query: Annotated[ListQuery, Query()], service: Served) -> Response:
    """List tasks, newest first. A page of a search by tag, error text or end looks at 50,000 of the tasks that meet the
    other conditions."""
    where = of_query(query)
    by_end = query.sort is Sort.ENDED
    cursor = None if query.cursor is None else read_cursor(query.cursor)
    if cursor is not None and isinstance(cursor, EndedCursor) is not by_end:
        raise InvalidInput("cursor: this is the cursor of a list in another order", field="cursor")
    look = service.engine.page_ended if by_end else service.engine.page
    page = await look(where, limit=query.limit, cursor=cursor, offset=query.offset)
    if page.next_cursor is None and query.cursor is None and (page.tasks or not query.offset):
        total = Count(query.offset + len(page.tasks), False)  # all of it has been seen
    else:
        over = by_end and where.terminal is None
        total = await service.engine.count(replace(where, terminal=True) if over else where, COUNT_CAP)
    body = TaskPage(
        tasks=[service.show_listed(task, query.fields or ()) for task in page.tasks],
        total=min(total.value, COUNT_CAP),
        total_capped=total.capped or total.value > COUNT_CAP,
        limit=query.limit,
        offset=query.offset,
        next_cursor=written_cursor(page.next_cursor),
    )
    return _json(body)


@router.delete("", operation_id="clean_up", responses=problems())
async def clean_up(query: Annotated[CleanupQuery, Query()], service: Served, who: IdentityDep) -> Cleaned:
    """Delete finished tasks older than a point in time."""
    store = await service.engine.store()
    age = max(0.0, (await store.now() - query.older_than).total_seconds())
    states = [status.value for status in dict.fromkeys(query.status or [Finished.COMPLETED])]
    until = asyncio.get_running_loop().time() + WORK_SECONDS
    if query.dry_run:
        found = await service.engine.prune(states, age, CLEANUP_BATCH, dry_run=True)
        return Cleaned(deleted=0, matched=found, more=False, dry_run=True)

    def audit(gone: Sequence[str]) -> Sequence[AuditEntry]:
        asked = {"olderThan": query.older_than.isoformat(), "status": states}
        detail = {**asked, "deleted": len(gone), "byStatus": Counter(gone)}
        return [service.audit_entry(who, "cleanup", detail=detail)]

    deleted = await service.engine.prune(states, age, CLEANUP_BATCH, audit=audit)
    more = deleted > 0
    while more and asyncio.get_running_loop().time() < until:
        count = await service.engine.prune(states, age, CLEANUP_BATCH, audit=audit)
        deleted += count
        more = count > 0
    return Cleaned(deleted=deleted, matched=deleted, more=more, dry_run=False)


@router.get("/stats", operation_id="get_stats", responses=problems())
async def stats(service: Served) -> Stats:
    """Counts by status and type."""
    return stats_view(await service.engine.stats(), await service.engine.workers(), service.dead_after)


@router.get("/{task_id}", response_model=TaskDetail, operation_id="get_task", responses=problems(404))
async def get_task(
    task_id: UUID,
    service: Served,
    wait_seconds: Annotated[
        float,
        Query(alias="waitSeconds", ge=0, le=LONGEST_WAIT, description="Answer when it has finished, or after so long."),
    ] = 0,
) -> Response:
    """One task, whole, and why it waits if it does."""
    task: Task | None = None
    if wait_seconds > 0:
        with suppress(WaitTimeout):
            task = await service.engine.wait(task_id, wait_seconds)
    if task is None:
        task = await service.engine.get_or_raise(task_id)
    return _json(service.show_all(task, await reasons(service.engine, task)))


@router.post("/{task_id}/retry", operation_id="retry_task", responses=problems(404))
async def retry(task_id: UUID, service: Served, who: IdentityDep) -> Retried:
    """Run a failed task again, now, with all its attempts."""
    task = await service.engine.retry(task_id, audit=service.audit_of_tasks(who, "retry"))
    # As the retry left it: a quick worker may have it by now.
    return Retried(id=task.id, status=TaskState.PENDING, attempts=0, next_retry_at=None)


@router.post("/{task_id}/cancel", operation_id="cancel_task", responses=problems(404, 409))
async def cancel(task_id: UUID, service: Served, who: IdentityDep) -> TaskView:
    """Cancel a waiting task, or ask a running one to stop."""
    return service.show(await service.engine.cancel(task_id, audit=service.audit_of_tasks(who, "cancel")))


@router.delete("/{task_id}", status_code=204, operation_id="delete_task", responses=problems(404))
async def delete(task_id: UUID, service: Served, who: IdentityDep) -> Response:
    """Delete a finished task."""
    await service.engine.delete(task_id, audit=service.audit_of_tasks(who, "delete"))
    return Response(status_code=204)


def _json(body: ResponseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    # Written here: the framework would first check what has just been made.
    text = body.model_dump_json(by_alias=True)
    return Response(text, status, headers=headers, media_type="application/json")
