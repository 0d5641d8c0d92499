"""The series behind charts: one cell for each minute, type, kind of end and latency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from tasklib.core import decide
from tasklib.core.lifecycle import Phase
from tasklib.stores.protocol import Store
from tasklib.stores.samples import ARRIVED, WAITED
from tasklib.stores.values import Point
from tests.conformance.builders import (
    WORK,
    WORKER_A,
    WORKER_B,
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    heartbeat_of,
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
        await store.compact_stats()
        after = await store.series(3600)
        assert _sums(after) == _sums(before)
        assert _by_minute(after) == _by_minute(before)
        assert len(after) <= len(before)

    async def test_steps_sum_their_minutes(self, store: Store) -> None:
        for _ in range(4):
            await in_phase(store, Phase.COMPLETED, WORK)
            store.clock_offset += 600
        points = await store.series(7200, 3600)
        assert _sums(points) == _sums(await store.series(7200))
        assert {(point.minute.minute, point.minute.second) for point in points} == {(0, 0)}


class Backlog:
    """How old the backlog was: sampled once a minute, kept beside the counters."""

    async def test_nothing_is_known_until_somebody_looks(self, store: Store) -> None:
        await submit(store)
        assert await store.backlog_history(600) == []

    async def test_the_oldest_due_task_of_each_type_and_of_all(self, store: Store) -> None:
        await submit(store, "old")
        store.clock_offset += 40
        await submit_several(store, 2, "new")
        await submit(store, "later", delay_seconds=600)
        await submit(store, "running")
        await claim_one(store, "running")
        store.clock_offset += 20
        await store.sample_backlog()
        ages = {age.name: age.seconds for age in await store.backlog_history(600)}
        assert set(ages) == {"", "old", "new"}
        assert 59 < ages[""] == ages["old"] < 90
        assert 19 < ages["new"] < 50

    async def test_an_empty_backlog_is_seen_too(self, store: Store) -> None:
        await store.sample_backlog()
        assert [(age.name, age.seconds) for age in await store.backlog_history(600)] == [("", 0.0)]

    async def test_once_in_a_minute_however_many_look(self, store: Store) -> None:
        await submit(store)
        await at_the_begin_of_a_minute(store)
        await store.sample_backlog()
        store.clock_offset += 40
        await store.sample_backlog()
        first = await store.backlog_history(600)
        store.clock_offset += 20
        await store.sample_backlog()
        second = [age for age in await store.backlog_history(600) if age not in first]
        assert [age.name for age in first] == [age.name for age in second] == ["", WORK]
        assert second[1].seconds - first[1].seconds > 59
        assert second[1].minute - first[1].minute == timedelta(minutes=1)

    async def test_steps_and_tidying_keep_the_oldest(self, store: Store) -> None:
        await submit(store)
        now = await store.now()
        store.clock_offset += 3600 - 60 * now.minute - now.second  # so that all samples are of one hour
        for _ in range(3):
            await store.sample_backlog()
            store.clock_offset += 600
        single = [age.seconds for age in await store.backlog_history(7200) if age.name == WORK]
        assert len(single) == 3
        for step in (1800, 3600):
            merged = [age.seconds for age in await store.backlog_history(7200, step) if age.name == WORK]
            assert max(merged) == max(single)
        store.clock_offset += 3 * 86400
        await store.compact_stats()
        (kept,) = [age.seconds for age in await store.backlog_history(5 * 86400, 3600) if age.name == WORK]
        assert kept == max(single)

    async def test_samples_are_neither_moves_nor_finished_tasks(self, store: Store) -> None:
        await submit(store)
        await store.sample_backlog()
        assert await store.series(600) == []
        assert set(await store.stats()) == {WORK}
        assert (await store.stats())[WORK].completed == 0


class Waited:
    """How long tasks waited from when they were due to their first start."""

    async def test_each_first_start_however_it_ended(self, store: Store) -> None:
        await submit_several(store, 4, max_retries=1)
        await submit(store, "later", delay_seconds=20)
        store.clock_offset += 40
        first, second, third, lost = await claim(store, 4, lease=10)
        later = await claim_one(store, "later")
        await apply(store, completed(first), decide.unmeasured(failed(second, delay=0)))
        await apply(store, failed(third, final=True), completed(later))
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, lost.id)))
        assert _waited(await store.series(600)) == {
            (WORK, decide.bucket_of(40_000)): 4,
            ("later", decide.bucket_of(20_000)): 1,
        }
        times = [point.run_ms for point in await store.series(600) if point.state == WAITED and point.name == "later"]
        assert 20_000 <= sum(times) < 40_000

    async def test_neither_retries_nor_what_never_started(self, store: Store) -> None:
        await submit(store)
        await apply(store, failed(await claim_one(store), delay=0))
        await apply(store, completed(await claim_one(store)))
        await apply(store, cancelled(await fetch(store, await submit(store, "never"))))
        await submit(store, "snoozed")
        await apply(store, snoozed(await claim_one(store, "snoozed"), 60))
        assert sum(_waited(await store.series(600)).values()) == 1
        store.clock_offset += 75
        await apply(store, completed(await claim_one(store, "snoozed")))
        assert _waited(await store.series(600))["snoozed", decide.bucket_of(15_000)] == 1


class Arrivals:
    """How many tasks came from one look at the backlog to the next, though nobody counts submits."""

    async def test_what_ended_and_what_is_left(self, store: Store) -> None:
        await submit_several(store, 2, "early")
        await at_the_begin_of_a_minute(store)
        await store.sample_backlog()
        await submit_several(store, 5)
        await submit(store, "later", delay_seconds=3600)
        done, failure, *_ = await claim(store, 3)
        await apply(store, completed(done), failed(failure, final=True))
        store.clock_offset += 60
        await apply(store, completed(await claim_one(store, "early")))  # in the minute of the look, and before it
        await store.sample_backlog()
        assert _arrived(await store.series(600)) == {"": 6, WORK: 5, "later": 1}
        assert [age.depth for age in await store.backlog_history(600) if age.name == ""] == [2, 3]
        store.clock_offset += 60
        await apply(store, decide.retry_by_hand(await fetch(store, failure.id)))
        await store.sample_backlog()
        assert _arrived(await store.series(600)) == {"": 7, WORK: 6, "later": 1}
        minutes = [point.minute for point in await store.series(600) if point.state == ARRIVED and not point.name]
        assert minutes[1] - minutes[0] == timedelta(minutes=1)

    async def test_nothing_is_known_where_nobody_looked(self, store: Store) -> None:
        await submit(store)
        await store.sample_backlog()
        store.clock_offset += 600
        await submit(store)
        await store.sample_backlog()
        assert _arrived(await store.series(1200)) == {}
        store.clock_offset += 60
        await store.sample_backlog()
        assert _arrived(await store.series(1200)) == {"": 0}

    async def test_a_look_of_a_clock_that_was_ahead_does_not_count(self, store: Store) -> None:
        await at_the_begin_of_a_minute(store)
        store.clock_offset += 600
        await store.sample_backlog()
        store.clock_offset -= 600
        await store.sample_backlog()
        await in_phase(store, Phase.COMPLETED, WORK)
        store.clock_offset += 60
        await store.sample_backlog()
        assert _arrived(await store.series(600)) == {"": 1, WORK: 1}

    async def test_of_one_type_and_up_to_a_time(self, store: Store) -> None:
        await at_the_begin_of_a_minute(store)
        for name in ("one", "two"):
            await store.sample_backlog()
            await in_phase(store, Phase.COMPLETED, name)
            await submit(store, name)
            store.clock_offset += 60
        await store.sample_backlog()
        points = await store.series(600, name="two")
        assert {point.name for point in points} == {"", "two"}
        assert {age.name for age in await store.backlog_history(600, name="two")} == {"", "two"}
        now = await store.now()
        until = now.second + 90
        assert {point.name for point in await store.series(600, until_seconds=until)} == {"", "one"}
        assert [age.depth for age in await store.backlog_history(600, until_seconds=until) if not age.name] == [0]


class Versions:
    """Of the workers' application: when each was first started."""

    async def test_the_first_start_of_each_is_kept_when_its_workers_are_gone(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of("nameless"))
        started = await store.now()
        await store.heartbeat(heartbeat_of(WORKER_A, version="1.4"))
        await store.sample_backlog()
        assert {worker.id: worker.version for worker in await store.workers()} == {"nameless": None, WORKER_A: "1.4"}
        store.clock_offset += 3600
        await store.heartbeat(heartbeat_of("another", version="1.4"))
        await store.heartbeat(heartbeat_of(WORKER_B, version="1.5"))
        await store.sample_backlog()
        await store.compact_stats()
        versions = await store.versions()
        assert [each.version for each in versions] == ["1.4", "1.5"]
        first, second = (each.started_ms / 1000 for each in versions)
        assert 0 <= first - started.timestamp() + 0.001 < 60
        assert 3600 <= second - first < 3660
        store.clock_offset += 3 * 86400
        await store.compact_stats()
        await store.sample_backlog()
        assert await store.versions() == versions
        assert await store.series(600) == []


async def at_the_begin_of_a_minute(store: Store) -> None:
    now = await store.now()
    store.clock_offset += 60 - now.second - now.microsecond / 1e6


def _sums(points: Sequence[Point]) -> dict[tuple[str, str, int], int]:
    sums: Counter[tuple[str, str, int]] = Counter()
    for point in points:
        if point.state != WAITED:
            sums[point.name, point.state, point.bucket] += point.count
    return {cell: count for cell, count in sums.items() if count}


def _by_minute(points: Sequence[Point]) -> Counter[object]:
    sums: Counter[object] = Counter()
    for point in points:
        sums[point.minute, point.name, point.state] += point.count
    return sums


def _waited(points: Sequence[Point]) -> dict[tuple[str, int], int]:
    sums: Counter[tuple[str, int]] = Counter()
    for point in points:
        if point.state == WAITED:
            sums[point.name, point.bucket] += point.count
    return sums


def _arrived(points: Sequence[Point]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for point in points:
        if point.state == ARRIVED:
            sums[point.name] = sums.get(point.name, 0) + point.count
    return sums
