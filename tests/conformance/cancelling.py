"""Cancelling: at once where nothing runs, by asking where something does."""

from __future__ import annotations

import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.lifecycle import Phase
from tasklib.core.outcome import Failed, Outcome, Released, Snoozed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim, Task, TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.samples import WAITED
from tests.conformance.builders import (
    WORK,
    WORKER_A,
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
    next_id,
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
        [before] = await store.extend(WORKER_A, [lease_of(running)], 600)
        await store.request_cancel([running.id])
        [after] = await store.extend(WORKER_A, [lease_of(running)], 600)
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

    @pytest.mark.parametrize(
        "outcome",
        [Failed("boom"), Failed("boom", final=True), Released(), Snoozed(5)],
        ids=["failed", "final", "released", "snoozed"],
    )
    async def test_what_ends_without_completing_after_it_was_asked_is_cancelled(
        self, store: Store, outcome: Outcome
    ) -> None:
        """Its worker has not heard of the request: the write itself looks."""
        await submit(store)
        running = await claim_one(store)
        await store.request_cancel([running.id])
        await apply(store, decide.settle(running, outcome, RetryPolicy.AT_ONCE))
        await _is_cancelled(store, running)

    async def test_in_one_batch_each_is_looked_at(self, store: Store) -> None:
        await submit(store)
        await submit(store)
        asked, other = await claim(store, 2)
        await store.request_cancel([asked.id])
        changes = [failed(asked, delay=60), failed(other, delay=60)]
        assert await store.settle(changes) == [WriteResult.APPLIED, WriteResult.APPLIED]
        assert (await fetch(store, other.id)).waiting
        await apply(store, cancelled(await fetch(store, other.id)))
        await _is_cancelled(store, asked)

    async def test_a_last_attempt_that_was_asked_to_stop_is_cancelled(self, store: Store) -> None:
        await submit(store, max_retries=0)
        running = await claim_one(store)
        await store.request_cancel([running.id])
        await apply(store, failed(running))
        await _is_cancelled(store, running)

    async def test_a_retry_that_takes_back_what_was_asked_to_stop_cancels_it(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store)
        seen = await fetch(store, running.id)
        await store.request_cancel([running.id])
        change = decide.resume(seen, await store.now())
        assert change is not None
        await apply(store, change)
        await _is_cancelled(store, running)

    @pytest.mark.parametrize("outcome", [Failed("boom"), Released()])
    async def test_a_cancellation_that_is_sent_again_is_known(self, store: Store, outcome: Outcome) -> None:
        """As after a lost reply. What another write made of the task is not."""
        await submit(store)
        running = await claim_one(store)
        await store.request_cancel([running.id])
        change = decide.settle(running, outcome, RetryPolicy.AT_ONCE)
        assert await store.settle([change]) == [WriteResult.APPLIED]
        assert await store.settle([change]) == [WriteResult.DUPLICATE]
        assert await store.settle([decide.settle(running, Failed("else"), RetryPolicy.AT_ONCE)]) == [WriteResult.STALE]

    @pytest.mark.parametrize("outcome", [Failed("boom", run_ms=7), Released()])
    async def test_such_a_cancellation_counts_as_one(self, store: Store, outcome: Outcome) -> None:
        await submit(store)
        running = await claim_one(store)
        await store.request_cancel([running.id])
        await apply(store, decide.settle(running, outcome, RetryPolicy.AT_ONCE))
        stats = (await store.stats())[WORK]
        assert (stats.cancelled, stats.failed, stats.waiting, stats.pending, stats.running) == (1, 0, 0, 0, 0)
        bucket = decide.bucket_of(7) if isinstance(outcome, Failed) else decide.UNTIMED
        points = [point for point in await store.series(600) if point.state != WAITED]
        counted = [(point.name, point.state, point.bucket, point.count) for point in points]
        assert counted == [(WORK, "cancelled", bucket, 1)]

    async def test_a_lost_task_that_was_asked_to_stop_is_cancelled(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        await store.request_cancel([running.id])
        store.clock_offset += 11
        [lost] = await store.lost_leases(30, 10)
        await apply(store, expired(lost))
        task = await _is_cancelled(store, running)
        assert task.history[-1]["lost"]

    async def test_a_request_between_a_janitors_look_and_its_write_counts(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        [lost] = await store.lost_leases(30, 10)
        await store.request_cancel([running.id])
        await apply(store, expired(lost))
        await _is_cancelled(store, running)


async def _is_cancelled(store: Store, running: Claim) -> Task:
    """Over for good, and the attempt counts."""
    task = await fetch(store, running.id)
    assert (task.state, task.version, task.attempts) == (TaskState.CANCELLED, running.version + 1, running.attempt)
    assert task.completed_at is not None
    assert task.cancel_requested_at is not None
    assert (task.next_retry_at, task.worker_id, task.locked_until) == (None, None, None)
    assert (task.error, [entry["attempt"] for entry in task.history]) == (task.history[-1]["error"], [running.attempt])
    store.clock_offset += 100_000
    assert await claim(store, 5) == []
    return task
