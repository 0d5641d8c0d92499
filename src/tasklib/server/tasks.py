"""/api/tasks: submit, look, retry, cancel, run now, revive, run again, delete, clean up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Query, Request, Response

from tasklib.core.errors import InvalidInput, WaitTimeout
from tasklib.core.task import Task, TaskState
from tasklib.engine.diagnose import reasons
from tasklib.engine.filters import count_cap
from tasklib.engine.linked import linked
from tasklib.engine.repeating import SAME, repeat
from tasklib.server import submits
from tasklib.server.docs import BODY, problems
from tasklib.server.fields import read_cursor, written_cursor
from tasklib.server.filters import of_query
from tasklib.server.schemas import (
    Cleaned,
    CleanupQuery,
    Copy,
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
from tasklib.server.service import IdentityDep, Served, Service
from tasklib.server.tokens import Identity
from tasklib.server.views import stats_view
from tasklib.stores.values import AuditFilter, Count, EndedCursor, EndedPage, Page

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
    audit = submits.audit_of(given.type, service.auditor(who)) if who.signed_in else None
    submitted = await submits.submit(given, service.registry, service.engine, audit)
    service.meters.submits[given.type] += submitted.created
    created_at = submitted.created_at
    if created_at is None:
        task = await service.engine.get(submitted.id)
        if not submitted.created and task is not None:
            shown = vars(service.show(task))
            return json_of(Found(**shown, validated=submitted.validated, replaced=submitted.replaced))
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
    return json_of(body, 201, {"Location": f"{prefix}/api/tasks/{submitted.id}"})


@router.get("", response_model=TaskPage, operation_id="list_tasks", responses=problems())
async def list_tasks(query: Annotated[ListQuery, Query()], service: Served) -> Response:
    """List tasks, newest first. A page of a search (by word, short id, tag, payload, error text or end) looks at up to
    20,000 of the tasks that meet the other conditions."""
    where = of_query(query, service)
    by_end = query.sort is Sort.ENDED
    cursor = None if query.cursor is None else read_cursor(query.cursor)
    if cursor is not None and isinstance(cursor, EndedCursor) is not by_end:
        raise InvalidInput("cursor: this is the cursor of a list in another order", field="cursor")
    page: Page | EndedPage
    if query.sort is Sort.DURATION:
        if cursor is not None:
            raise InvalidInput("cursor: the longest are one page; offset goes on", field="cursor")
        page = await service.engine.page_longest(where, limit=query.limit, offset=query.offset)
    else:
        look = service.engine.page_ended if by_end else service.engine.page
        page = await look(where, limit=query.limit, cursor=cursor, offset=query.offset)
    cap = count_cap(where, COUNT_CAP)
    looked_at_all = page.next_cursor is None or (query.sort is Sort.CREATED and len(page.tasks) < query.limit)
    first = query.cursor is None and query.sort is not Sort.DURATION and (page.tasks or not query.offset)
    if first and looked_at_all:  # a count would look at the same
        total = Count(query.offset + len(page.tasks), page.next_cursor is not None)
    else:
        over = by_end and where.terminal is None
        total = await service.engine.count(replace(where, terminal=True) if over else where, cap)
    body = TaskPage(
        tasks=[service.show_listed(task, query.fields or ()) for task in page.tasks],
        total=min(total.value, cap),
        total_capped=total.capped or total.value > cap,
        limit=query.limit,
        offset=query.offset,
        next_cursor=written_cursor(page.next_cursor),
    )
    return json_of(body)


@router.delete("", operation_id="clean_up", responses=problems())
async def clean_up(query: Annotated[CleanupQuery, Query()], service: Served, who: IdentityDep) -> Cleaned:
    """Delete finished tasks older than a point in time."""
    store = await service.engine.store()
    age = max(0.0, (await store.now() - query.older_than).total_seconds())
    states = [status.value for status in dict.fromkeys(query.status or [Finished.COMPLETED])]
    until = asyncio.get_running_loop().time() + WORK_SECONDS
    if query.dry_run:
        found = await service.engine.prune(states, age, CLEANUP_BATCH, dry_run=True)
        return Cleaned(deleted=0, matched=found, more=False, bulk_id=None, dry_run=True)
    bulk_id = await continued(service, who, "cleanup", query.bulk_id)
    asked = {"olderThan": query.older_than.isoformat(), "status": states}
    audit = service.auditor(who).of_clean_up(bulk_id, asked)
    deleted = await service.engine.prune(states, age, CLEANUP_BATCH, audit=audit)
    more = deleted > 0
    while more and asyncio.get_running_loop().time() < until:
        count = await service.engine.prune(states, age, CLEANUP_BATCH, audit=audit)
        deleted += count
        more = count > 0
    return Cleaned(deleted=deleted, matched=deleted, more=more, bulk_id=bulk_id, dry_run=False)


async def continued(service: Service, who: Identity, action: str, bulk_id: UUID | None) -> UUID:
    """The id of a mass action in the audit trail: a new one, or that of one's own that goes on."""
    if bulk_id is None:
        return uuid4()
    store = await service.engine.store()
    for entry in await store.list_audit(AuditFilter(bulk_id=bulk_id), limit=1):
        if (entry.actor, entry.action) != (who.label, action):
            raise InvalidInput("bulkId: this is another mass action; leave it out to begin one", field="bulkId")
    return bulk_id


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
    return json_of(service.show_all(task, await reasons(service.engine, task), await linked(service.engine, task)))


