"""What the tests are made of: tasks, claims and changes, with everything that does not matter filled in."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from tasklib.core import codec, decide
from tasklib.core.column_batch import ColumnBatch
from tasklib.core.decide import Change, WriteResult
from tasklib.core.ids import uuid7
from tasklib.core.lifecycle import Phase
from tasklib.core.outcome import Cancelled, Completed, Failed, Released, Snoozed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim, NewTask, Task
from tasklib.core.unique import Unique
from tasklib.stores.protocol import Store
from tasklib.stores.values import Claimed, ClaimRequest, Held, WorkerHeartbeat

OpenStore: TypeAlias = Callable[[], Awaitable[Store]]
"""Opens one more store onto the database that the test's `store` is on."""

DEADLINE = 20.0
"""Seconds until a wait counts as failed. Nothing is ever waited for that long unless it is broken."""

WORK = "work"
WORKER_A = "anna"
WORKER_B = "bert"

_names = itertools.count(1)
_latest_id = 0


def next_id() -> UUID:
    """Ids in the order they are asked for."""
    global _latest_id
    _latest_id = max(_latest_id + 1, (time.time_ns() // 1_000_000) << 12)
    return uuid7(_latest_id >> 12, _latest_id & 0xFFF, secrets.randbits(62))


def fresh_name(stem: str = "type") -> str:
    return f"{stem}-{next(_names)}"


def new_task(
    name: str = WORK,
    payload: Any = None,
    *,
    id: UUID | None = None,
    max_retries: int = 3,
    delay_seconds: float | None = None,
    run_at: datetime | None = None,
    timeout_seconds: int | None = None,
    priority: int = 0,
    tags: dict[str, Any] | None = None,
    key: str | None = None,
    retry_policy: RetryPolicy | None = None,
    trace: str | None = None,
    unique: Unique | None = None,
) -> NewTask:
    return NewTask(
        id=id or next_id(),
        name=name,
        kwargs=codec.encode({} if payload is None else payload, field="payload"),
        max_retries=max_retries,
        delay_seconds=delay_seconds,
        run_at=run_at,
        timeout_seconds=timeout_seconds,
        priority=priority,
        tags=codec.encode(tags or {}, field="tags"),
        idempotency_key=key,
        retry_policy=retry_policy.to_json() if retry_policy else None,
        trace=trace,
        unique_rule=unique,
    )


def alike_tasks(number: int, name: str = WORK, **options: Any) -> ColumnBatch[NewTask]:
    """As `submit_many` makes them; each has its number as payload."""
    first = new_task(name, 0, **options)
    ids = [first.id, *(next_id() for _ in range(1, number))]
    return ColumnBatch(first, id=ids, kwargs=list(map(str, range(number))))


async def submit(store: Store, name: str = WORK, **options: Any) -> UUID:
    [inserted] = await store.insert([new_task(name, **options)])
    return inserted.id


async def submit_several(store: Store, number: int, name: str = WORK, **options: Any) -> list[UUID]:
    return [inserted.id for inserted in await store.insert([new_task(name, **options) for _ in range(number)])]


async def look(
    store: Store,
    slots: int = 1,
    *,
    names: Sequence[str] = (WORK,),
    worker: str = WORKER_A,
    prefetch: int = 0,
    lease: float = 600.0,
    per_name: dict[str, int] | None = None,
) -> Claimed:
    """A claim with its hint."""
    return await store.claim(
        ClaimRequest(
            worker_id=worker,
            names=names,
            slots=slots,
            prefetch=prefetch,
            lease_seconds=lease,
            per_name=per_name or {},
        )
    )


async def claim(store: Store, slots: int = 1, **options: Any) -> list[Claim]:
    return (await look(store, slots, **options)).claims


async def claim_one(store: Store, name: str = WORK, **options: Any) -> Claim:
    claims = await claim(store, 1, names=[name], **options)
    assert len(claims) == 1, f"nothing of {name!r} could be claimed"
    return claims[0]


async def fetch(store: Store, task_id: UUID) -> Task:
    [task] = await store.get([task_id])
    assert task is not None, f"no task {task_id}"
    return task


async def settle(store: Store, *changes: Change) -> WriteResult:
    """Settles all and returns their common write_result."""
    write_results = set(await store.settle(changes))
    assert len(write_results) == 1, write_results
    return write_results.pop()


async def apply(store: Store, *changes: Change) -> None:
    write_result = await settle(store, *changes)
    assert write_result is WriteResult.APPLIED


def completed(claim: Claim, value: Any = None, *, run_ms: int = 0) -> Change:
    outcome = Completed(codec.encode({"value": value}, field="result"), run_ms)
    return decide.settle(claim, outcome, RetryPolicy.AT_ONCE)


def failed(claim: Claim, error: str = "boom", *, delay: float = 0.0, final: bool = False, run_ms: int = 0) -> Change:
    outcome = Failed(error, final=final, delay=delay, run_ms=run_ms)
    return decide.settle(claim, outcome, RetryPolicy.AT_ONCE)


def released(claim: Claim) -> Change:
    return decide.settle(claim, Released(), RetryPolicy.AT_ONCE)


def snoozed(claim: Claim, delay: float) -> Change:
    return decide.settle(claim, Snoozed(delay), RetryPolicy.AT_ONCE)


def stopped(claim: Claim, error: str = "stopped as asked") -> Change:
    return decide.settle(claim, Cancelled(error), RetryPolicy.AT_ONCE)


def expired(task: Task) -> Change:
    return decide.expire(task, "the lease ran out")


def cancelled(task: Task) -> Change:
    change = decide.cancel(task)
    assert change is not None, "a running task can only be asked to stop"
    return change


def lease_of(claim: Claim) -> Held:
    return Held(claim.id, claim.version)


def heartbeat_of(
    worker: str, *, names: Sequence[str] = (WORK,), concurrency: int = 4, running: int = 0
) -> WorkerHeartbeat:
    return WorkerHeartbeat(id=worker, hostname="host", pid=4711, names=names, concurrency=concurrency, running=running)


async def in_phase(store: Store, phase: Phase, name: str | None = None, **options: Any) -> Task:
    """A task that has come to this phase by the ordinary road. Without a name it is the only one of its type."""
    name = name or fresh_name(phase.name.lower())
    task_id = await submit(store, name, **options)
    if phase is Phase.CANCELLED:
        await apply(store, cancelled(await fetch(store, task_id)))
    elif phase is not Phase.PENDING:
        claim = await claim_one(store, name)
        assert claim.id == task_id, "something else of this type was due"
        match phase:
            case Phase.COMPLETED:
                await apply(store, completed(claim, "done"))
            case Phase.WAITING:
                await apply(store, failed(claim, delay=3600))
            case Phase.FAILED:
                await apply(store, failed(claim, final=True))
            case _:
                pass
    return await fetch(store, task_id)


def same_value(one: Any, other: Any) -> bool:
    """Equal, and of the same types all the way down: 1, 1.0 and True are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    return bool(one == other)


async def within_deadline(event: asyncio.Event, what: str) -> None:
    try:
        await asyncio.wait_for(event.wait(), DEADLINE)
    except TimeoutError:
        raise AssertionError(f"{what}: nothing came within {DEADLINE} s") from None
