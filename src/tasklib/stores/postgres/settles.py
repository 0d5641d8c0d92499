"""Settle and extend: guarded writes in batches, one verdict for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tasklib.core.decide import HISTORY_LIMIT, Change, Verdict, judge
from tasklib.core.task import Task, TaskState
from tasklib.stores.base import Extension, Held
from tasklib.stores.postgres.calls import Calls, transaction
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.postgres.rows import task_of

_FAR = 100 * 365 * 86400.0
"""Delays beyond a century would leave the calendar, and take the whole batch with them."""


async def settle(calls: Calls, changes: Sequence[Change]) -> list[Verdict]:
    if not changes:
        return []
    worker_id = changes[0].worker_id
    hot = [change for change in changes if change.worker_id == worker_id and _is_completion(change)]
    rest: Sequence[Change] = []
    if len(hot) < len(changes):
        taken = set(map(id, hot))
        rest = [change for change in changes if id(change) not in taken]

    async def work(connection: Connection, timeout: float) -> list[UUID] | None:
        if not rest:
            return await _complete(calls, connection, hot, timeout)
        if not hot:
            return await _settle(calls, connection, rest, timeout)
        async with transaction(connection, timeout):
            done = await _complete(calls, connection, hot, timeout)
            applied = [change.id for change in hot] if done is None else done
            applied += await _settle(calls, connection, rest, timeout)
        return applied

    applied = await calls.run(work)
    if applied is None:
        return [Verdict.APPLIED] * len(changes)
    return await _verdicts(calls, changes, applied)


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


async def _complete(calls: Calls, connection: Connection, batch: Sequence[Change], timeout: float) -> list[UUID] | None:
    """The ids that were written; None: all of them."""
    ids, versions, workers, _, _, _, _, _, results, _, _, _, run_ms, buckets = zip(*batch, strict=True)
    columns = (ids, versions, results, run_ms, buckets)
    applied: list[UUID] | None = await connection.fetchval(
        calls.sql["complete"], *columns, workers[0], calls.offset, timeout=timeout
    )
    return applied


async def _settle(calls: Calls, connection: Connection, batch: Sequence[Change], timeout: float) -> list[UUID]:
    columns: list[Sequence[Any]] = list(zip(*batch, strict=True))
    columns[7] = [None if change.due_in is None else timedelta(seconds=min(change.due_in, _FAR)) for change in batch]
    rows = await connection.fetch(calls.sql["settle"], *columns, calls.offset, HISTORY_LIMIT, timeout=timeout)
    return [row[0] for row in rows]


async def _verdicts(calls: Calls, changes: Sequence[Change], applied: Sequence[UUID]) -> list[Verdict]:
    """A row is written once for each batch: of two changes to one task the first counts as the one that was."""
    written = Counter(applied)
    verdicts: list[Verdict | None] = []
    for change in changes:
        if written[change.id]:
            written[change.id] -= 1
            verdicts.append(Verdict.APPLIED)
        else:
            verdicts.append(None)
    open_ids = [change.id for change, verdict in zip(changes, verdicts, strict=True) if verdict is None]
    found = await read(calls, open_ids) if open_ids else {}
    return [
        judge(change, found.get(change.id)) if verdict is None else verdict
        for change, verdict in zip(changes, verdicts, strict=True)
    ]


async def read(calls: Calls, ids: Sequence[UUID]) -> dict[UUID, Task]:
    async def work(connection: Connection, timeout: float) -> Any:
        return await connection.fetch(calls.sql["get"], ids, timeout=timeout)

    return {task.id: task for task in map(task_of, await calls.run(work))}
