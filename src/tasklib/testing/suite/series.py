"""The series behind charts: one cell for each minute, type, kind of end and latency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from tasklib.core import decide
from tasklib.core.lifecycle import Phase
from tasklib.stores.base import Point, Store
from tasklib.testing.suite.builders import (
    WORK,
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    in_phase,
    released,
    snoozed,
    submit,
    submit_several,
)


class Series:
    async def test_each_end_is_a_cell(self, store: Store) -> None:
        await submit_several(store, 6, max_retries=1)
        claims = await claim(store, 6)
        await apply(store, *[completed(claimed, run_ms=7) for claimed in claims[:3]], completed(claims[3], run_ms=400))
        await apply(store, failed(claims[4], run_ms=7, delay=600))
        await apply(store, failed(claims[5], run_ms=7, final=True))
        await apply(store, cancelled(await fetch(store, await submit(store))))
        points = await store.series(600)
        assert _sums(points) == {
            (WORK, "completed", decide.bucket_of(7)): 3,
            (WORK, "completed", decide.bucket_of(400)): 1,
            (WORK, "retried", decide.bucket_of(7)): 1,
            (WORK, "failed", decide.bucket_of(7)): 1,
            (WORK, "cancelled", decide.UNTIMED): 1,
        }
        assert sum(point.run_ms for point in points if point.state == "completed") == 421

    async def test_what_gives_the_attempt_back_is_none(self, store: Store) -> None:
        await submit(store)
        await apply(store, released(await claim_one(store)))
        await apply(store, snoozed(await claim_one(store), 0))
        await claim_one(store)
        assert _sums(await store.series(600)) == {}

    async def test_a_lost_lease_is_counted_without_a_time(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, running.id)))
        assert _sums(await store.series(600)) == {(WORK, "retried", decide.UNTIMED): 1}

    async def test_cells_are_minutes_of_the_stores_clock_oldest_first(self, store: Store) -> None:
        start = await store.now()
        for _ in range(4):
            await in_phase(store, Phase.COMPLETED, WORK)
            store.clock_offset += 60
        points = await store.series(900)
        minutes = [point.minute for point in points if point.count]
        assert minutes == sorted(minutes)
        assert len(set(minutes)) == 4
        for minute in minutes:
            assert (minute.second, minute.microsecond, minute.utcoffset()) == (0, 0, timedelta(0))
        assert timedelta(0) <= start - minutes[0] < timedelta(minutes=1, seconds=30)

    async def test_older_cells_are_left_out(self, store: Store) -> None:
        await in_phase(store, Phase.COMPLETED, "old")
        store.clock_offset += 3600
        await in_phase(store, Phase.COMPLETED, "new")
        assert {point.name for point in await store.series(600)} == {"new"}
        assert {point.name for point in await store.series(7200)} == {"old", "new"}

    async def test_a_retry_or_delete_takes_nothing_out_of_the_past(self, store: Store) -> None:
        failure = await in_phase(store, Phase.FAILED, WORK)
        done = await in_phase(store, Phase.COMPLETED, WORK)
        before = _sums(await store.series(600))
        await apply(store, decide.retry_by_hand(failure))
        await store.delete([(done.id, done.version)])
        assert _sums(await store.series(600)) == before

    async def test_tidying_keeps_the_sums(self, store: Store) -> None:
        for _ in range(3):
            for _ in range(4):
                await in_phase(store, Phase.COMPLETED, WORK)
                await in_phase(store, Phase.FAILED, "other")
            store.clock_offset += 300
        before = await store.series(3600)
        await store.tidy()
        after = await store.series(3600)
        assert _sums(after) == _sums(before)
        assert _by_minute(after) == _by_minute(before)
        assert len(after) <= len(before)


def _sums(points: Sequence[Point]) -> dict[tuple[str, str, int], int]:
    sums: Counter[tuple[str, str, int]] = Counter()
    for point in points:
        sums[point.name, point.state, point.bucket] += point.count
    return {cell: count for cell, count in sums.items() if count}


def _by_minute(points: Sequence[Point]) -> Counter[object]:
    sums: Counter[object] = Counter()
    for point in points:
        sums[point.minute, point.name, point.state] += point.count
    return sums
