"""Deleting and pruning, what the charts are drawn from, and workers that are long gone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from tasklib.core.decide import UNTIMED, WriteResult
from tasklib.core.flows import Child
from tasklib.stores.samples import SAMPLES, VERSION
from tasklib.stores.sql.access import add_audit_of
from tasklib.stores.sql.columns import COUNTED, GUARD, ID, PRUNABLE, Batch
from tasklib.stores.sql.flow_columns import CHILD
from tasklib.stores.sql.hints import MOST_NAMED
from tasklib.stores.sql.steps import BEGIN, IN_DOUBT, Driver, Notify, Query, Steps
from tasklib.stores.values import Audit, Held

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The minute under which the counters keep what belongs to no minute any more."""
MINUTES_KEPT = timedelta(days=2)
HOURS_KEPT = timedelta(days=60)
WORKERS_KEPT = timedelta(days=1)
DELETIONS_KEPT = timedelta(hours=1)
"""So long a submit may be repeated at most; only of tasks that are younger a deletion is remembered."""

_STRETCH = 20_000
"""Rows that one statement of a prune looks at."""
_STRETCHES = 50
"""Statements of one prune at most: the next goes on where this one stopped."""
_Prunable: TypeAlias = tuple[UUID, bool]
_START, _END = UUID(int=0), UUID(int=(1 << 128) - 1)


def request_cancel(ids: Sequence[UUID], *, audit: Audit[UUID] | None = None) -> Steps[list[UUID]]:
    if audit is not None:
        yield BEGIN
    asked = set((yield Query("request_cancel", ID, ids=list(ids), most_named=MOST_NAMED)))
    yield from add_audit_of(audit, list(asked))
    yield Notify(cancel_requested=list(asked))
    return [task_id for task_id in ids if task_id in asked]


def delete(guards: Sequence[tuple[UUID, int]], *, audit: Audit[UUID] | None = None) -> Steps[list[WriteResult]]:
    if not guards:
        return []
    # Sent twice, what is missing may have gone with the first one, whose reply was lost.
    missing = WriteResult.DUPLICATE if (yield IN_DOUBT) else WriteResult.MISSING
    if audit is not None:
        yield BEGIN
    young = -DELETIONS_KEPT
    gone: set[Held] = set((yield Query("delete", GUARD, batch=Batch(GUARD, guards), fed=False, young=young)))
    left = [guard for guard in guards if guard not in gone]
    there = yield from existing([task_id for task_id, _ in left])
    left = [guard for guard in left if guard[0] in there]
    awaited: set[tuple[UUID, int]] = set()
    if left:
        yield BEGIN
        awaited = {(row.id, row.version) for row in (yield from lock_fed([task_id for task_id, _ in left]))}
        awaited &= set(left)
    if awaited:
        gone |= set((yield Query("delete", GUARD, batch=Batch(GUARD, list(awaited)), fed=True, young=young)))
    yield from add_audit_of(audit, [held.id for held in gone])
    there.update(held.id for held in gone)
    write_results = []
    for task_id, version in guards:
        if (task_id, version) in gone:
            gone.discard(Held(task_id, version))
            there.discard(task_id)  # a further guard on the same task finds nothing
            write_results.append(WriteResult.APPLIED)
        else:
            kept = WriteResult.AWAITED if (task_id, version) in awaited else WriteResult.STALE
            write_results.append(kept if task_id in there else missing)
    return write_results


def lock_fed(ids: Sequence[UUID]) -> Steps[list[Held]]:
    """Those of them that are over, and that others wait for, or waited. A statement that began before somebody linked
    to one of them would not see the new task: so they are locked by one, and looked at by the next."""
    rows: list[Child] = yield Query("lock_children", CHILD, ids=list(ids))
    return [Held(row.id, row.version) for row in rows if row.over and row.feeds]


def existing(ids: Sequence[UUID]) -> Steps[set[UUID]]:
    return set((yield Query("existing", ID, ids=list(ids)))) if ids else set()


