"""Several at once on one task: exactly one wins each version."""

from __future__ import annotations

import asyncio

import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.lifecycle import Phase
from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tests.conformance.builders import (
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
    lease_of,
    released,
    stopped,
    submit,
    submit_several,
)


class Races:
    @pytest.mark.parametrize("round_", range(5))
    async def test_one_outcome_of_many_is_recorded(self, store: Store, open_store: OpenStore, round_: int) -> None:
        """Fault 20: cancel, retry, completion, expiry and delete at once. One wins each version."""
        stores = [store, *[await open_store() for _ in range(3)]]
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        lost = await fetch(store, running.id)
        changes = [
            completed(running, "mine"),
            failed(running, "failed", delay=60),
            expired(lost),
            released(running),
            stopped(running, "stopped"),
            failed(running, "final", final=True),
        ]
        changes = changes[round_:] + changes[:round_]
        answers = await asyncio.gather(*(stores[turn % 4].settle([change]) for turn, change in enumerate(changes)))
        write_results = [write_result for answer in answers for write_result in answer]
        assert write_results.count(WriteResult.APPLIED) == 1
        assert write_results.count(WriteResult.STALE) == len(changes) - 1
        winner = changes[write_results.index(WriteResult.APPLIED)]
        task = await fetch(store, running.id)
        assert (task.state, task.version, task.error) == (winner.state, running.version + 1, winner.error)

    async def test_a_claim_and_a_cancel_do_not_both_win(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        for _ in range(10):
            task = await in_phase(store, Phase.PENDING)
            claims, [write_result] = await asyncio.gather(
                claim(store, names=[task.name]), other.settle([cancelled(task)])
            )
            after = await fetch(store, task.id)
            if claims:
                assert (write_result, after.state) == (WriteResult.STALE, TaskState.RUNNING)
            else:
                assert (write_result, after.state) == (WriteResult.APPLIED, TaskState.CANCELLED)
            assert after.version == task.version + 1

    async def test_an_extension_and_an_expiry_do_not_both_win(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        for _ in range(10):
            await submit(store)
            running = await claim_one(store, lease=10)
            store.clock_offset += 11
            other.clock_offset = store.clock_offset
            lost = await fetch(store, running.id)
            [extension], [write_result] = await asyncio.gather(
                store.extend(WORKER_A, [lease_of(running)], 600), other.settle([expired(lost)])
            )
            assert extension.held == (write_result is WriteResult.STALE)
            task = await fetch(store, running.id)
            assert task.state == (TaskState.RUNNING if extension.held else TaskState.FAILED)
            if extension.held:
                await apply(store, completed(running))
            else:
                await apply(store, cancelled(task))

    async def test_a_delete_and_a_retry_do_not_both_win(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        for _ in range(10):
            task = await in_phase(store, Phase.FAILED)
            [deleted], [retried] = await asyncio.gather(
                store.delete([(task.id, task.version)]), other.settle([decide.retry_by_hand(task)])
            )
            [after] = await store.get([task.id])
            if deleted is WriteResult.APPLIED:
                assert (retried, after) == (WriteResult.MISSING, None)
            else:
                assert (deleted, retried) == (WriteResult.STALE, WriteResult.APPLIED)
                assert after is not None
                assert after.state == TaskState.PENDING

    async def test_batches_in_opposite_order_do_not_block_each_other(self, store: Store, open_store: OpenStore) -> None:
        """The same tasks, settled by their worker and expired by the janitor at once."""
        other = await open_store()
        await submit_several(store, 60)
        claims = await claim(store, 60, lease=10)
        store.clock_offset += 11
        other.clock_offset = store.clock_offset
        lost = [await fetch(store, claimed.id) for claimed in claims]
        mine, theirs, extended = await asyncio.gather(
            store.settle([completed(claimed) for claimed in claims]),
            other.settle([expired(task) for task in lost[::-1]]),
            other.extend(WORKER_A, [lease_of(claimed) for claimed in claims[::-1]], 600),
        )
        assert len(extended) == 60
        for write_results in zip(mine, theirs[::-1], strict=True):
            assert sorted(write_results) == [WriteResult.APPLIED, WriteResult.STALE]
        stats = (await store.stats())["work"]
        assert stats.completed == mine.count(WriteResult.APPLIED)
        assert stats.waiting == theirs.count(WriteResult.APPLIED)
