"""Deleting, pruning, merging counters: what keeps the file small. And the controls."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple, TypeAlias
from uuid import UUID

import apsw

from tasklib.core.decide import Verdict
from tasklib.core.ids import uuid7
from tasklib.stores.sqlite import looking
from tasklib.stores.sqlite.batches import SQL, chunks, match_batch, rows_of, values_of
from tasklib.stores.sqlite.limits import Control
from tasklib.stores.sqlite.rows import instant, seconds
from tasklib.stores.sqlite.settling import add_counts
from tasklib.stores.values import ControlChange, Controls

MINUTES_KEPT = 2 * 86400.0
HOURS_KEPT = 60 * 86400.0
WORKERS_KEPT = 86400.0

_INDEXED_STATES = ("failed", "cancelled")
"""Finished tasks in these have an index of their own."""

_STRETCH = 20_000
_FIRST_ID = ""
_LAST_ID = "g"
"""Behind every id: they are made of hexadecimal digits."""


def request_cancel(connection: apsw.Connection, ids: Sequence[UUID], clock_offset: float) -> list[UUID]:
    wanted = json.dumps([str(task_id) for task_id in ids])
    running = values_of(connection, SQL["running_of"], {"ids": wanted})
    connection.execute(SQL["request_cancel"], {"ids": wanted, "offset": seconds(clock_offset)})
    return [UUID(task_id) for task_id in running]


def delete(connection: apsw.Connection, guards: Sequence[tuple[UUID, int]]) -> list[Verdict]:
    wanted = [(str(task_id), version) for task_id, version in guards]
    before = set(_existing(connection, [task_id for task_id, _ in wanted]))
    deleted: set[tuple[str, int]] = set()
    for chunk in chunks(wanted):
        deleted.update((task_id, version) for task_id, version in match_batch(connection, "match_deletable", chunk))
    connection.execute(SQL["delete"], {"ids": json.dumps([task_id for task_id, _ in deleted])})
    verdicts = []
    for guard in wanted:
        if guard in deleted:
            deleted.discard(guard)  # a further guard on the same task finds nothing
            before.discard(guard[0])
            verdicts.append(Verdict.APPLIED)
        else:
            verdicts.append(Verdict.LOST if guard[0] in before else Verdict.MISSING)
    return verdicts


def _existing(connection: apsw.Connection, ids: list[str]) -> list[str]:
    return values_of(connection, SQL["existing_ids"], {"ids": json.dumps(ids)})


class Cutoff(NamedTuple):
    """What finished before it may go."""

    at: str
    regions: list[tuple[str, str]]
    """Where the ids of such tasks are. Ids are ordered by the time they were made, so what is younger need not be
    walked; beyond today there are only ids made by hand, or under a clock that is far ahead."""


def cutoff(connection: apsw.Connection, older_than_seconds: float, clock_offset: float) -> Cutoff:
    at: str | None = connection.execute(
        SQL["cutoff"], {"offset": seconds(clock_offset), "age": seconds(-older_than_seconds)}
    ).get
    if at is None or at.startswith("-"):  # before the calendar begins: nothing is that old
        return Cutoff("", [])
    day = timedelta(days=1)
    young = instant(at) + day
    future = instant(looking.now(connection, clock_offset)) + day
    bounds = [str(uuid7(max(0, int(moment.timestamp() * 1000)), 0, 0)) for moment in (young, future)]
    return Cutoff(at, [(_FIRST_ID, bounds[0]), (max(bounds), _LAST_ID)])


Finder: TypeAlias = Callable[..., tuple[str | None, list[str]]]
"""Looks at the next so many tasks of a region: where it stopped (None: at the end), and what may be deleted."""


def finders(states: Sequence[str]) -> list[Finder]:
    """How finished tasks of these states are found: by the index of failures, or by walking all ids."""
    found: list[Finder] = [partial(prunable_failures, state=state) for state in states if state in _INDEXED_STATES]
    others = [state for state in states if state not in _INDEXED_STATES]
    return [*found, partial(prunable_stretch, states=others)] if others else found


def prunable_failures(
    connection: apsw.Connection, state: str, at: str, region: tuple[str, str], limit: int
) -> tuple[str | None, list[str]]:
    return _stretch(connection, "prunable_failures", at, region, limit, state=state)


def prunable_stretch(
    connection: apsw.Connection, states: Sequence[str], at: str, region: tuple[str, str], limit: int
) -> tuple[str | None, list[str]]:
    return _stretch(connection, "prunable_stretch", at, region, limit, states=json.dumps(list(states)))


def _stretch(
    connection: apsw.Connection, query: str, at: str, region: tuple[str, str], limit: int, **wanted: str
) -> tuple[str | None, list[str]]:
    after, before = region
    parameters = {"after": after, "before": before, "rows": _STRETCH, "cutoff": at, "limit": limit, **wanted}
    last, found = values_of(connection, SQL[query], parameters)
    return last, found


def count_prunable(connection: apsw.Connection, states: Sequence[str], at: str) -> int:
    found: int = connection.execute(SQL["count_prunable"], {"cutoff": at, "states": json.dumps(list(states))}).get
    return found


def prune(connection: apsw.Connection, states: Sequence[str], at: str, ids: list[str]) -> int:
    """Deletes those that are still finished, in these states, and old enough."""
    before = connection.total_changes()
    connection.execute(SQL["prune"], {"ids": json.dumps(ids), "cutoff": at, "states": json.dumps(list(states))})
    return connection.changes() if connection.total_changes() != before else 0


def sample(connection: apsw.Connection, clock_offset: float) -> None:
    parameters = {"offset": seconds(clock_offset)}
    if not connection.execute(SQL["sampled"], parameters).get:
        connection.execute(SQL["sample"], parameters)


def merge_counters(connection: apsw.Connection, clock_offset: float) -> None:
    """Minutes of past days become hours, hours of past months one total."""
    for kept, epoch in ((HOURS_KEPT, True), (MINUTES_KEPT, False)):
        parameters = {"offset": seconds(clock_offset), "age": seconds(-kept)}
        # Whole hours, or an hour would be merged in two pieces.
        before = connection.execute(SQL["cutoff"], parameters).get[:13] + ":00:00.000Z"
        if not connection.execute(SQL["unmerged_counts"], {"before": before, "epoch": epoch}).get:
            continue
        merged = rows_of(connection, SQL["merged_counts"], {"before": before, "epoch": epoch})
        connection.execute(SQL["forget_counts"], {"before": before})
        add_counts(connection, [tuple(row) for row in merged])


def forget_workers(connection: apsw.Connection, clock_offset: float) -> None:
    parameters = {"offset": seconds(clock_offset), "age": seconds(-WORKERS_KEPT)}
    connection.execute(SQL["forget_workers"], {"before": connection.execute(SQL["cutoff"], parameters).get})


def control(connection: apsw.Connection, change: ControlChange) -> Controls:
    rows = {row[0]: Control.read(row) for row in rows_of(connection, SQL["controls"])}
    new = rows.get(change.name, Control(change.name)).changed(change)
    parameters = {
        "name": new.name,
        "paused": new.paused,
        "operator_rate": new.operator_rate,
        "default_rate": new.default_rate,
        "concurrency": new.concurrency,
        "tokens": new.tokens,
        "refilled_at": new.refilled,
    }
    connection.execute(SQL["set_control"], parameters)
    return new.public()