class Pruner:
    """Walks the primary key, oldest first, and remembers where it stopped: rows that are to be kept are not walked over
    again and again. No index by completion time has to be paid for with each completion."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._at = _START

    async def count(self, states: Sequence[str], older_than_seconds: float) -> int:
        return await self._driver.read(lambda: _count_old(states, timedelta(seconds=older_than_seconds)))

    async def prune(
        self, states: Sequence[str], older_than_seconds: float, limit: int, audit: Audit[str] | None
    ) -> int:
        age = timedelta(seconds=older_than_seconds)
        deleted = 0
        begun_at, wrapped = self._at, self._at == _START
        for _ in range(_STRETCHES):
            if deleted >= limit:
                break
            last, rows = await self._look(states, age, limit - deleted)
            if rows:
                deleted += await self._driver.write(partial(_prune, states, age, rows, audit))
            if last is not None and last != _END:
                self._at = UUID(int=last.int + 1)
                if wrapped and last >= begun_at > _START:
                    break  # all the way round
                continue
            self._at = _START
            if wrapped:
                break
            wrapped = True
        return deleted

    async def _look(self, states: Sequence[str], age: timedelta, limit: int) -> tuple[UUID | None, list[_Prunable]]:
        return await self._driver.read(lambda: _prunable(states, age, self._at, limit))


def _count_old(states: Sequence[str], age: timedelta) -> Steps[int]:
    [row] = yield Query("count_old", states=list(states), age=-age)
    number: int = row[0]
    return number


def _prunable(
    states: Sequence[str], age: timedelta, start: UUID, limit: int
) -> Steps[tuple[UUID | None, list[_Prunable]]]:
    """The last id that was looked at (None: the end of the table was reached), and what may go."""
    rows: list[_Prunable] = yield Query(
        "prunable", PRUNABLE, states=list(states), age=-age, start=start, stretch=_STRETCH, limit=limit
    )
    if len(rows) == limit:
        return rows[-1][0], rows
    ends: list[UUID] = yield Query("stretch_end", ID, start=start, stretch=_STRETCH)
    return (ends[0] if ends else None), rows


def _prune(states: Sequence[str], age: timedelta, rows: list[_Prunable], audit: Audit[str] | None) -> Steps[int]:
    """What others wait for stays until they are over."""
    fed = [task_id for task_id, is_fed in rows if is_fed]
    if audit is not None:
        yield BEGIN
    given: dict[str, Any] = {"states": list(states), "age": -age}
    gone: list[tuple[str]] = yield Query("prune", ids=[task_id for task_id, _ in rows], fed=False, **given)
    if fed:
        yield BEGIN
        ids = [held.id for held in (yield from lock_fed(fed))]
        gone = [*gone, *(yield Query("prune", ids=ids, fed=True, **given))]
    yield from add_audit_of(audit, [state for (state,) in gone])
    return len(gone)


def compact_stats() -> Steps[None]:
    """Minutes of past days become hours, hours of past months one total. Workers long gone are forgotten, and what was
    kept beside tasks that are gone."""
    yield BEGIN
    if not (yield Query("compact_lock")):
        return  # somebody is at it
    yield from merge_counts((yield Query("take_doubled_counts", COUNTED)))
    yield from merge_counts((yield Query("take_minutes", COUNTED, kept=-MINUTES_KEPT)), hours=True)
    yield from merge_counts((yield Query("take_hours", COUNTED, kept=-HOURS_KEPT)), epoch=True)
    yield Query("forget_workers", kept=-WORKERS_KEPT)
    yield Query("forget_steps", kept=-DELETIONS_KEPT)


def merge_counts(counts: Sequence[tuple[Any, ...]], *, hours: bool = False, epoch: bool = False) -> Steps[None]:
    """Adds counts, summed up; of samples the most is kept, of versions the first start. Each is in the order of
    `COUNTED`."""
    sums: dict[tuple[Any, ...], tuple[int, int]] = {}
    for minute, name, state, bucket, count, run_ms in counts:
        if epoch:
            minute, bucket = EPOCH, UNTIMED
        elif hours:
            minute = minute - (minute - EPOCH) % timedelta(hours=1)
        cell = (minute, name, state, bucket)
        number, time = sums.get(cell, (0, 0))
        if state in SAMPLES:
            sums[cell] = (max(number, count), max(time, run_ms))
        elif state == VERSION:
            sums[cell] = (1, min(time or run_ms, run_ms))
        else:
            sums[cell] = (number + count, time + run_ms)
    yield from add_counts([(*cell, *total) for cell, total in sums.items()])


def add_counts(counts: Sequence[tuple[Any, ...]]) -> Steps[None]:
    """Each in the order of `COUNTED`."""
    if counts:
        yield Query("add_counts", batch=Batch(COUNTED, counts))
