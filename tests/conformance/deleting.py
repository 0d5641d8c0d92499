"""Deleting one by one and by age: finished tasks only, each under its guard, the counters with them."""

from __future__ import annotations

import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.lifecycle import TERMINAL, Phase
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import (
    apply,
    claim,
    claim_one,
    completed,
    fetch,
    in_phase,
    next_id,
    submit,
    submit_several,
)

FINISHED = sorted(TERMINAL)
STATES = ["completed", "failed", "cancelled"]


class Deleting:
    @pytest.mark.parametrize("phase", FINISHED)
    async def test_a_finished_task_is_deleted(self, store: Store, phase: Phase) -> None:
        task = await in_phase(store, phase)
        assert await store.delete([(task.id, task.version)]) == [WriteResult.APPLIED]
        assert await store.get([task.id]) == [None]
        assert await store.delete([(task.id, task.version)]) == [WriteResult.MISSING]

    @pytest.mark.parametrize("phase", [phase for phase in Phase if phase not in TERMINAL])
    async def test_an_unfinished_task_is_not(self, store: Store, phase: Phase) -> None:
        task = await in_phase(store, phase)
        assert await store.delete([(task.id, task.version)]) == [WriteResult.STALE]
        assert await fetch(store, task.id) == task

    async def test_a_task_that_moved_on_is_not(self, store: Store) -> None:
        task = await in_phase(store, Phase.FAILED)
        await apply(store, decide.retry_by_hand(task))
        await apply(store, completed(await claim_one(store, task.name)))
        before = await fetch(store, task.id)
        assert await store.delete([(task.id, task.version)]) == [WriteResult.STALE]
        assert await fetch(store, task.id) == before

    async def test_each_has_its_own_verdict(self, store: Store) -> None:
        done, other = await in_phase(store, Phase.COMPLETED), await in_phase(store, Phase.CANCELLED)
        running = await in_phase(store, Phase.RUNNING)
        guards = [
            (other.id, other.version - 1),
            (done.id, done.version),
            (next_id(), 1),
            (running.id, running.version),
        ]
        assert await store.delete(guards) == [
            WriteResult.STALE,
            WriteResult.APPLIED,
            WriteResult.MISSING,
            WriteResult.STALE,
        ]
        assert await store.get([other.id, done.id, running.id]) == [other, None, running]
        assert await store.delete([]) == []

    async def test_of_several_guards_on_one_task_the_one_that_holds_deletes_it(self, store: Store) -> None:
        task = await in_phase(store, Phase.COMPLETED)
        guards = [(task.id, task.version + offset) for offset in (-1, 0, 0, -1)]
        expected = [WriteResult.STALE, WriteResult.APPLIED, WriteResult.MISSING, WriteResult.MISSING]
        assert await store.delete(guards) == expected

    async def test_pruning_takes_what_finished_long_enough_ago(self, store: Store) -> None:
        old = [await in_phase(store, phase) for phase in FINISHED]
        store.clock_offset += 1000
        young = [await in_phase(store, phase) for phase in FINISHED]
        store.clock_offset += 100
        assert await store.prune(STATES, 500, 100) == 3
        assert await store.get([task.id for task in old]) == [None] * 3
        assert await store.get([task.id for task in young]) == young

    async def test_age_counts_from_the_end_not_from_the_start(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store)
        store.clock_offset += 1000
        await apply(store, completed(running))
        store.clock_offset += 100
        assert await store.prune(STATES, 500, 100) == 0
        store.clock_offset += 500
        assert await store.prune(STATES, 500, 100) == 1

    async def test_pruning_takes_only_the_states_asked_for(self, store: Store) -> None:
        tasks = {phase: await in_phase(store, phase) for phase in FINISHED}
        store.clock_offset += 100
        assert await store.prune(["cancelled"], 50, 100) == 1
        assert await store.get([tasks[Phase.CANCELLED].id]) == [None]
        assert await store.prune(["failed", "completed"], 50, 100) == 2
        assert await store.prune([], 50, 100) == 0

    async def test_pruning_never_takes_the_unfinished(self, store: Store) -> None:
        tasks = [await in_phase(store, phase) for phase in Phase if phase not in TERMINAL]
        store.clock_offset += 1_000_000
        assert await store.prune([*STATES, "pending", "running"], 0, 100, dry_run=True) == 0
        assert await store.prune([*STATES, "pending", "running"], 0, 100) == 0
        assert await store.get([task.id for task in tasks]) == tasks

    async def test_pruning_goes_in_batches(self, store: Store) -> None:
        await submit_several(store, 25)
        await apply(store, *[completed(claimed) for claimed in await claim(store, 25)])
        store.clock_offset += 100
        assert [await store.prune(STATES, 50, 10) for _ in range(4)] == [10, 10, 5, 0]
        assert (await store.count(Filter(), 100)).value == 0

    async def test_pruning_finds_the_old_behind_the_unfinished(self, store: Store) -> None:
        """Rows that may not go must not keep the bounded search from those that may."""
        await submit_several(store, 300, "waits", delay_seconds=10**6)
        task = await in_phase(store, Phase.COMPLETED)
        store.clock_offset += 100
        removed = 0
        for _ in range(100):
            removed += await store.prune(["completed"], 50, 10)
            if removed:
                break
        assert removed == 1
        assert await store.get([task.id]) == [None]

    async def test_a_dry_run_counts_and_deletes_nothing(self, store: Store) -> None:
        await submit_several(store, 25)
        await apply(store, *[completed(claimed) for claimed in await claim(store, 25)])
        store.clock_offset += 100
        assert await store.prune(STATES, 50, 10, dry_run=True) == 25
        assert await store.prune(STATES, 5000, 10, dry_run=True) == 0
        assert (await store.count(Filter(), 100)).value == 25
