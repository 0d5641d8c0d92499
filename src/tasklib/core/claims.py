"""Claims made by hand: who may take a task, and who may settle it. Pure; the errors are the claim API's."""

from __future__ import annotations

import json
from datetime import datetime
from enum import Enum, auto
from typing import TypeVar

from tasklib.core import codec, decide
from tasklib.core.decide import Change
from tasklib.core.durations import in_seconds
from tasklib.core.errors import (
    InvalidOption,
    InvalidWorkerId,
    TaskAlreadyClaimed,
    TaskCancelled,
    TaskCompleted,
    TaskConflict,
    TaskFailed,
    TaskNotClaimed,
    TaskNotDue,
    WrongWorker,
)
from tasklib.core.lifecycle import Phase, phase_of
from tasklib.core.task import Claim, Task, waited_ms

C = TypeVar("C", bound=TaskConflict)

WORKER_ID_LIMIT = 255
SHORTEST_LEASE = 0.001
LONGEST_LEASE = 1e9

_OVER: dict[Phase, type[TaskConflict]] = {
    Phase.COMPLETED: TaskCompleted,
    Phase.FAILED: TaskFailed,
    Phase.CANCELLED: TaskCancelled,
}


class ClaimAttempt(Enum):
    """How a worker comes to a task that it wants."""

    NEW = auto()
    """It waits, and may be taken if it is due."""
    EXTEND = auto()
    """It is this worker's already: nothing is counted, the lease begins anew."""
    TAKEOVER = auto()
    """Another worker has it: only an expired lease can be taken over."""


def check_worker_id(value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= WORKER_ID_LIMIT:
        message = f"worker_id must be text of 1 to {WORKER_ID_LIMIT} characters, got {value!r:.60}"
        raise InvalidWorkerId(message, field="worker_id")
    problem = codec.text_problem(value)
    if problem:
        raise InvalidWorkerId(f"worker_id {problem}", field="worker_id")
    return value


def check_lease(value: object, field: str = "claim_ttl") -> float:
    value = in_seconds(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not SHORTEST_LEASE <= value <= LONGEST_LEASE:
        limits = f"a number of seconds from {SHORTEST_LEASE} to {LONGEST_LEASE:.0f}"
        raise InvalidOption(f"{field} must be {limits}, got {value!r:.60}", field=field)
    return float(value)


def attempt_of(task: Task, worker_id: str) -> ClaimAttempt:
    """Raises TaskCompleted, TaskFailed or TaskCancelled for a task that is over."""
    phase = phase_of(task)
    if phase in (Phase.PENDING, Phase.WAITING):
        return ClaimAttempt.NEW
    if phase is Phase.RUNNING:
        return ClaimAttempt.EXTEND if task.worker_id == worker_id else ClaimAttempt.TAKEOVER
    raise _over(task, phase, "claimed")


def take_over(task: Task, now: datetime, reason: str) -> Change:
    """What takes a running task from its worker: allowed once the lease has run out. Raises TaskAlreadyClaimed."""
    if task.locked_until is None or task.locked_until <= now:
        return decide.expire(task, reason)
    raise _conflict(TaskAlreadyClaimed, task, f"task {task.id} is claimed by worker {task.worker_id}")


def held_back(task: Task, now: datetime) -> TaskNotDue:
    """Why a task that nobody has could not be taken."""
    if task.waits > 0 and task.due_at > now:
        wait = f"waits for {task.waits} tasks"
    elif task.due_at > now:
        wait = f"is not due before {task.due_at.isoformat()}"
    else:
        wait = f"is held back by a pause or a limit of {task.name!r} or of all types"
    return _conflict(TaskNotDue, task, f"task {task.id} {wait}")


def holding(task: Task, worker_id: str, version: int | None) -> Claim:
    """The claim under which this worker may settle or extend. `version`: that claim and no later one."""
    phase = phase_of(task)
    if phase in (Phase.PENDING, Phase.WAITING):
        raise _conflict(TaskNotClaimed, task, f"task {task.id} is not claimed; claim it first")
    if phase is not Phase.RUNNING:
        raise _over(task, phase, "settled")
    if task.worker_id != worker_id:
        raise _conflict(WrongWorker, task, f"task {task.id} is claimed by worker {task.worker_id}, not by {worker_id}")
    if version is not None and version != task.version:
        message = f"task {task.id} was claimed anew: the claim is at version {task.version}, not {version}"
        raise _conflict(WrongWorker, task, message)
    return claim_of(task)


def claim_of(task: Task) -> Claim:
    """The claim that a running task is under."""
    return Claim(
        id=task.id,
        name=task.name,
        version=task.version,
        worker_id=task.worker_id or "",
        kwargs=json.dumps(task.kwargs),
        retry_count=task.retry_count,
        max_retries=task.max_retries,
        timeout_seconds=task.timeout_seconds,
        retry_policy=None if task.retry_policy is None else json.dumps(task.retry_policy),
        started_at=task.started_at or task.updated_at,
        tags=json.dumps(task.tags),
        trace=task.trace,
        no_prefetch=False,
        waited_ms=waited_ms(task.retry_count, task.scheduled_at, task.started_at),
    )


def _over(task: Task, phase: Phase | None, verb: str) -> TaskConflict:
    kind = TaskConflict if phase is None else _OVER[phase]
    return _conflict(kind, task, f"task {task.id} is {task.state} and can no longer be {verb}")


def _conflict(kind: type[C], task: Task, message: str) -> C:
    return kind(message, task_id=task.id, state=task.state, version=task.version, worker_id=task.worker_id)
