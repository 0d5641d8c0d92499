"""The record: what is known of a task, and the questions people ask of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from tasklib.core.errors import WaitTimeout
from tasklib.core.flows import After
from tasklib.core.redact import mask_text
from tasklib.core.unique import Unique

_MANY_PARENTS = re.compile(r'"parents": ?[0-9]')


class TaskState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class NewTask(NamedTuple):
    """A task that is about to be submitted. Times are durations or absent: the store's clock makes them instants.
    A tuple: they are made by the thousand."""

    id: UUID
    name: str
    kwargs: str
    """The payload as JSON text, already checked."""
    max_retries: int = 3
    delay_seconds: float | None = None
    run_at: datetime | None = None
    timeout_seconds: int | None = None
    priority: int = 0
    tags: str = "{}"
    idempotency_key: str | None = None
    retry_policy: str | None = None
    trace: str | None = None
    # What most tasks have nothing of: a plain insert leaves it out.
    unique_rule: Unique | None = None
    after: After | None = None
    """The tasks that it waits for."""
    before: tuple[UUID, ...] = ()
    """Tasks that are to wait for this one, too; they must be waiting still."""
    flow_id: UUID | None = None
    """The id of the flow's first task."""
    flow_name: str | None = None
    """Of the flow, said by its first task."""

    @property
    def is_linked(self) -> bool:
        """It waits for others, or others for it, or it is in a flow."""
        return self.after is not None or bool(self.before) or self.flow_id is not None

    @property
    def is_plain(self) -> bool:
        """It has nothing in common with other tasks, stored or not: storing it waits for nobody."""
        return self.idempotency_key is None and self.unique_rule is None and not self.is_linked


class Claim(NamedTuple):
    """The right to settle one task, with all that is needed to run it. A tuple: they are made by the ten thousand."""

    id: UUID
    name: str
    version: int
    worker_id: str
    kwargs: str
    retry_count: int
    max_retries: int
    timeout_seconds: int | None
    retry_policy: str | None
    started_at: datetime
    tags: str
    trace: str | None
    no_prefetch: bool
    """Its last allowed attempt, or its latest attempt lost its worker: never prefetched, never in a slice."""
    isolated: bool = False
    """Its latest two attempts lost their workers, or its latest one did and this is the last: it may be what kills
    them, or cannot afford to be beside that. It starts with nothing else."""
    waited_ms: int | None = None
    """From when it was due to this start, its first one; None: a retry, of which nobody knows when it was due."""
    flow: str | None = None
    """None for most. Else what it is in a flow, as JSON: `id` of the flow, `after` as the column has it, and `feeds`,
    true, if others wait for it."""

    @property
    def feeds(self) -> bool:
        """Others wait for it, or may."""
        return self.flow is not None and '"feeds"' in self.flow

    @property
    def takes_results(self) -> bool:
        """Results of others go into its payload, or may: those of many parents are kept beside the row."""
        return self.flow is not None and ('"inputs"' in self.flow or _MANY_PARENTS.search(self.flow) is not None)

    @property
    def attempt(self) -> int:
        return self.retry_count + 1

    @property
    def is_last(self) -> bool:
        """No attempt comes after this one."""
        return 0 <= self.max_retries <= self.retry_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One row of the table `tasks`, by its column names."""

    id: UUID
    name: str
    state: str
    scheduled_at: datetime
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    next_retry_at: datetime | None = None
    args: dict[str, Any] = field(default_factory=dict)
    kwargs: Any = field(default_factory=dict)
    result: dict[str, Any] | None = None
    error: str | None = None
    retry_count: int = 0
    max_retries: int = 3
    worker_id: str | None = None
    locked_until: datetime | None = None
    timeout_seconds: int | None = None
    priority: int = 0
    tags: dict[str, Any] = field(default_factory=dict)
    cancel_requested_at: datetime | None = None
    version: int = 0
    idempotency_key: str | None = None
    retry_policy: dict[str, Any] | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    trace: str | None = None
    last_worker_id: str | None = None
    """Who ran the latest attempt that is over; `worker_id` is set only while one runs."""
    run_ms: int | None = None
    """How long its handler ran. None: it runs, or nobody knows, because its worker was lost."""
    unique_key: str | None = None
    """No other task of its type has it; cleared when it stops being unique."""
    unique_until: str | None = None
    copy_of: UUID | None = None
    """The task that it repeats under an id of its own."""
    waits: int = 0
    """How many tasks it still waits for."""
    after: dict[str, Any] | None = None
    """What it waits, or waited, for: `on`, `parents` (ids; of many, how many), `inputs`, its own `delay` or `runAt`; on
    the first task of a flow `flow`, its name; `cutBy`, the parent whose end cancelled it."""
    flow_id: UUID | None = None
    """The flow that it is in: the id of the flow's first task."""
    fed: bool = False
    """Others wait, or waited, for it: who looks it up asks the store."""

    @property
    def attempts(self) -> int:
        """How many attempts were begun. Derived, so that it is never stored twice."""
        if self.state in (TaskState.RUNNING, TaskState.COMPLETED) or (
            self.state == TaskState.FAILED and self.completed_at is not None
        ):
            return self.retry_count + 1
        return self.retry_count

    @property
    def max_attempts(self) -> int:
        """0 means unlimited."""
        return self.max_retries + 1

    @property
    def due_at(self) -> datetime:
        return self.next_retry_at or self.scheduled_at

    @property
    def waiting(self) -> bool:
        """Failed, with a retry to come."""
        return self.state == TaskState.FAILED and self.completed_at is None


def is_pending(task: Task) -> bool:
    return task.state == TaskState.PENDING


def is_running(task: Task) -> bool:
    return task.state == TaskState.RUNNING


def is_completed(task: Task) -> bool:
    return task.state == TaskState.COMPLETED


def is_failed(task: Task) -> bool:
    return task.state == TaskState.FAILED


def has_result(task: Task) -> bool:
    return task.result is not None


def has_error(task: Task) -> bool:
    return task.error is not None


def is_terminal(task: Task) -> bool:
    """Nothing but an operator will change it any more."""
    return task.completed_at is not None


def waited_ms(retry_count: int, due_at: datetime, started_at: datetime | None) -> int | None:
    """As `Claim` has it."""
    if retry_count > 0 or started_at is None:
        return None
    return max(0, round(1000 * (started_at - due_at).total_seconds()))


def run_time(task: Task, now: datetime) -> float:
    """Milliseconds that its latest attempt took, or takes if it runs; -1 where that is not known."""
    if task.state == TaskState.RUNNING and task.started_at is not None:
        return (now - task.started_at).total_seconds() * 1000
    return -1.0 if task.run_ms is None else float(task.run_ms)


def last_line(error: str) -> str:
    """What a traceback says in the end, past the indented notes that may follow the exception."""
    lines = [line for line in error.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line[0].isspace()), lines[-1] if lines else "").strip()


def not_finished(task_id: UUID, task: Task | None, timeout: float | None) -> WaitTimeout:
    """How far a task got that somebody waited for; None: it was not seen at all."""
    text = f"task {task_id} was not finished within {timeout} s"
    if task is None:
        return WaitTimeout(f"{text}; the queue did not say how it is", task_id=task_id)
    state = "waiting for a retry" if task.waiting else task.state
    text += f": {task.name} is {state}, {task.attempts} of {task.max_attempts or 'unlimited'} attempts begun"
    if task.error:
        text += f"; last error: {mask_text(last_line(task.error))}"
    return WaitTimeout(text, task_id=task_id, state=task.state)
