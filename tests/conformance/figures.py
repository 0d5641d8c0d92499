"""The counts that people see: exact for what is active, and for what is finished, through retry, delete and prune."""

from __future__ import annotations

import asyncio

from tasklib.core import decide
from tasklib.core.lifecycle import Phase
from tasklib.stores.protocol import Store
from tasklib.stores.values import NameStats
from tests.conformance.builders import (
    WORK,
    WORKER_A,
    OpenStore,
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
    settle,
    submit,
    submit_several,
)


class Figures:
    async def test_every_phase_is_counted(self, store: Store) -> None:
        assert await store.stats() == {}
        for number, phase in enumerate(reversed(Phase), start=1):
            for _ in range(number):
                await in_phase(store, phase, name="a")
        await submit(store, "a", delay_seconds=60)
        await submit(store, "b")
        stats = await store.stats()
        assert _counts(stats["a"]) == {
            "pending": 7,
            "running": 5,
            "completed": 4,
            "waiting": 3,
            "failed": 2,
            "cancelled": 1,
        }
        assert _counts(stats["b"])["pending"] == 1
        assert set(stats) == {"a", "b"}

    async def test_they_follow_every_move(self, store: Store) -> None:
        async def counts() -> dict[str, int]:
            return {state: count for state, count in _counts((await store.stats())[WORK]).items() if count}

        task_id = await submit(store, max_retries=1)
        assert await counts() == {"pending": 1}
        running = await claim_one(store)
        assert await counts() == {"running": 1}
        await apply(store, released(running))
        assert await counts() == {"pending": 1}
        await apply(store, failed(await claim_one(store)))
        assert await counts() == {"waiting": 1}
        await claim_one(store, lease=1)
        store.clock_offset += 2
        await apply(store, expired(await fetch(store, task_id)))
        assert await counts() == {"failed": 1}
        await apply(store, decide.retry_by_hand(await fetch(store, task_id)))
        assert await counts() == {"pending": 1}
        await apply(store, completed(await claim_one(store)))
        assert await counts() == {"completed": 1}

    async def test_a_retry_of_a_waiting_task_takes_nothing_from_the_failed(self, store: Store) -> None:
        await in_phase(store, Phase.FAILED, "a")
        waiting = await in_phase(store, Phase.WAITING, "a")
        await apply(store, decide.retry_by_hand(waiting))
        stats = (await store.stats())["a"]
        assert (stats.failed, stats.waiting, stats.pending) == (1, 0, 1)

    async def test_what_lost_its_guard_is_not_counted(self, store: Store) -> None:
        await submit_several(store, 2)
        first, second = await claim(store, 2)
        await apply(store, completed(first))
        await settle(store, failed(first, final=True))
        await settle(store, completed(second._replace(worker_id="stranger")))
        stats = (await store.stats())[WORK]
        assert (stats.completed, stats.failed, stats.running) == (1, 0, 1)

    async def test_they_stay_exact_when_tasks_are_deleted(self, store: Store) -> None:
        tasks = [await in_phase(store, Phase.COMPLETED, "a") for _ in range(3)]
        gone = await in_phase(store, Phase.CANCELLED, "a")
        await store.delete([(task.id, task.version) for task in (*tasks[:2], gone)])
        await store.delete([(task.id, task.version) for task in tasks[:2]])
        await store.delete([(tasks[2].id, 0)])
        stats = (await store.stats())["a"]
        assert (stats.completed, stats.cancelled) == (1, 0)

    async def test_they_stay_exact_when_tasks_are_pruned(self, store: Store) -> None:
        await submit_several(store, 12)
        await apply(store, *[completed(claimed) for claimed in await claim(store, 12)])
        await in_phase(store, Phase.FAILED, WORK)
        store.clock_offset += 100
        await store.prune(["completed"], 50, 5)
        assert _finished(await store.stats()) == (7, 1, 0)
        await store.prune(["completed"], 50, 5, dry_run=True)
        assert _finished(await store.stats()) == (7, 1, 0)
        await store.prune(["completed", "failed"], 50, 100)
        assert _finished(await store.stats()) == (0, 0, 0)

    async def test_they_stay_exact_when_the_counters_are_tidied(self, store: Store) -> None:
        for days in (0, 1, 3, 40, 90):
            await in_phase(store, Phase.COMPLETED, WORK)
            await in_phase(store, Phase.COMPLETED, WORK)
            failure = await in_phase(store, Phase.FAILED, WORK)
            await apply(store, decide.retry_by_hand(failure))
            await apply(store, cancelled(await fetch(store, failure.id)))
            doomed = await in_phase(store, Phase.COMPLETED, WORK)
            await store.delete([(doomed.id, doomed.version)])
            store.clock_offset += days * 86400
            await store.compact_stats()
        expected = (10, 0, 5)
        assert _finished(await store.stats()) == expected
        for _ in range(3):
            store.clock_offset += 100 * 86400
            await store.compact_stats()
            assert _finished(await store.stats()) == expected

    async def test_they_are_the_same_in_every_store(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        await submit_several(store, 40)
        batches = [await claim(store, 10) for _ in range(4)]
        await asyncio.gather(
            *(
                (store, other)[turn % 2].settle([completed(claimed) for claimed in claims])
                for turn, claims in enumerate(batches)
            )
        )
        assert _finished(await store.stats()) == _finished(await other.stats()) == (40, 0, 0)

    async def test_the_oldest_due_task_is_told(self, store: Store) -> None:
        await submit(store, "due")
        await submit(store, "later", delay_seconds=1000)
        await submit(store, "runs")
        await claim_one(store, "runs", worker=WORKER_A)
        await submit(store, "retries")
        await apply(store, failed(await claim_one(store, "retries"), delay=40))
        store.clock_offset += 100
        await submit(store, "due")
        stats = await store.stats()
        due, retries = stats["due"].oldest_due_seconds, stats["retries"].oldest_due_seconds
        assert due is not None
        assert retries is not None
        assert 100 <= due < 130
        assert 60 <= retries < 90
        assert stats["later"].oldest_due_seconds is None
        assert stats["runs"].oldest_due_seconds is None


def _counts(stats: NameStats) -> dict[str, int]:
    return {
        "pending": stats.pending,
        "running": stats.running,
        "completed": stats.completed,
        "waiting": stats.waiting,
        "failed": stats.failed,
        "cancelled": stats.cancelled,
    }


def _finished(stats: dict[str, NameStats]) -> tuple[int, int, int]:
    work = stats.get(WORK, NameStats())
    return work.completed, work.failed, work.cancelled
