"""Settling: guarded changes, the counters that move with them, and a verdict for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import apsw

from tasklib.core.decide import HISTORY_LIMIT, UNTIMED, Change, Verdict, judge
from tasklib.core.task import TaskState
from tasklib.stores.base import Extension, Held
from tasklib.stores.sqlite.batches import SQL, chunks, match_batch, rows_of, run_batch
from tasklib.stores.sqlite.limits import ALL
from tasklib.stores.sqlite.looking import get
from tasklib.stores.sqlite.rows import seconds, seconds_or_none, written_or_none

EPOCH = "1970-01-01T00:00:00.000Z"
"""The minute under which the counters keep what belongs to no minute."""


@dataclass(slots=True)
class Settled:
    """The verdicts, and who should hear of it."""

    verdicts: list[Verdict]
    claimable: set[str] = field(default_factory=set)
    """Names of which something may be claimable again."""
    finished: list[str] = field(default_factory=list)
    """Ids of finished tasks that somebody waits for."""


def settle(connection: apsw.Connection, changes: Sequence[Change], clock_offset: float) -> Settled:
    now, limited = rows_of(connection, SQL["settling"], {"offset": seconds(clock_offset)})
    names: dict[int, str] = {}
    outcome = Settled([Verdict.LOST] * len(changes))
    for wave in _waves(changes):
        for place, (name, awaited) in _apply(connection, changes, wave, str(now)).items():
            names[place] = name
            if awaited and changes[place].terminal:
                outcome.finished.append(str(changes[place].id))
    _count(connection, changes, names, str(now))
    for place, name in names.items():
        outcome.verdicts[place] = Verdict.APPLIED
        if name in limited or ALL in limited or _due_at_once(changes[place]):
            outcome.claimable.add(name)
    _judge(connection, changes, names, outcome.verdicts)
    return outcome


def extend(
    connection: apsw.Connection, worker_id: str, leases: Sequence[Held], lease_seconds: float, clock_offset: float
) -> list[Extension]:
    found: dict[str, bool] = {}
    for chunk in chunks([(str(lease.id), lease.version, worker_id) for lease in leases]):
        found.update(match_batch(connection, "match_extended", chunk))
        run_batch(connection, "extend", (seconds(clock_offset), seconds(lease_seconds)), chunk)
    return [Extension(lease.id, str(lease.id) in found, bool(found.get(str(lease.id)))) for lease in leases]


def mark_awaited(connection: apsw.Connection, task_id: UUID) -> None:
    """Whoever ends the task is to tell."""
    connection.execute(SQL["await_end"], {"id": str(task_id)})


def _waves(changes: Sequence[Change]) -> list[list[int]]:
    """Places of the changes, such that no task is in a wave twice: of two changes to one task the first goes first."""
    waves: list[list[int]] = [[]]
    seen: dict[UUID, int] = {}
    for place, change in enumerate(changes):
        turn = seen.get(change.id, -1) + 1
        seen[change.id] = turn
        if turn == len(waves):
            waves.append([])
        waves[turn].append(place)
    return waves


def _apply(
    connection: apsw.Connection, changes: Sequence[Change], wave: list[int], now: str
) -> dict[int, tuple[str, bool]]:
    """Writes those whose guard holds; name and `awaited` of each, by its place."""
    places = {str(changes[place].id): place for place in wave}
    hot = [_completion(changes[place]) for place in wave if _is_hot(changes[place])]
    rest = [_general(changes[place]) for place in wave if not _is_hot(changes[place])]
    applied: dict[int, tuple[str, bool]] = {}

    def write(rows: Sequence[tuple[Any, ...]], match: str, query: str, fixed: tuple[Any, ...]) -> None:
        for chunk in chunks(rows):
            found = match_batch(connection, match, chunk)
            if found:
                applied.update((places[row[0]], (row[1], bool(row[2]))) for row in found)
                run_batch(connection, query, fixed, chunk)

    write(hot, "match_completed", "complete", (now,))
    write(rest, "match_settled", "settle", (now, HISTORY_LIMIT))
    return applied


def _is_hot(change: Change) -> bool:
    return (
        change.state is TaskState.COMPLETED
        and change.version is not None
        and change.worker_id is not None
        and change.locked_until is None
        and change.entry is None
        and change.terminal
    )


def _completion(change: Change) -> tuple[Any, ...]:
    return str(change.id), change.version, change.worker_id, change.result, change.retry_count


def _general(change: Change) -> tuple[Any, ...]:
    return (
        str(change.id),
        change.version,
        change.worker_id,
        written_or_none(change.locked_until),
        str(change.state),
        change.retry_count,
        change.terminal,
        seconds_or_none(change.due_in),
        change.result,
        change.error,
        change.entry,
    )


def _due_at_once(change: Change) -> bool:
    return not change.terminal and not change.due_in


def _count(connection: apsw.Connection, changes: Sequence[Change], names: dict[int, str], now: str) -> None:
    """One row for each kind of move; releases and snoozes are none."""
    minute = f"{now[:16]}:00.000Z"
    counts: dict[tuple[str, str, str, int], list[int]] = {}

    def add(key: tuple[str, str, str, int], count: int, run_ms: int) -> None:
        total = counts.setdefault(key, [0, 0])
        total[0] += count
        total[1] += run_ms

    for place, name in names.items():
        change = changes[place]
        if change.terminal:
            add((minute, name, str(change.state), change.bucket), 1, change.run_ms)
        elif change.state == TaskState.FAILED:
            add((minute, name, "retried", change.bucket), 1, change.run_ms)
        if change.leaves is not None:
            add((EPOCH, name, str(change.leaves), UNTIMED), -1, 0)
    add_counts(connection, [(*key, *total) for key, total in counts.items()])


def add_counts(connection: apsw.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
    for chunk in chunks(list(rows)):
        run_batch(connection, "count_moves", (), chunk)


def _judge(
    connection: apsw.Connection, changes: Sequence[Change], applied: dict[int, str], verdicts: list[Verdict]
) -> None:
    missed = [place for place in range(len(changes)) if place not in applied]
    if missed:
        for place, task in zip(missed, get(connection, [changes[place].id for place in missed]), strict=True):
            verdicts[place] = judge(changes[place], task)
