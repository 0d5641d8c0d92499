"""Workers' heartbeats, what operators do, and housekeeping."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tasklib.core.decide import Verdict
from tasklib.core.task import Task
from tasklib.stores import serving
from tasklib.stores.postgres.calls import Calls, transaction
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.postgres.looks import fetch
from tasklib.stores.postgres.rows import task_of
from tasklib.stores.values import ControlChange, Controls, Unset, WorkerBeat

_STRETCH = 20_000
"""Rows that one statement of a prune looks at."""
_STRETCHES = 50
"""Statements of one prune at most: the next goes on where this one stopped."""
_START = UUID(int=0)


async def beat(calls: Calls, worker: WorkerBeat) -> None:
    # Behind a pooler nobody hears: then nobody is to be told.
    listening = worker.listening and not calls.target.pgbouncer
    await fetch(
        calls,
        "beat",
        worker.id,
        worker.hostname,
        worker.pid,
        serving.written(worker),
        worker.concurrency,
        worker.running,
        listening,
        calls.offset,
    )


async def watched(calls: Calls, task_id: UUID) -> Task | None:
    """The task as it is, and marked so that its end is announced."""
    rows = await fetch(calls, "watch", task_id) or await fetch(calls, "get", [task_id])
    return task_of(rows[0]) if rows else None


async def delete(calls: Calls, guards: Sequence[tuple[UUID, int]]) -> list[Verdict]:
    if not guards:
        return []
    attempts = 0

    async def work(connection: Connection, timeout: float) -> list[Any]:
        nonlocal attempts
        attempts += 1
        rows: list[Any] = await connection.fetch(calls.sql["delete"], *zip(*guards, strict=True), timeout=timeout)
        return rows

    gone = {(row[0], row[1]) for row in await calls.run(work)}
    left = [task_id for task_id, version in guards if (task_id, version) not in gone]
    there = {row[0] for row in await fetch(calls, "existing", left)} if left else set()
    there.update(task_id for task_id, _ in gone)
    # Sent twice: what is missing now went with the first one, whose reply was lost.
    missing = Verdict.MISSING if attempts == 1 else Verdict.ALREADY
    verdicts = []
    for guard in guards:
        if guard in gone:
            gone.discard(guard)
            there.discard(guard[0])  # a further guard on the same task finds nothing
            verdicts.append(Verdict.APPLIED)
        else:
            verdicts.append(Verdict.LOST if guard[0] in there else missing)
    return verdicts


class Pruner:
    """Walks the primary key, oldest first, and remembers where it stopped: rows that are to be kept are not walked over
    again and again. No index by completion time has to be paid for with each completion."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._at = _START

    async def prune(self, states: Sequence[str], older_than_seconds: float, limit: int, *, dry_run: bool) -> int:
        calls = self._calls
        age = timedelta(seconds=older_than_seconds)
        if dry_run:
            return int((await fetch(calls, "count_old", list(states), calls.offset, age))[0][0])
        deleted = 0
        begun_at, wrapped = self._at, self._at == _START
        for _ in range(_STRETCHES):
            if deleted >= limit:
                break
            rows = await fetch(calls, "prune", list(states), calls.offset, age, self._at, _STRETCH, limit - deleted)
            count, last = rows[0]
            deleted += count
            if last is not None:
                self._at = last
                if wrapped and last >= begun_at > _START:
                    break  # all the way round
                continue
            self._at = _START
            if wrapped:
                break
            wrapped = True
        return deleted


async def sample(calls: Calls) -> None:
    await fetch(calls, "sample", calls.offset)


async def tidy(calls: Calls) -> None:
    async def work(connection: Connection, timeout: float) -> None:
        async with transaction(connection, timeout):
            if await connection.fetchval(calls.sql["tidy_lock"]):
                for name in ("merge_minutes", "merge_hours", "merge_epoch", "forget_workers"):
                    await connection.execute(calls.sql[name], calls.offset)

    await calls.run(work)


async def controls(calls: Calls) -> dict[str, Controls]:
    return {row[0]: _controls(row) for row in await fetch(calls, "controls")}


async def control(calls: Calls, change: ControlChange) -> Controls:
    values: list[Any] = []
    for value in (change.paused, change.operator_rate, change.default_rate, change.concurrency):
        values += (False, None) if isinstance(value, Unset) else (True, value)
    return _controls((await fetch(calls, "set_controls", change.name, *values, calls.offset))[0])


def _controls(row: Any) -> Controls:
    name, paused, rate, concurrency, operator_rate, default_rate, *_ = row
    return Controls(
        name=name,
        paused=paused,
        rate=rate,
        concurrency=concurrency,
        operator_rate=operator_rate,
        default_rate=default_rate,
    )
