"""Settle and extend: guarded writes in batches, one verdict for each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tasklib.core.decide import HISTORY_LIMIT, Change, Verdict, judge
from tasklib.core.task import TaskState
from tasklib.stores.postgres.calls import Calls, transaction
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.sql import reads
from tasklib.stores.values import Extension, Held
from tasklib.stores.waves import waves

_FAR = 100 * 365 * 86400.0
"""Delays beyond a century would leave the calendar, and take the whole batch with them."""


async def settle(calls: Calls, changes: Sequence[Change]) -> list[Verdict]:
    if not changes:
        return []
    if len(order := waves(changes)) > 1:
        return await _settle_in_waves(calls, changes, order)

    async def work(connection: Connection, timeout: float) -> list[UUID] | None:
        hot, rest = _sorted(changes)
        if hot and rest:
            async with transaction(connection, timeout):
                return await _write(calls, connection, hot, rest, timeout)
        return await _write(calls, connection, hot, rest, timeout)

    applied = await calls.run(work)
    if applied is None:
        return [Verdict.APPLIED] * len(changes)
    written = set(applied)
    return await _verdicts(calls, changes, [change.id in written for change in changes])


async def _settle_in_waves(calls: Calls, changes: Sequence[Change], order: Sequence[Sequence[int]]) -> list[Verdict]:
    """Several changes of one task: a statement writes a row once, and would choose for itself which of them it takes.
    So each has a statement of its own, in the order given."""

    async def work(connection: Connection, timeout: float) -> list[bool]:
        done = [False] * len(changes)
        async with transaction(connection, timeout):
            for wave in order:
                hot, rest = _sorted([changes[place] for place in wave])
                applied = await _write(calls, connection, hot, rest, timeout)
                for place in wave:
                    done[place] = applied is None or changes[place].id in applied
        return done

    return await _verdicts(calls, changes, await calls.run(work))


async def extend(calls: Calls, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
    if not leases:
        return []

    async def work(connection: Connection, timeout: float) -> Any:
        return await connection.fetch(
            calls.sql["extend"],
            [lease.id for lease in leases],
            [lease.version for lease in leases],
            worker_id,
            timedelta(seconds=lease_seconds),
            calls.offset,
            timeout=timeout,
        )

    found = {Held(task_id, version): cancel_requested for task_id, version, cancel_requested in await calls.run(work)}
    return [Extension(lease.id, lease in found, found.get(lease, False)) for lease in leases]


def _is_completion(change: Change) -> bool:
    """By a worker that held the claim, and with nothing out of the ordinary to write."""
    return (
        change.state is TaskState.COMPLETED
        and change.version is not None
        and change.worker_id is not None
        and change.locked_until is None
        and change.entry is None
        and change.leaves is None
    )


def _sorted(changes: Sequence[Change]) -> tuple[list[Change], list[Change]]:
    """Completions of one worker, and the rest."""
    worker_id = changes[0].worker_id
    hot: list[Change] = []
    rest: list[Change] = []
    for change in changes:
        (hot if change.worker_id == worker_id and _is_completion(change) else rest).append(change)
    return hot, rest


async def _write(
    calls: Calls, connection: Connection, hot: Sequence[Change], rest: Sequence[Change], timeout: float
) -> list[UUID] | None:
    """The ids that were written; None: all of them."""
    if not rest:
        return await _complete(calls, connection, hot, timeout)
    if not hot:
        return await _settle(calls, connection, rest, timeout)
    done = await _complete(calls, connection, hot, timeout)
    applied = [change.id for change in hot] if done is None else done
    return applied + await _settle(calls, connection, rest, timeout)


async def _complete(calls: Calls, connection: Connection, batch: Sequence[Change], timeout: float) -> list[UUID] | None:
    """The ids that were written; None: all of them."""
    ids, versions, workers, _, _, _, _, _, results, _, _, _, run_ms, buckets, _ = zip(*batch, strict=True)
    columns = (ids, versions, results, run_ms, buckets)
    applied: list[UUID] | None = await connection.fetchval(
        calls.sql["complete"], *columns, workers[0], calls.offset, timeout=timeout
    )
    return applied


async def _settle(calls: Calls, connection: Connection, batch: Sequence[Change], timeout: float) -> list[UUID]:
    rows = await connection.fetch(calls.sql["settle"], *columns_of(batch), calls.offset, HISTORY_LIMIT, timeout=timeout)
    return [row[0] for row in rows]


def columns_of(batch: Sequence[Change]) -> list[Sequence[Any]]:
    """The first parameters of the statement."""
    columns: list[Sequence[Any]] = list(zip(*batch, strict=True))
    columns[7] = [None if change.due_in is None else timedelta(seconds=min(change.due_in, _FAR)) for change in batch]
    asked = [change.if_asked for change in batch]
    columns[14:] = [
        [None if each is None else each.retry_count for each in asked],
        [None if each is None else each.error for each in asked],
        [None if each is None else each.entry for each in asked],
    ]
    return columns


async def _verdicts(calls: Calls, changes: Sequence[Change], done: Sequence[bool]) -> list[Verdict]:
    """Those that were not written are judged by their rows as they are now."""
    open_ids = [change.id for change, written in zip(changes, done, strict=True) if not written]
    there = await calls.read(lambda: reads.get(open_ids))
    found = dict(zip(open_ids, there, strict=True))
    return [
        Verdict.APPLIED if written else judge(change, found.get(change.id))
        for change, written in zip(changes, done, strict=True)
    ]
