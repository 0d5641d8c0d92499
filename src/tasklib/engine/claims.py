"""Claims made by hand: by whoever brings a loop of their own, through Python or over HTTP."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from tasklib.core import claims, decide
from tasklib.core.claims import ClaimAttempt
from tasklib.core.decide import Change, WriteResult
from tasklib.core.errors import TaskConflict
from tasklib.core.outcome import Outcome
from tasklib.core.task import Claim, Task, TaskState
from tasklib.engine import task_log
from tasklib.engine.engine import TRIES, Engine, worker_lost_error
from tasklib.engine.listeners import Settled
from tasklib.engine.parents import fill_tasks
from tasklib.stores.protocol import ControlStore, Store, WorkStore
from tasklib.stores.values import Claimed, ClaimRequest, Controls, Held

POLL_SECONDS = 0.5
"""How often a claim that waits looks again when no wake-up comes."""


async def claim(engine: Engine, task_id: UUID, worker_id: str, lease_seconds: float) -> Task:
    """This one task. By the worker that has it already: the same claim, with its lease begun anew. From another worker
    whose lease ran out: after that attempt was recorded as failed."""
    store = await engine.store()
    for _ in range(TRIES):
        task = await engine.get_or_raise(task_id)
        match claims.attempt_of(task, worker_id):
            case ClaimAttempt.NEW:
                taken = await store.claim_by_id(task_id, task.version, worker_id, lease_seconds)
                if taken is not None:
                    task_log.started(taken)
                    (found,) = await store.get([task_id])
                    return await _filled(store, _claimed(found or task, taken, lease_seconds))
                await _check_held_back(store, task)
            case ClaimAttempt.EXTEND:
                extended = await _extended(store, task, lease_seconds)
                if extended is not None:
                    return await _filled(store, extended)
            case ClaimAttempt.TAKEOVER:
                contested = claims.take_over(task, await store.lease_now(), worker_lost_error(task))
                if (await store.settle([contested]))[0] is WriteResult.APPLIED:
                    await engine.announce([Settled(task, contested)])
    raise TaskConflict(f"task {task_id} changes too fast to be claimed", task_id=task_id)


async def claim_next(
    engine: Engine,
    worker_id: str,
    names: Sequence[str],
    limit: int,
    lease_seconds: float,
    *,
    wait_seconds: float = 0.0,
    abandoned: Callable[[], Awaitable[bool]] | None = None,
) -> list[Task]:
    """The next due tasks of these names, in order. With nothing due it waits for so long; `abandoned` tells that nobody
    waits for the answer any more."""
    store = await engine.store()
    request = ClaimRequest(worker_id=worker_id, names=names, slots=limit, lease_seconds=lease_seconds)
    if wait_seconds <= 0:
        return await _shown(store, (await _next(engine, store, request)).claims, lease_seconds)
    woken = asyncio.Event()
    stop_listening = store.listen(lambda hint: woken.set() if hint is None or hint in names else None)
    loop = asyncio.get_running_loop()
    end = loop.time() + wait_seconds
    try:
        while True:
            woken.clear()
            claimed = await _next(engine, store, request)
            left = end - loop.time()
            if claimed.claims or left <= 0:
                return await _shown(store, claimed.claims, lease_seconds)
            hint = POLL_SECONDS if claimed.next_due_in is None else max(0.001, claimed.next_due_in)
            try:
                # Only the rest is cut short, never a claim: its answer would be lost.
                async with asyncio.timeout(min(left, POLL_SECONDS, hint)):
                    await woken.wait()
            except TimeoutError:
                pass
            if abandoned is not None and await abandoned():
                return []
    finally:
        stop_listening()


async def settle(engine: Engine, task_id: UUID, worker_id: str, version: int | None, outcome: Outcome) -> Change:
    """What this worker's attempt came to. Returns what was written."""
    store = await engine.store()
    for _ in range(TRIES):
        task = await engine.get_or_raise(task_id)
        held = claims.holding(task, worker_id, version)
        change = decide.unmeasured(decide.settle(held, outcome, engine.config.default_retry, random.uniform(-1, 1)))
        if (await store.settle([change]))[0] in (WriteResult.APPLIED, WriteResult.DUPLICATE):
            task_log.ended(held, outcome, due_in=change.due_in)
            await engine.announce([Settled(held, change, outcome)])
            return change if change.if_asked is None else decide.written(change, await engine.get(task_id))
    raise TaskConflict(f"task {task_id} changes too fast to be settled", task_id=task_id)


