"""Task + fact -> Change: what to write, and under which guard. Pure; stores write what is decided here."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from tasklib.core.codec import clip_error
from tasklib.core.errors import (
    MaxAttemptsReached,
    TaskCancelled,
    TaskCompleted,
    TaskConflict,
    TaskNotDue,
    TaskNotFailed,
    TaskNotTerminal,
)
from tasklib.core.lifecycle import STATE_OF, TERMINAL, Event, Phase, move, phase_of
from tasklib.core.outcome import Cancelled, Completed, Failed, Outcome, Released, Snoozed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim, Task, TaskState, waited_ms

HISTORY_LIMIT = 50
HISTORY_ERROR_LIMIT = 2048

LATENCY_BOUNDS_MS = (
    *(5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000),
    *(900_000, 3_600_000, 14_400_000, 86_400_000),
)
"""Upper bounds of the histograms of run times and waiting times; the last bucket is everything beyond."""

UNTIMED = -1
"""The bucket of a move that ran nothing."""


class Change(NamedTuple):
    """One guarded write: `id`, `version`, `worker_id` and, where set, `locked_until` are the guard, the rest is what to
    write."""

    id: UUID
    version: int | None
    """None where the claim is held by name alone (claims made by hand)."""
    worker_id: str | None
    locked_until: datetime | None
    state: TaskState
    retry_count: int
    terminal: bool
    due_in: float | None = None
    """Seconds from now: `next_retry_at` of a failed task, `scheduled_at` of a pending one; None leaves the latter."""
    result: str | None = None
    error: str | None = None
    """None keeps the error that is there, but for a completion, which clears it."""
    entry: str | None = None
    """To append to the history, as JSON without `ended`, which the store adds."""
    leaves: TaskState | None = None
    """The terminal state that an operator takes the task out of: the counters must know."""
    run_ms: int = 0
    bucket: int = UNTIMED
    waited_ms: int | None = None
    """How long the task had waited for the attempt that ends; None: that is not known, or none ends."""
    if_asked: Change | None = None
    """What is written in its place if a cancel of the running task has been asked for by then. The same write looks, so
    that no request falls between. It differs in state, retry_count, due_in, error and entry alone, and is cancelled."""
    feeds: bool = False
    """Others wait for the task, as far as its claim knew."""


class WriteResult(StrEnum):
    """What became of a guarded write."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    """This very write had gone through before; only its reply was lost."""
    STALE = "stale"
    """The task has moved on; nothing was written."""
    MISSING = "missing"
    AWAITED = "awaited"
    """It was to be deleted, and another task waits for it; nothing was written."""


def bucket_of(run_ms: int) -> int:
    return bisect_left(LATENCY_BOUNDS_MS, run_ms)


def attempts_left(retry_count: int, max_retries: int) -> bool:
    return max_retries < 0 or retry_count < max_retries


def settle(claim: Claim, outcome: Outcome, policy: RetryPolicy, spread: float = 0.0) -> Change:
    """What an attempt's outcome makes of its task. What does not complete is cancelled if that was asked for."""
    if type(outcome) is Completed:
        return Change(
            claim.id,
            claim.version,
            claim.worker_id,
            None,
            TaskState.COMPLETED,
            claim.retry_count,
            True,
            None,
            outcome.result,
            None,
            None,
            None,
            outcome.run_ms,
            bisect_left(LATENCY_BOUNDS_MS, outcome.run_ms),
            claim.waited_ms,
            None,
            claim.feeds,
        )
    return _unfinished(claim, outcome, policy, spread)._replace(waited_ms=claim.waited_ms)


def _unfinished(claim: Claim, outcome: Outcome, policy: RetryPolicy, spread: float) -> Change:
    guard = _Guard(claim.id, claim.version, claim.worker_id, None)
    attempt = _Attempt(claim.retry_count, claim.max_retries, claim.worker_id, claim.started_at)
    match outcome:
        case Failed():
            if outcome.delay is None:
                kept = RetryPolicy.from_json(claim.retry_policy) if claim.retry_policy else policy
                delay = kept.delay(claim.retry_count + 1, spread)
            else:
                delay = outcome.delay
            return _failed(guard, attempt, outcome, delay)
        case Cancelled():
            return _stopped(guard, attempt, outcome.error, run_ms=outcome.run_ms, bucket=bucket_of(outcome.run_ms))
        case Released() | Snoozed():
            entry = attempt.snoozed(outcome.delay) if isinstance(outcome, Snoozed) else None
            stopped = _stopped(guard, attempt, "cancelled before it could finish")
            return _to(guard, Event.RELEASE, claim.retry_count, due_in=outcome.delay, entry=entry, if_asked=stopped)
        case _:
            raise AssertionError(outcome)


