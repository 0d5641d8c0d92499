"""/api/claims: for workers in any language. They claim, and complete, fail, extend or release what they claimed."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Request

from tasklib.core import codec
from tasklib.core.decide import Change
from tasklib.core.outcome import Completed, Failed, Outcome, Released
from tasklib.core.task import Task, TaskState
from tasklib.engine import claims
from tasklib.server.claim_schemas import (
    ClaimNext,
    ClaimOne,
    Claims,
    ClaimView,
    Complete,
    Extend,
    Fail,
    Held,
    Settled,
)
from tasklib.server.docs import BODY, Responses, claim_conflict, problems
from tasklib.server.problems import shown_status
from tasklib.server.service import Served, Service

router = APIRouter(prefix="/api/claims", tags=["claims"])

_ONE: Responses = {**problems(404, *BODY), **claim_conflict()}


@router.post("", operation_id="claim_next", responses=problems(*BODY))
async def claim_next(given: ClaimNext, request: Request, service: Served) -> Claims:
    """Claim the next due tasks: by priority, then first come, first served. With nothing due the list is empty."""
    found = await claims.claim_next(
        service.engine,
        given.worker_id,
        given.types,
        given.limit,
        _lease(service, given.lease_seconds),
        wait_seconds=given.wait_seconds,
        abandoned=request.is_disconnected,
    )
    if found and given.wait_seconds and await request.is_disconnected():
        # Whoever waited has gone: the tasks are for others, and no attempt is counted.
        for task in found:
            await claims.settle(service.engine, task.id, given.worker_id, task.version, Released())
    return Claims(claims=[_view(task) for task in found])


@router.post("/{task_id}", operation_id="claim_task", responses=_ONE)
async def claim_one(task_id: UUID, given: ClaimOne, service: Served) -> ClaimView:
    """Claim this task. Again by the worker that has it: the same claim, extended."""
    lease = _lease(service, given.lease_seconds)
    return _view(await claims.claim(service.engine, task_id, given.worker_id, lease))


@router.post("/{task_id}/complete", operation_id="complete_claim", responses=_ONE)
async def complete(task_id: UUID, given: Complete, service: Served) -> Settled:
    """The work is done."""
    text = codec.encode(given.result, field="result", limit=service.engine.config.max_result_bytes)
    return await _settle(service, task_id, given, Completed(f'{{"value":{text}}}'))


@router.post("/{task_id}/fail", operation_id="fail_claim", responses=_ONE)
async def fail(task_id: UUID, given: Fail, service: Served) -> Settled:
    """The attempt failed; with attempts left there will be another."""
    return await _settle(service, task_id, given, Failed(codec.clip_error(given.error), final=not given.retryable))


@router.post("/{task_id}/extend", operation_id="extend_claim", responses=_ONE)
async def extend(task_id: UUID, given: Extend, service: Served) -> ClaimView:
    """Begin the claim's time anew; `cancelRequested` tells the worker to stop."""
    lease = _lease(service, given.lease_seconds)
    return _view(await claims.extend(service.engine, task_id, given.worker_id, given.version, lease))


@router.post("/{task_id}/release", operation_id="release_claim", responses=_ONE)
async def release(task_id: UUID, given: Held, service: Served) -> Settled:
    """Give the task back unfinished; the attempt is not counted."""
    return await _settle(service, task_id, given, Released())


async def _settle(service: Service, task_id: UUID, held: Held, outcome: Outcome) -> Settled:
    change = await claims.settle(service.engine, task_id, held.worker_id, held.version, outcome)
    return Settled(
        id=task_id,
        status=shown_status(change.state),
        attempts=_attempts(change),
        will_retry=not change.terminal,
    )


def _attempts(change: Change) -> int:
    counts = change.terminal and change.state != TaskState.CANCELLED
    return change.retry_count + counts


def _lease(service: Service, given: float | None) -> float:
    return service.engine.config.lock_timeout_seconds if given is None else given


def _view(task: Task) -> ClaimView:
    """Whole: a worker cannot work with what is masked."""
    return ClaimView(
        id=task.id,
        type=task.name,
        payload=task.kwargs,
        worker_id=task.worker_id or "",
        version=task.version,
        attempts=task.attempts,
        max_attempts=task.max_attempts,
        claimed_at=task.started_at,
        locked_until=task.locked_until,
        created_at=task.created_at,
        priority=task.priority,
        tags=task.tags,
        timeout_seconds=task.timeout_seconds,
        idempotency_key=task.idempotency_key,
        error=task.error,
        cancel_requested=task.cancel_requested_at is not None,
    )
