"""Settling: guarded changes, the counters that move with them, and a verdict for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw

from tasklib.core.decide import HISTORY_LIMIT, UNTIMED, Change, Verdict, judge
from tasklib.core.limits import ALL
from tasklib.core.task import TaskState
from tasklib.stores.sql.upkeep import add_counts
from tasklib.stores.sqlite.batches import SQL, chunks, match_batch, run_batch, values_of
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.looking import get
from tasklib.stores.sqlite.rows import seconds, seconds_or_none, written_or_none
from tasklib.stores.sqlite.statements import play
from tasklib.stores.values import Extension, Held
from tasklib.stores.waves import waves

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
    now, limited = values_of(connection, SQL["settling"], {"offset": seconds(clock_offset)})
    settlement = _Settlement(connection, changes, now)
    for wave in waves(changes):
        settlement.write(wave)
    settlement.count()
    settlement.judge()
    if limited:
        names = settlement.moved if ALL in limited else settlement.moved.intersection(limited)
        settlement.outcome.claimable.update(names)
    return settlement.outcome


def extend(
    connection: apsw.Connection, worker_id: str, leases: Sequence[Held], lease_seconds: float, clock: Clock
) -> list[Extension]:
    found: dict[str, bool] = {}
    for chunk in chunks([(str(lease.id), lease.version, worker_id) for lease in leases]):
        found.update(match_batch(connection, "match_extended", chunk))
        run_batch(connection, "extend", (clock.steady(), seconds(lease_seconds)), chunk)
    return [Extension(lease.id, str(lease.id) in found, bool(found.get(str(lease.id)))) for lease in leases]


class _Settlement:
    """One call's changes on their way into the tables."""

    def __init__(self, connection: apsw.Connection, changes: Sequence[Change], now: str) -> None:
        self._connection = connection
        self._changes = changes
        self._now = now
        self._minute = f"{now[:16]}:00.000Z"
        self._counts: dict[tuple[str, str, str, int], list[int]] = {}
        self._lost: list[int] = []
        self.moved: set[str] = set()
        """Names of tasks that were changed."""
        self.outcome = Settled([Verdict.APPLIED] * len(changes))

    def write(self, wave: Sequence[int]) -> None:
        """Writes those of the changes at these places whose guard holds."""
        hot: list[tuple[int, tuple[Any, ...]]] = []
        rest: list[tuple[int, tuple[Any, ...]]] = []
        for place in wave:
            change = self._changes[place]
            if _is_hot(change):
                hot.append((place, _completion(change)))
            else:
                rest.append((place, _general(change)))
        for chunk in chunks(hot):
            self._complete(chunk)
        for chunk in chunks(rest):
            self._settle(chunk)

    def _complete(self, chunk: Sequence[tuple[int, tuple[Any, ...]]]) -> None:
        rows = [row for _, row in chunk]
        number, groups, awaited = match_batch(self._connection, "match_completed", rows)
        for name, bucket, count, run_ms in groups:
            self.moved.add(name)
            self._add((self._minute, name, str(TaskState.COMPLETED), bucket), count, run_ms)
        self.outcome.finished += awaited
        if number != len(chunk):
            held = set(match_batch(self._connection, "held_completions", rows))
            self._lost += [place for place, row in chunk if row[0] not in held]
        if number:
            run_batch(self._connection, "complete", (self._now,), rows)

    def _settle(self, chunk: Sequence[tuple[int, tuple[Any, ...]]]) -> None:
        rows = [row for _, row in chunk]
        held = {row[0]: row for row in match_batch(self._connection, "match_settled", rows)}
        for number, (place, row) in enumerate(chunk):
            if row[0] not in held:
                self._lost.append(place)
                continue
            _, name, awaited, asked = held[row[0]]
            change = self._changes[place]
            if asked and change.if_asked is not None:
                change = change.if_asked
                rows[number] = _general(change)
            self._note(change, name, bool(awaited))
        if held:
            run_batch(self._connection, "settle", (self._now, HISTORY_LIMIT), rows)

    def _note(self, change: Change, name: str, awaited: bool) -> None:
        """What the counters and the listeners have to know of a change; releases and snoozes count for nothing."""
        self.moved.add(name)
        if change.terminal:
            self._add((self._minute, name, str(change.state), change.bucket), 1, change.run_ms)
            if awaited:
                self.outcome.finished.append(str(change.id))
        elif change.state == TaskState.FAILED:
            self._add((self._minute, name, "retried", change.bucket), 1, change.run_ms)
        if change.leaves is not None:
            self._add((EPOCH, name, str(change.leaves), UNTIMED), -1, 0)
        if not change.terminal and not change.due_in:
            self.outcome.claimable.add(name)

    def _add(self, key: tuple[str, str, str, int], count: int, run_ms: int) -> None:
        total = self._counts.setdefault(key, [0, 0])
        total[0] += count
        total[1] += run_ms

    def count(self) -> None:
        counts = [(minute, *key, *total) for (minute, *key), total in self._counts.items()]
        play(self._connection, add_counts(counts), Clock(0.0))

    def judge(self) -> None:
        """Says of each change that was not written why."""
        if self._lost:
            found = get(self._connection, [self._changes[place].id for place in self._lost])
            for place, task in zip(self._lost, found, strict=True):
                self.outcome.verdicts[place] = judge(self._changes[place], task)


def _is_hot(change: Change) -> bool:
    """A completion under the full guard of a claim."""
    return (
        change.state == "completed"
        and change.version is not None
        and change.worker_id is not None
        and (change.locked_until is None and change.entry is None and change.leaves is None)
    )


def _completion(change: Change) -> tuple[Any, ...]:
    return (
        str(change.id),
        change.version,
        change.worker_id,
        change.result,
        change.retry_count,
        change.run_ms,
        change.bucket,
    )


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