def expire(task: Task, reason: str) -> Change:
    """The lease ran out, or its worker vanished: a failed attempt that says so, due again now."""
    guard = _Guard(task.id, task.version, task.worker_id, task.locked_until)
    attempt = _Attempt(task.retry_count, task.max_retries, task.worker_id, task.started_at)
    waited = waited_ms(task.retry_count, task.scheduled_at, task.started_at)
    return _failed(guard, attempt, Failed(reason, lost=True), 0.0)._replace(waited_ms=waited)


def cancel(task: Task) -> Change | None:
    """None: the task is running and can only be asked to stop."""
    phase = phase_of(task)
    if phase is Phase.RUNNING:
        return None
    if move(phase, Event.CANCEL) is None:
        raise _conflict(task, "cancelled")
    guard = _Guard(task.id, task.version, task.worker_id, None)
    return _to(guard, Event.CANCEL, task.retry_count, start=phase)


def retry_by_hand(task: Task) -> Change:
    """An operator's retry: all attempts anew, due now, history kept."""
    phase = phase_of(task)
    if move(phase, Event.RETRY) is None:
        message = f"task {task.id} is {task.state}: only a failed task can be retried"
        raise TaskNotFailed(message, task_id=task.id, state=task.state)
    guard = _Guard(task.id, task.version, task.worker_id, None)
    leaves = TaskState.FAILED if phase in TERMINAL else None
    return _to(guard, Event.RETRY, 0, start=phase, due_in=0.0)._replace(leaves=leaves)


def run_now(task: Task, now: datetime) -> Change | None:
    """What waits for its time is due at once, attempts and history kept. None: it is due anyway."""
    phase = phase_of(task)
    if move(phase, Event.RUN_NOW) is None:
        raise _conflict(task, "run now")
    if task.due_at <= now:
        return None
    if task.waits > 0:
        message = f"task {task.id} waits for {task.waits} tasks and cannot be run now"
        raise TaskNotDue(message, task_id=task.id, state=task.state)
    guard = _Guard(task.id, task.version, task.worker_id, None)
    return _to(guard, Event.RUN_NOW, task.retry_count, start=phase, due_in=0.0)


def revive(task: Task) -> Change:
    """A cancelled task waits again: all attempts anew, due when it was due before, history kept."""
    phase = phase_of(task)
    if move(phase, Event.REVIVE) is None:
        message = f"task {task.id} is {task.state}: only a cancelled task can be revived"
        raise TaskConflict(message, task_id=task.id, state=task.state)
    if task.after is not None and "cutBy" in task.after:
        message = f"task {task.id} was cut off by the end of task {task.after['cutBy']}: retry or revive that one"
        raise TaskConflict(message, task_id=task.id, state=task.state)
    guard = _Guard(task.id, task.version, task.worker_id, None)
    return _to(guard, Event.REVIVE, 0, start=phase)._replace(leaves=TaskState.CANCELLED)


def resume(task: Task, now: datetime) -> Change | None:
    """The claim API's retry: due now, attempts and history kept. None: it waits to be claimed anyway, and nothing
    changes. What runs is taken from its worker; that attempt counts."""
    phase = phase_of(task)
    if phase is Phase.PENDING or (phase is Phase.WAITING and task.due_at <= now):
        return None
    if move(phase, Event.RESUME) is None:
        raise _conflict(task, "retried")
    guard = _Guard(task.id, task.version, task.worker_id, None)
    attempt = _Attempt(task.retry_count, task.max_retries, task.worker_id, task.started_at)
    taken_back = f"TaskRetried: taken back from worker {task.worker_id} by a retry"
    stopped = _stopped(guard, attempt, taken_back) if phase is Phase.RUNNING else None
    if stopped is not None and task.cancel_requested_at is not None:
        return stopped
    if 0 < task.max_attempts <= task.attempts:
        message = f"task {task.id} has used all of its {task.max_attempts} attempts"
        raise MaxAttemptsReached(message, task_id=task.id, state=task.state)
    entry = None if stopped is None else stopped.entry
    leaves = TaskState.FAILED if phase in TERMINAL else None
    change = _to(guard, Event.RESUME, task.attempts, start=phase, due_in=0.0, entry=entry, if_asked=stopped)
    return change._replace(leaves=leaves)


def split_by_task(changes: Sequence[Change]) -> Sequence[Sequence[int]]:
    """Places of the changes, such that no task is twice in a part: of two changes to one task the first goes first. A
    statement writes a row once, and would choose for itself which of them it takes."""
    if len({change.id for change in changes}) == len(changes):
        return [range(len(changes))]
    parts: list[list[int]] = []
    seen: Counter[UUID] = Counter()
    for place, change in enumerate(changes):
        if seen[change.id] == len(parts):
            parts.append([])
        parts[seen[change.id]].append(place)
        seen[change.id] += 1
    return parts


def unmeasured(change: Change) -> Change:
    """The same, where nobody measured how long the attempt took."""
    other = None if change.if_asked is None else unmeasured(change.if_asked)
    return change._replace(run_ms=0, bucket=UNTIMED, if_asked=other)


