"""Cancelling: at once where nothing runs, by asking where something does."""

from __future__ import annotations

import pytest

from tasklib.core import decide
from tasklib.core.lifecycle import Phase
from tasklib.core.outcome import Failed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import TaskState
from tasklib.stores.base import Store
from tasklib.testing.suite.builders import (
    ANNA,
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    fresh_name,
    in_phase,
    lease_of,
    next_id,
    released,
    submit,
)


class Cancelling:
    @pytest.mark.parametrize("phase", [Phase.PENDING, Phase.WAITING])
    async def test_what_does_not_run_is_cancelled_at_once(self, store: Store, phase: Phase) -> None:
        task = await in_phase(store, phase)
        await apply(store, cancelled(task))
        after = await fetch(store, task.id)
        assert (after.state, after.version, after.attempts) == (TaskState.CANCELLED, task.version + 1, task.attempts)
        assert after.completed_at is not None
        assert (after.next_retry_at, after.worker_id, after.locked_until) == (None, None, None)
        store.clock_offset += 100_000
        assert await claim(store, 5, names=[task.name]) == []

    async def test_a_delayed_task_can_be_cancelled(self, store: Store) -> None:
        task = await fetch(store, await submit(store, delay_seconds=60))
        await apply(store, cancelled(task))
        store.clock_offset += 61
        assert await claim(store) == []

    async def test_a_running_task_is_asked_to_stop(self, store: Store) -> None:
        task = await in_phase(store, Phase.RUNNING)
        start = await store.now()
        assert await store.request_cancel([task.id]) == [task.id]
        end = await store.now()
        after = await fetch(store, task.id)
        assert after.cancel_requested_at is not None
        assert start <= after.cancel_requested_at <= end
        assert (after.state, after.version) == (TaskState.RUNNING, task.version)
        assert (after.worker_id, after.locked_until) == (task.worker_id, task.locked_until)

    @pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.RUNNING])
    async def test_only_a_running_task_is_asked(self, store: Store, phase: Phase) -> None:
        task = await in_phase(store, phase)
        assert await store.request_cancel([task.id]) == []
        assert await fetch(store, task.id) == task

    async def test_of_several_those_that_run_are_asked(self, store: Store) -> None:
        tasks = [await in_phase(store, phase) for phase in (Phase.RUNNING, Phase.PENDING, Phase.RUNNING)]
        asked = await store.request_cancel([next_id(), *[task.id for task in tasks]])
        assert sorted(asked) == sorted([tasks[0].id, tasks[2].id])
        assert await store.request_cancel([]) == []

    async def test_the_worker_learns_of_it_with_its_next_extension(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store)
        [before] = await store.extend(ANNA, [lease_of(running)], 600)
        await store.request_cancel([running.id])
        [after] = await store.extend(ANNA, [lease_of(running)], 600)
        assert (before.held, before.cancel_requested) == (True, False)
        assert (after.held, after.cancel_requested) == (True, True)

    async def test_a_task_that_finishes_all_the_same_is_completed(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store)
        await store.request_cancel([running.id])
        await apply(store, completed(running, 1))
        task = await fetch(store, running.id)
        assert (task.state, task.result) == (TaskState.COMPLETED, {"value": 1})
        assert task.cancel_requested_at is not None

    async def test_a_task_that_fails_after_it_was_asked_is_cancelled(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store)
        await store.request_cancel([running.id])
        await apply(store, decide.settle(running, Failed("boom"), RetryPolicy.AT_ONCE, cancel_requested=True))
        task = await fetch(store, running.id)
        assert (task.state, task.error, task.attempts) == (TaskState.CANCELLED, "boom", 1)
        assert await claim(store) == []

    async def test_a_lost_task_that_was_asked_to_stop_is_cancelled(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        await store.request_cancel([running.id])
        store.clock_offset += 11
        [lost] = await store.lost_leases(30, 10)
        await apply(store, expired(lost))
        task = await fetch(store, running.id)
        assert (task.state, task.attempts, task.history[-1]["lost"]) == (TaskState.CANCELLED, 1, True)

    async def test_a_new_start_has_not_been_asked_to_stop(self, store: Store) -> None:
        for outcome in (released, failed):  # by a worker that has not heard of the request
            name = fresh_name()
            await submit(store, name)
            running = await claim_one(store, name)
            await store.request_cancel([running.id])
            await apply(store, outcome(running))
            again = await claim_one(store, name)
            [extension] = await store.extend(ANNA, [lease_of(again)], 600)
            assert (extension.held, extension.cancel_requested) == (True, False)
            assert (await fetch(store, running.id)).cancel_requested_at is None
