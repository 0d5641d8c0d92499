"""Why a task has not started: what an operator wants to know of one that waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from tasklib.core.lifecycle import Phase, phase_of
from tasklib.core.task import Task
from tasklib.engine.engine import Engine
from tasklib.engine.linked import parents_total
from tasklib.stores.values import Controls, NameStats, WorkerInfo


class Cause(StrEnum):
    TASKS = "tasks"
    SCHEDULED = "scheduled"
    RETRY = "retry"
    PAUSED = "paused"
    NO_WORKER = "no_worker"
    CONCURRENCY_LIMIT = "concurrency_limit"
    RATE_LIMIT = "rate_limit"
    BUSY = "busy"


class WorkerState(StrEnum):
    LIVE = "live"
    STOPPING = "stopping"
    """It finishes what it runs, and takes nothing more."""
    LOST = "lost"
    """Not heard of for too long, without a goodbye."""
    STOPPED = "stopped"


class Reason(NamedTuple):
    cause: Cause
    text: str
    until: datetime | None = None


async def reasons(engine: Engine, task: Task) -> list[Reason]:
    """All that holds the task back now, the lasting ones first; none for a task that runs or is finished."""
    if phase_of(task) not in (Phase.PENDING, Phase.WAITING):
        return []
    controls, workers = await engine.standing()
    live = [worker for worker in workers if is_live(worker, engine.config.dead_after_seconds)]
    found = [*_waits(task), *_paused(task, controls), *_unhandled(task, live)]
    # What was due when it was last written is due: it is the same clock.
    if task.waits <= 0 and task.due_at > task.updated_at:
        found += _not_due(task, await (await engine.store()).now())
    if not found:
        found = _in_line(task, controls, await engine.stats(), live)
    return found


def worker_state(worker: WorkerInfo, dead_after: float) -> WorkerState:
    if worker.stopped_at is not None:
        return WorkerState.STOPPED
    if worker.seconds_since_seen > dead_after:
        return WorkerState.LOST
    return WorkerState.LIVE if worker.concurrency > 0 else WorkerState.STOPPING


def is_live(worker: WorkerInfo, dead_after: float) -> bool:
    """Whether it takes tasks."""
    return worker_state(worker, dead_after) is WorkerState.LIVE


def _waits(task: Task) -> Iterable[Reason]:
    if task.waits > 0:
        total = max(task.waits, parents_total(task))
        end = "end" if (task.after or {}).get("on") == "end" else "complete"
        yield Reason(Cause.TASKS, f"It waits for {task.waits} of {_number(total, 'task')} to {end}.")


def _paused(task: Task, controls: Mapping[str, Controls]) -> Iterable[Reason]:
    if controls.get("", Controls()).paused:
        yield Reason(Cause.PAUSED, "The whole queue is paused.")
    if controls.get(task.name, Controls()).paused:
        yield Reason(Cause.PAUSED, f"The type {task.name} is paused.")


def _unhandled(task: Task, live: list[WorkerInfo]) -> Iterable[Reason]:
    if not any(task.name in worker.names for worker in live):
        who = "No worker is running to handle"
        if live:
            several = f"None of the {len(live)} live workers handles"
            who = "The only live worker does not handle" if len(live) == 1 else several
        yield Reason(Cause.NO_WORKER, f"{who} the type {task.name}.")


def _not_due(task: Task, now: datetime) -> Iterable[Reason]:
    if task.next_retry_at is not None and task.next_retry_at > now:
        yield Reason(Cause.RETRY, f"Attempt {task.attempts} failed; the next one is due later.", task.next_retry_at)
    elif task.next_retry_at is None and task.scheduled_at > now:
        yield Reason(Cause.SCHEDULED, "It is scheduled for later.", task.scheduled_at)


def _in_line(
    task: Task, controls: Mapping[str, Controls], stats: dict[str, NameStats], live: list[WorkerInfo]
) -> list[Reason]:
    """It is due and somebody handles it: what it waits for is its turn."""
    found = []
    own = stats.get(task.name, NameStats())
    everywhere = sum(each.running for each in stats.values())
    for scope, running, of in (("", everywhere, ""), (task.name, own.running, f" of the type {task.name}")):
        limits = controls.get(scope, Controls())
        if limits.concurrency is not None and running >= limits.concurrency:
            run = f"{_number(running, 'task')}{of} {'is' if running == 1 else 'are'} running"
            text = f"{run}, and no more than {limits.concurrency} may."
            found.append(Reason(Cause.CONCURRENCY_LIMIT, text))
        if limits.rate is not None:
            tasks = f"{limits.rate:g} {'task' if limits.rate == 1 else 'tasks'}{of}"
            found.append(Reason(Cause.RATE_LIMIT, f"No more than {tasks} may start in a second."))
    if not found:
        handling = [worker for worker in live if task.name in worker.names]
        slots = sum(worker.concurrency for worker in handling)
        text = (
            f"It is due and waits for its turn: of its type {own.pending + own.waiting} wait and {own.running} run; "
            f"{_number(len(handling), 'live worker')} for it, with {_number(slots, 'slot')}."
        )
        found.append(Reason(Cause.BUSY, text))
    return found


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