def check_deletable(task: Task) -> None:
    if phase_of(task) not in TERMINAL:
        message = f"task {task.id} is {task.state}: only a finished task can be deleted; cancel it first"
        raise TaskNotTerminal(message, task_id=task.id, state=task.state)


def check_over(task: Task) -> None:
    if phase_of(task) not in TERMINAL:
        message = f"task {task.id} is {task.state}: only a finished task can be run again"
        raise TaskNotTerminal(message, task_id=task.id, state=task.state)


def explain_miss(change: Change, found: Task | None) -> WriteResult:
    """Why a guarded write matched nothing: `found` is the row as it is now."""
    if found is None:
        return WriteResult.MISSING
    ours = _left(change, found) or (change.if_asked is not None and _left(change.if_asked, found))
    return WriteResult.DUPLICATE if ours else WriteResult.STALE


def holds(change: Change, found: Task | None) -> bool:
    """Whether the row meets the change's guard."""
    return (
        found is not None
        and change.version in (None, found.version)
        and change.worker_id == found.worker_id
        and change.locked_until in (None, found.locked_until)
    )


def written(change: Change, found: Task | None) -> Change:
    """Which of its two forms a change was written in: `found` is the row afterwards."""
    other = change.if_asked
    return other if other is not None and found is not None and _left(other, found) else change


def _left(change: Change, found: Task) -> bool:
    """The row is as this change leaves it."""
    return (
        change.version is not None
        and found.version == change.version + 1
        and found.state == change.state
        and found.retry_count == change.retry_count
        and (found.completed_at is not None) == change.terminal
        and (change.error is None or found.error == change.error)
    )


class _Guard(NamedTuple):
    id: UUID
    version: int | None
    worker_id: str | None
    locked_until: datetime | None


class _Attempt(NamedTuple):
    retry_count: int
    max_retries: int
    worker_id: str | None
    started_at: datetime | None

    def entry(self, error: str, *, type: str = "", lost: bool = False, run_ms: int = 0) -> str:
        also: dict[str, object] = {"type": type, "lost": lost, "run_ms": run_ms}
        more = {name: value for name, value in also.items() if value}
        return self._written(error=clip_error(error, HISTORY_ERROR_LIMIT), **more)

    def snoozed(self, seconds: float) -> str:
        return self._written(snoozed=seconds)

    def _written(self, **more: object) -> str:
        started = self.started_at.isoformat().replace("+00:00", "Z") if self.started_at else None
        record = {"attempt": self.retry_count + 1, "worker": self.worker_id, "started": started, **more}
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _failed(guard: _Guard, attempt: _Attempt, failure: Failed, delay: float) -> Change:
    again = attempts_left(attempt.retry_count, attempt.max_retries) and not failure.final
    bucket = UNTIMED if failure.lost else bucket_of(failure.run_ms)
    entry = attempt.entry(failure.error, type=failure.type, lost=failure.lost, run_ms=failure.run_ms)
    stopped = _stopped(guard, attempt, failure.error, entry, run_ms=failure.run_ms, bucket=bucket)
    return _to(
        guard,
        Event.FAIL if again else Event.GIVE_UP,
        attempt.retry_count + again,
        due_in=delay if again else None,
        error=stopped.error,
        entry=entry,
        run_ms=failure.run_ms,
        bucket=bucket,
        if_asked=stopped,
    )


def _stopped(
    guard: _Guard,
    attempt: _Attempt,
    error: str,
    entry: str | None = None,
    *,
    run_ms: int = 0,
    bucket: int = UNTIMED,
) -> Change:
    return _to(
        guard,
        Event.STOP,
        attempt.retry_count + 1,
        error=clip_error(error),
        entry=entry or attempt.entry(error, run_ms=run_ms),
        run_ms=run_ms,
        bucket=bucket,
    )


def _to(
    guard: _Guard,
    event: Event,
    retry_count: int,
    *,
    start: Phase | None = Phase.RUNNING,
    due_in: float | None = None,
    error: str | None = None,
    entry: str | None = None,
    run_ms: int = 0,
    bucket: int = UNTIMED,
    if_asked: Change | None = None,
) -> Change:
    target = move(start, event)
    assert target is not None, (start, event)
    return Change(
        *guard,
        state=STATE_OF[target],
        retry_count=retry_count,
        terminal=target in TERMINAL,
        due_in=due_in,
        error=error,
        entry=entry,
        run_ms=run_ms,
        bucket=bucket,
        if_asked=if_asked,
    )


def _conflict(task: Task, verb: str) -> TaskConflict:
    kind = {TaskState.COMPLETED: TaskCompleted, TaskState.CANCELLED: TaskCancelled}.get(task.state, TaskConflict)  # type: ignore[call-overload]
    message = f"task {task.id} is {task.state} and can no longer be {verb}"
    error: TaskConflict = kind(message, task_id=task.id, state=task.state)
    return error