async def extend(engine: Engine, task_id: UUID, worker_id: str, version: int | None, lease_seconds: float) -> Task:
    """Begins this worker's lease anew, and tells how the task stands."""
    store = await engine.store()
    for _ in range(TRIES):
        task = await engine.get_or_raise(task_id)
        claims.holding(task, worker_id, version)
        extended = await _extended(store, task, lease_seconds)
        if extended is not None:
            return extended
    raise TaskConflict(f"task {task_id} changes too fast to be extended", task_id=task_id)


async def retry(engine: Engine, task_id: UUID) -> Task:
    """Back to pending, due now, with the attempts it has had. One that waits anyway is left as it is."""
    store = await engine.store()
    for _ in range(TRIES):
        task = await engine.get_or_raise(task_id)
        change = decide.resume(task, await store.now())
        if change is None:
            return task
        if (await store.settle([change]))[0] in (WriteResult.APPLIED, WriteResult.DUPLICATE):
            return await engine.get_or_raise(task_id)
    raise TaskConflict(f"task {task_id} changes too fast to be retried", task_id=task_id)


async def _next(engine: Engine, store: WorkStore, request: ClaimRequest) -> Claimed:
    """A claim, and a second one if meanwhile something was found that dead workers hold."""
    await engine.recover(at_once=False)
    claimed = await store.claim(request)
    if not claimed.claims and await engine.recover(at_once=True):
        claimed = await store.claim(request)
    for each in claimed.claims:
        task_log.started(each)
    return claimed


async def _filled(store: Store, task: Task) -> Task:
    """With the results that it waited for among its arguments."""
    return task if task.after is None else (await fill_tasks(store, [task]))[0]


async def _shown(store: Store, made: Sequence[Claim], lease_seconds: float) -> list[Task]:
    if not made:
        return []
    tasks = await store.get([each.id for each in made])
    both = zip(tasks, made, strict=True)
    return await fill_tasks(store, [_claimed(task, each, lease_seconds) for task, each in both if task is not None])


def _claimed(task: Task, made: Claim, lease_seconds: float) -> Task:
    """The task as the claim left it: the row may have moved on before it was read."""
    lease_ends = made.started_at + timedelta(seconds=lease_seconds)
    return replace(
        task,
        state=TaskState.RUNNING,
        worker_id=made.worker_id,
        version=made.version,
        retry_count=made.retry_count,
        started_at=made.started_at,
        updated_at=made.started_at,
        locked_until=(task.locked_until or lease_ends) if task.version == made.version else lease_ends,
        next_retry_at=None,
        completed_at=None,
        cancel_requested_at=None,
    )


async def _extended(store: Store, task: Task, lease_seconds: float) -> Task | None:
    """The task with its lease begun anew; None: it has moved on."""
    assert task.worker_id is not None
    (extension,) = await store.extend(task.worker_id, [Held(task.id, task.version)], lease_seconds)
    (found,) = await store.get([task.id])
    return found if extension.held and found is not None and found.version == task.version else None


async def _check_held_back(store: Store, task: Task) -> None:
    """A task that could not be taken: raises if time or a control is the reason. Otherwise it has moved on."""
    (found,) = await store.get([task.id])
    if found is None or found.version != task.version:
        return
    now = await store.now()
    if found.due_at > now or any(map(_restrains, await _concerning(store, task.name))):
        raise claims.held_back(found, now)


async def _concerning(store: ControlStore, name: str) -> list[Controls]:
    controls = await store.controls()
    return [controls[each] for each in ("", name) if each in controls]


def _restrains(controls: Controls) -> bool:
    return controls.paused or controls.rate is not None or controls.concurrency is not None
