"""Settle and extend: guarded writes in batches, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

from tasklib.core.decide import HISTORY_LIMIT, Change, WriteResult, explain_miss, holds, split_by_task
from tasklib.core.task import Task, TaskState
from tasklib.stores.sql.access import add_audit_of
from tasklib.stores.sql.columns import CHANGE, COMPLETION, EXTENDED, GUARD, SETTLED, Batch, Settled
from tasklib.stores.sql.reads import get
from tasklib.stores.sql.release import follow, recount, told
from tasklib.stores.sql.steps import BEGIN, Query, Steps
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
    for place, task in (yield from write(changes, begin=audit is not None)).items():
        write_results[place] = explain_miss(changes[place], task)
    if audit is not None:
        results = zip(changes, write_results, strict=True)
        yield from add_audit_of(audit, [change.id for change, result in results if result is WriteResult.APPLIED])
    return write_results


def write(changes: Sequence[Change], *, begin: bool = False) -> Steps[dict[int, Task | None]]:
    """The places of those whose guard did not hold, and the tasks as they are."""
    queries = list(_queries(changes))
    if begin or len(queries) > 1:
        yield BEGIN
    missed = yield from _write(changes, queries)
    if not missed:
        return {}
    found = dict(zip(missed, (yield from get([changes[place].id for place in missed])), strict=True))
    fed = [place for place, task in found.items() if holds(changes[place], task)]
    if not fed:
        return found
    yield BEGIN
    again = [changes[place] for place in fed]
    queries = list(_queries(again, feeding=True))
    left = yield from _write(again, queries)
    others = [place for places, query in queries if query.name == "settle" for place in places if place not in left]
    yield from follow([again[place].id for place in others])
    found = {place: task for place, task in found.items() if place not in fed}
    lost = yield from get([again[place].id for place in left])
    return found | {fed[place]: task for place, task in zip(left, lost, strict=True)}


def _write(changes: Sequence[Change], queries: Sequence[tuple[Sequence[int], Query]]) -> Steps[list[int]]:
    """The places of those that were missed."""
    missed: list[int] = []
    unseen: list[UUID] = []
    for places, query in queries:
        rows: list[Settled] = yield query
        lost = set((yield from told(rows)))
        unseen += (UUID(child) for row in rows for child in row.unseen)
        if lost:
            missed += [place for place in places if str(changes[place].id) in lost]
    yield from recount(unseen)
    return missed


def extend(worker_id: str, leases: Sequence[Held], lease_seconds: float) -> Steps[list[Extension]]:
    duration = timedelta(seconds=lease_seconds)
    rows = yield Query("extend", EXTENDED, batch=Batch(GUARD, leases), worker_id=worker_id, duration=duration)
    held = {(task_id, version): cancel_requested for task_id, version, cancel_requested in rows}
    return [Extension(lease.id, lease in held, held.get(lease, False)) for lease in leases]


def _queries(changes: Sequence[Change], *, feeding: bool = False) -> Iterator[tuple[list[int], Query]]:
    """Each with the places of its changes. One worker's completions go by statements of their own, which have less to
    do: of several at once all by the one that releases, if others wait for any of them. `feeding`: they do for all."""
    worker_id = changes[0].worker_id
    for places in split_by_task(changes):
        completions: list[int] = []
        rest: list[int] = []
        releasing = feeding
        for place in places:
            change = changes[place]
            if _is_completion(change, worker_id):
                completions.append(place)
                releasing = releasing or change.feeds
            else:
                rest.append(place)
        if completions:
            name = "complete_feeding" if releasing else "complete"
            batch = Batch(COMPLETION, [_completion(changes[place]) for place in completions])
            yield completions, Query(name, SETTLED, batch=batch, worker_id=worker_id, feeding=releasing)
        if rest:
            rows = [_row(changes[place]) for place in rest]
            batch = Batch(CHANGE, rows)
            yield rest, Query("settle", SETTLED, batch=batch, history_limit=HISTORY_LIMIT, feeding=feeding)


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
