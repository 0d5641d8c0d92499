"""Claims: what is due, in order, within pauses and limits; one task by its id; and what a worker holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tasklib.core.checks import LONGEST_DELAY_SECONDS
from tasklib.core.limits import ALL, Control, Limits
from tasklib.core.task import Claim, Task
from tasklib.stores.sql.columns import BUCKET, CLAIM, CONTROL, TAKEN, TASK, Batch, ControlNow, Taken
from tasklib.stores.sql.steps import BEGIN, Query, Steps
from tasklib.stores.sql.upkeep import EPOCH
from tasklib.stores.values import Claimed, ClaimRequest

_ROUNDS = 100
_LOCKED_LOOK = 0.001
"""Seconds to the next look at what somebody else has locked: mostly one short statement, such as that of a caller who
begins to wait for the task just submitted."""
_FULL_LOOK = 0.02
"""The same where a limit is full until a task ends."""
_LONGEST_LOOK = 0.5


class Claimer:
    """The claims of one store. What one of them saw tells the next which statement to begin with."""

    def __init__(self) -> None:
        self._promote_first = False
        self._limited = False
        """A pause or a limit concerned the last claim."""
        self._lock_first = False
        """The last claim started something under a limit, and left room for more."""
        self._look_again = 0.0

    def claim(self, request: ClaimRequest) -> Steps[Claimed]:
        """One statement, as long as no pause or limit concerns what is ready, and nothing has just become due."""
        names = names_of(request)
        limits: Limits | None = None
        taken = Taken([], limits_apply=self._limited)
        if not taken.limits_apply:
            taken = yield from self._take(request, names, None)
        if taken.limits_apply:
            taken, limits = yield from self._take_under_limits(request, names)
        if len(taken.claims) >= request.slots:
            self._look_again = 0.0
            return Claimed(taken.claims, None)
        return Claimed(taken.claims, self._next(taken, names, limits))

    def _take_under_limits(self, request: ClaimRequest, names: list[str]) -> Steps[tuple[Taken, Limits]]:
        limits = None if self._lock_first and request.slots > 0 else (yield from _look_at_limits(names))
        if limits is None or (request.slots > 0 and limits.rationed(names)):
            yield BEGIN
            limits = yield from _lock_limits(names)
        taken = yield from self._take(request, names, limits)
        spent = yield from _spend(limits, taken.claims)
        self._lock_first = bool(spent) and limits.rationed(names)
        self._limited = taken.held_back or bool(spent)
        return taken._replace(held_back=self._limited), limits

    def _take(self, request: ClaimRequest, names: list[str], limits: Limits | None) -> Steps[Taken]:
        """More than one round only where something had to be promoted first, or rows edited by hand were in the way."""
        slots = request.slots
        caps = [request.per_name.get(name) for name in names]
        limited: list[str] = []
        if limits is not None:
            whole = limits.cap(ALL)
            slots = _least(slots, whole) or 0
            limited = [name for name in names if whole is not None or limits.limited(name)]
            most = dict.fromkeys(limited, slots)  # they never wait in a worker
            caps = [_least(cap, limits.cap(name), most.get(name)) for name, cap in zip(names, caps, strict=True)]
        taken = Taken([])
        promoted = self._promote_first
        if promoted:
            yield Query("promote")
        for _ in range(_ROUNDS):
            taken = yield Query(
                "claim",
                TAKEN,
                names=names,
                caps=caps,
                slots=slots,
                most=slots + request.prefetch,
                limited=limited,
                worker_id=request.worker_id,
                lease=timedelta(seconds=request.lease_seconds),
                promoted=promoted,
                under_limits=limits is not None,
            )
            if taken.unpromoted and not promoted:
                yield Query("promote")
                promoted = True
            elif taken.stale:
                yield Query("demote", names=names)
            else:
                break
        self._promote_first = taken.unpromoted
        return taken

    def _next(self, taken: Taken, names: list[str], limits: Limits | None) -> float | None:
        """When it is worth asking again. Where that depends on others, soon at first, then less and less often."""
        waits = [
            None if taken.unpromoted or taken.due_in is None or taken.due_in > LONGEST_DELAY_SECONDS else taken.due_in
        ]
        first = _LOCKED_LOOK if taken.skipped or taken.unpromoted else None
        if limits is not None and taken.held_back:
            waits.append(limits.next_token_in(names))
            if first is None and limits.full(names):
                first = _FULL_LOOK
        self._look_again = 0.0 if first is None else min(max(first, 2 * self._look_again), _LONGEST_LOOK)
        if first is not None:
            waits.append(self._look_again)
        return min((wait for wait in waits if wait is not None), default=None)


def names_of(request: ClaimRequest) -> list[str]:
    """Each name once: the same row must not be picked for two of them."""
    return [name for name in dict.fromkeys(request.names) if request.per_name.get(name, 1) > 0]


def claim_by_id(task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Steps[Claim | None]:
    """One statement, unless a limit concerns the task. Safe to repeat after a lost reply: the version has moved then,
    and whoever asked finds the task to be theirs."""
    lease = timedelta(seconds=lease_seconds)
    guard: dict[str, Any] = {"id": task_id, "version": version, "worker_id": worker_id, "lease": lease}
    found: list[Claim] = yield Query("claim_by_id", CLAIM, **guard, under_limits=False)
    if found:
        return found[0]
    tasks: list[Task] = yield Query("get", TASK, ids=[task_id])
    names = [task.name for task in tasks if task.version == version]
    if not names or not (yield from _look_at_limits(names)).rationed(names):
        return None
    yield BEGIN
    limits = yield from _lock_limits(names)
    if not limits.allows(names[0]):
        return None
    found = yield Query("claim_by_id", CLAIM, **guard, under_limits=True)
    yield from _spend(limits, found)
    return found[0] if found else None


def claims_of_worker(worker_id: str) -> Steps[list[Claim]]:
    found: list[Claim] = yield Query("claims_of_worker", CLAIM, worker_id=worker_id)
    return found


def _limits(query: Query, names: Sequence[str]) -> Steps[Limits]:
    """What runs is counted after the controls were read, and so, where they were locked, in a snapshot that holds what
    was claimed by whoever had the locks before."""
    rows: list[ControlNow] = yield query
    controls = [row.control for row in rows if row.control.name in {ALL, *names}]
    counted = [control.name for control in controls if control.concurrency is not None]
    running = (yield Query("count_running", names=counted)) if counted else ()
    now = max((row.now for row in rows), default=EPOCH)
    return Limits(controls, now, dict(running))


def _look_at_limits(names: Sequence[str]) -> Steps[Limits]:
    """Without locks: enough to see where there is nothing to be had."""
    return (yield from _limits(Query("controls", CONTROL), names))


def _lock_limits(names: Sequence[str]) -> Steps[Limits]:
    """Exact until the transaction ends."""
    return (yield from _limits(Query("lock_controls", CONTROL, names=[ALL, *names]), names))


def _spend(limits: Limits, claims: Sequence[Claim]) -> Steps[list[Control]]:
    spent = limits.spend(Counter(claim.name for claim in claims))
    buckets = [(each.name, each.tokens, each.refilled_at) for each in spent if each.rate is not None]
    if buckets:
        yield Query("spend_tokens", batch=Batch(BUCKET, buckets))
    return spent


def _least(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)
