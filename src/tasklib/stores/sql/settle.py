"""Settle and extend: guarded writes in batches, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

from tasklib.core.decide import HISTORY_LIMIT, Change, WriteResult, explain_miss, split_by_task
from tasklib.core.task import TaskState
from tasklib.stores.sql.access import add_audit_of
from tasklib.stores.sql.columns import CHANGE, COMPLETION, EXTENDED, GUARD, SETTLED, Batch, Settled
from tasklib.stores.sql.reads import get
from tasklib.stores.sql.steps import BEGIN, Notify, Query, Steps
from tasklib.stores.sql.upkeep import merge_counts
from tasklib.stores.values import Audit, Extension, Held

_FAR = timedelta(days=36500)
"""Delays beyond a century would leave the calendar, and take the whole batch with them."""

_completion = itemgetter(*map(Change._fields.index, COMPLETION.names))
_plain = itemgetter(
    *(Change._fields.index(name) for name in CHANGE.names if name in Change._fields and name != "due_in")
)
"""All of a row of `CHANGE` but its end."""


def settle(changes: Sequence[Change], audit: Audit[UUID] | None = None) -> Steps[list[WriteResult]]:
    write_results = [WriteResult.APPLIED] * len(changes)
    missed = yield from write(changes, begin=audit is not None)
    if missed:
        found = yield from get([changes[place].id for place in missed])
        for place, task in zip(missed, found, strict=True):
            write_results[place] = explain_miss(changes[place], task)
    if audit is not None:
        results = zip(changes, write_results, strict=True)
        yield from add_audit_of(audit, [change.id for change, result in results if result is WriteResult.APPLIED])
    return write_results


def write(changes: Sequence[Change], *, begin: bool = False) -> Steps[list[int]]:
    """The places of those whose guard did not hold."""
    queries = list(_queries(changes))
    if begin or len(queries) > 1:
        yield BEGIN
    missed: list[int] = []
    claimable: set[str] = set()
    finished: list[UUID] = []
    counts: list[tuple[Any, ...]] = []
    for places, query in queries:
        rows: list[Settled] = yield query
        lost: set[str] = set()
        for row in rows:
            lost.update(row.missed)
            claimable.update(row.claimable)
            finished += map(UUID, row.finished)
            counts += [(datetime.fromisoformat(minute), *cell) for minute, *cell in row.counts or ()]
        if lost:
            missed += [place for place in places if str(changes[place].id) in lost]
    if counts:
        yield from merge_counts(counts)
    if claimable or finished:
        yield Notify(sorted(claimable), finished)
    return missed


def extend(worker_id: str, leases: Sequence[Held], lease_seconds: float) -> Steps[list[Extension]]:
    duration = timedelta(seconds=lease_seconds)
    rows = yield Query("extend", EXTENDED, batch=Batch(GUARD, leases), worker_id=worker_id, duration=duration)
    held = {(task_id, version): cancel_requested for task_id, version, cancel_requested in rows}
    return [Extension(lease.id, lease in held, held.get(lease, False)) for lease in leases]


def _queries(changes: Sequence[Change]) -> Iterator[tuple[list[int], Query]]:
    """Each with the places of its changes. One worker's completions go by a statement of their own, which has less to
    do."""
    worker_id = changes[0].worker_id
    for places in split_by_task(changes):
        hot: list[int] = []
        rest: list[int] = []
        for place in places:
            (hot if _is_completion(changes[place], worker_id) else rest).append(place)
        if hot:
            rows = [_completion(changes[place]) for place in hot]
            yield hot, Query("complete", SETTLED, batch=Batch(COMPLETION, rows), worker_id=worker_id)
        if rest:
            rows = [_row(changes[place]) for place in rest]
            yield rest, Query("settle", SETTLED, batch=Batch(CHANGE, rows), history_limit=HISTORY_LIMIT)


def _is_completion(change: Change, worker_id: str | None) -> bool:
    """By that worker, which held the claim, and with nothing out of the ordinary to write."""
    return (
        change.state is TaskState.COMPLETED
        and change.version is not None
        and change.worker_id is not None
        and change.worker_id == worker_id
        and change.locked_until is None
        and change.entry is None
        and change.leaves is None
    )


def _row(change: Change) -> tuple[Any, ...]:
    """In the order of `CHANGE`."""
    due_in = None if change.due_in is None else timedelta(seconds=min(change.due_in, _FAR.total_seconds()))
    asked = change.if_asked
    if asked is None:
        return (*_plain(change), due_in, None, None, None)
    return (*_plain(change), due_in, asked.retry_count, asked.error, asked.entry)