@router.post("/{task_id}/retry", operation_id="retry_task", responses=problems(404))
async def retry(task_id: UUID, service: Served, who: IdentityDep) -> Retried:
    """Run a failed task again, now, with all its attempts."""
    task = await service.engine.retry(task_id, audit=service.auditor(who).of_tasks("retry"))
    # As the retry left it: a quick worker may have it by now.
    return Retried(id=task.id, status=TaskState.PENDING, attempts=0, next_retry_at=None)


@router.post("/{task_id}/cancel", operation_id="cancel_task", responses=problems(404, 409))
async def cancel(task_id: UUID, service: Served, who: IdentityDep) -> TaskView:
    """Cancel a waiting task, or ask a running one to stop."""
    return service.show(await service.engine.cancel(task_id, audit=service.auditor(who).of_tasks("cancel")))


@router.post("/{task_id}/run-now", operation_id="run_task_now", responses=problems(404, 409))
async def run_now(task_id: UUID, service: Served, who: IdentityDep) -> TaskView:
    """Let a task that waits for its time or its retry run now, attempts kept."""
    return service.show(await service.engine.run_now(task_id, audit=service.auditor(who).of_tasks("run-now")))


@router.post("/{task_id}/revive", operation_id="revive_task", responses=problems(404, 409))
async def revive(task_id: UUID, service: Served, who: IdentityDep) -> TaskView:
    """Undo a cancel: the task waits again, with all its attempts, due when it was due."""
    return service.show(await service.engine.revive(task_id, audit=service.auditor(who).of_tasks("revive")))


@router.post(
    "/{task_id}/copy",
    status_code=201,
    response_model=TaskView,
    operation_id="copy_task",
    responses=problems(404, *BODY),
)
async def copy(task_id: UUID, given: Copy, request: Request, service: Served, who: IdentityDep) -> Response:
    """Run a finished task again: a copy under a new id, due now, perhaps with other arguments."""
    payload = given.payload if "payload" in given.model_fields_set else SAME
    auditor = service.auditor(who)
    made = await repeat(service.engine, task_id, payload=payload, registry=service.registry, auditor=auditor)
    prefix = request.scope.get("root_path", "")
    after = await service.engine.get_or_raise(made.id)
    return json_of(service.show(after), 201, {"Location": f"{prefix}/api/tasks/{made.id}"})


@router.delete("/{task_id}", status_code=204, operation_id="delete_task", responses=problems(404))
async def delete(task_id: UUID, service: Served, who: IdentityDep) -> Response:
    """Delete a finished task."""
    await service.engine.delete(task_id, audit=service.auditor(who).of_tasks("delete"))
    return Response(status_code=204)


def json_of(body: ResponseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    # Written here: the framework would first check what has just been made.
    text = body.model_dump_json(by_alias=True)
    return Response(text, status, headers=headers, media_type="application/json")
