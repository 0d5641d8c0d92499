"""A task in the words of the claim door."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from tasklib.core.envelope import unpack
from tasklib.core.task import Task, TaskState
from tasklib.stores.values import Filter


class TaskStatus(StrEnum):
    PENDING = "pending"
    """Waiting to be claimed, for the first time or again."""
    CLAIMED = "claimed"
    COMPLETED = "completed"
    FAILED = "failed"
    """For good: one that will be tried again is pending."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedTask:
    """One task, as a manager shows it."""

    id: UUID
    name: str
    idempotency_key: str | None
    payload: Any
    """What was submitted: a JSON value, or bytes."""
    status: str
    """One of TaskStatus; of a row that somebody edited into a state nobody knows, that state."""
    attempts: int
    """How often it was claimed, repeats by the same worker aside."""
    max_attempts: int
    """0 is unlimited."""
    created_at: datetime
    claimed_at: datetime | None
    """When it was last claimed."""
    claimed_by: str | None
    """The worker that has it now."""
    claimed_until: datetime | None
    """When the claim runs out unless it is extended."""
    completed_at: datetime | None
    """When it completed, failed for good, or was cancelled."""
    result: Any
    error: str | None
    """Of the latest attempt that failed."""
    version: int
    """Grows with every claim and every outcome: what a claim is known by."""
    cancel_requested: bool
    """Somebody asked the worker to stop: what does not complete now ends cancelled."""


def managed(task: Task) -> ManagedTask:
    return ManagedTask(
        id=task.id,
        name=task.name,
        idempotency_key=task.idempotency_key,
        payload=unpack(task.kwargs),
        status=_status(task),
        attempts=task.attempts,
        max_attempts=task.max_attempts,
        created_at=task.created_at,
        claimed_at=task.started_at,
        claimed_by=task.worker_id,
        claimed_until=task.locked_until,
        completed_at=task.completed_at,
        result=None if task.result is None else unpack(task.result.get("value")),
        error=task.error,
        version=task.version,
        cancel_requested=task.cancel_requested_at is not None,
    )


_STATES: dict[TaskStatus, tuple[tuple[str, ...], bool | None]] = {
    TaskStatus.PENDING: ((TaskState.PENDING, TaskState.FAILED), False),
    TaskStatus.CLAIMED: ((TaskState.RUNNING,), None),
    TaskStatus.COMPLETED: ((TaskState.COMPLETED,), None),
    TaskStatus.FAILED: ((TaskState.FAILED,), True),
    TaskStatus.CANCELLED: ((TaskState.CANCELLED,), None),
}


def filter_of(status: TaskStatus | None, name: str | None) -> Filter:
    states, terminal = (None, None) if status is None else _STATES[status]
    return Filter(states=states, terminal=terminal, names=None if name is None else [name])


def _status(task: Task) -> str:
    if task.state == TaskState.RUNNING:
        return TaskStatus.CLAIMED
    if task.waiting:
        return TaskStatus.PENDING
    return TaskStatus(task.state) if task.state in set(TaskState) else task.state
