"""Outcomes: what each of them writes into the row."""

from __future__ import annotations

from datetime import datetime, timedelta

from tasklib.core.decide import WriteResult
from tasklib.core.task import Task, TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import (
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
    released,
    snoozed,
    stopped,
    submit,
    submit_several,
)


def _untouched(task: Task) -> tuple[object, ...]:
    """What no outcome may change."""
    return (
        task.id,
        task.name,
        task.kwargs,
        task.args,
        task.tags,
        task.priority,
        task.max_retries,
        task.timeout_seconds,
        task.idempotency_key,
        task.retry_policy,
        task.trace,
        task.created_at,
    )


def _about(instant: datetime | None, expected: datetime) -> bool:
    return instant is not None and abs(instant - expected) < timedelta(seconds=5)


class Settling:
    async def test_who_ran_it_and_how_long_is_kept(self, store: Store) -> None:
        """Of the latest attempt; where nobody measured it, it is not known."""
        task_id = await submit(store)

        async def told() -> tuple[object, ...]:
            task = await fetch(store, task_id)
            return task.worker_id, task.last_worker_id, task.run_ms

        assert await told() == (None, None, None)
        await apply(store, failed(await claim_one(store), run_ms=41))
        assert await told() == (None, WORKER_A, 41)
        assert (await fetch(store, task_id)).history[0]["run_ms"] == 41
        running = await claim_one(store, worker=WORKER_B)
        assert await told() == (WORKER_B, WORKER_A, 41)
        await apply(store, released(running))
        assert await told() == (None, WORKER_B, None)
        await apply(store, completed(await claim_one(store), run_ms=7))
        assert await told() == (None, WORKER_A, 7)

    async def test_success_completes_the_task(self, store: Store) -> None:
        task_id = await submit(
            store, payload={"a": 1}, tags={"t": 1}, key="k", priority=4, timeout_seconds=3, trace="t"
        )
        running = await claim_one(store)
        before = await fetch(store, task_id)
        start = await store.now()
        assert await store.settle([completed(running, {"sum": 3})]) == [WriteResult.APPLIED]
        end = await store.now()
        task = await fetch(store, task_id)
        assert (task.state, task.result, task.error) == (TaskState.COMPLETED, {"value": {"sum": 3}}, None)
        assert task.completed_at is not None
        assert start <= task.completed_at <= end
        assert start <= task.updated_at <= end
        assert (task.worker_id, task.locked_until, task.next_retry_at) == (None, None, None)
        assert (task.version, task.retry_count, task.attempts) == (before.version + 1, 0, 1)
        assert (task.started_at, task.scheduled_at, task.history) == (before.started_at, before.scheduled_at, [])
        assert _untouched(task) == _untouched(before)

    async def test_a_failure_with_attempts_left_waits_for_its_retry(self, store: Store) -> None:
        task_id = await submit(store, payload={"a": 1}, tags={"t": 1}, key="k")
        running = await claim_one(store)
        before = await fetch(store, task_id)
        await apply(store, failed(running, "boom", delay=120))
        task = await fetch(store, task_id)
        assert (task.state, task.completed_at, task.error, task.result) == (TaskState.FAILED, None, "boom", None)
        assert _about(task.next_retry_at, await store.now() + timedelta(seconds=120))
        assert (task.worker_id, task.locked_until) == (None, None)
        assert (task.version, task.retry_count, task.attempts) == (before.version + 1, 1, 1)
        assert (task.scheduled_at, task.started_at) == (before.scheduled_at, before.started_at)
        assert _untouched(task) == _untouched(before)

    async def test_a_failure_with_no_attempts_left_is_final(self, store: Store) -> None:
        task_id = await submit(store, max_retries=1)
        await apply(store, failed(await claim_one(store)))
        await apply(store, failed(await claim_one(store), "the end"))
        task = await fetch(store, task_id)
        assert (task.state, task.error, task.next_retry_at) == (TaskState.FAILED, "the end", None)
        assert _about(task.completed_at, await store.now())
        assert (task.worker_id, task.locked_until) == (None, None)
        assert (task.retry_count, task.attempts, task.max_attempts) == (1, 2, 2)
        store.clock_offset += 10 * 86400
        assert await claim(store) == [], "it never comes back"

    async def test_a_failure_may_be_final_at_once(self, store: Store) -> None:
        task_id = await submit(store, max_retries=-1)
        await apply(store, failed(await claim_one(store), final=True))
        task = await fetch(store, task_id)
        assert (task.completed_at is not None, task.attempts, task.retry_count) == (True, 1, 0)

    async def test_a_failure_due_at_once_is_claimed_at_once(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, failed(await claim_one(store), delay=0))
        claimed = await claim_one(store)
        assert (claimed.id, claimed.attempt) == (task_id, 2)

    async def test_a_release_gives_the_attempt_back(self, store: Store) -> None:
        task_id = await submit(store, max_retries=0)
        running = await claim_one(store)
        before = await fetch(store, task_id)
        await apply(store, released(running))
        task = await fetch(store, task_id)
        assert (task.state, task.retry_count, task.attempts) == (TaskState.PENDING, 0, 0)
        assert (task.worker_id, task.locked_until, task.completed_at, task.next_retry_at) == (None, None, None, None)
        assert (task.version, task.scheduled_at, task.history) == (before.version + 1, before.scheduled_at, [])
        assert _untouched(task) == _untouched(before)
        again = await claim_one(store)
        assert (again.id, again.attempt, again.version) == (task_id, 1, running.version + 2)

    async def test_a_release_of_a_retry_gives_that_attempt_back(self, store: Store) -> None:
        await submit(store)
        await apply(store, failed(await claim_one(store)))
        await apply(store, released(await claim_one(store)))
        assert (await claim_one(store)).attempt == 2

    async def test_a_snooze_runs_later_under_the_same_number(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, snoozed(await claim_one(store), 300))
        task = await fetch(store, task_id)
        assert (task.state, task.retry_count, task.next_retry_at) == (TaskState.PENDING, 0, None)
        assert _about(task.scheduled_at, await store.now() + timedelta(seconds=300))
        store.clock_offset += 280
        assert await claim(store) == []
        store.clock_offset += 21
        assert (await claim_one(store)).attempt == 1

    async def test_a_task_that_stopped_as_asked_is_cancelled(self, store: Store) -> None:
        task_id = await submit(store)
        running = await claim_one(store)
        await store.request_cancel([task_id])
        await apply(store, stopped(running, "stopped"))
        task = await fetch(store, task_id)
        assert (task.state, task.error, task.worker_id, task.locked_until) == (
            TaskState.CANCELLED,
            "stopped",
            None,
            None,
        )
        assert (task.retry_count, task.attempts) == (1, 1)
        assert _about(task.completed_at, await store.now())
        assert _about(task.cancel_requested_at, await store.now())

    async def test_a_lost_lease_is_a_failed_attempt_that_says_so(self, store: Store) -> None:
        task_id = await submit(store, max_retries=1)
        for attempt, final in ((1, False), (2, True)):
            await claim_one(store, lease=10)
            store.clock_offset += 11
            [lost] = await store.lost_leases(30, 10)
            await apply(store, expired(lost))
            task = await fetch(store, task_id)
            assert (task.state, task.error, task.attempts) == (TaskState.FAILED, "the lease ran out", attempt)
            assert (task.completed_at is not None) == final
            assert (task.worker_id, task.locked_until) == (None, None)
        assert await claim(store) == []

    async def test_a_batch_settles_each_task_its_own_way(self, store: Store) -> None:
        await submit_several(store, 6, max_retries=3)
        claims = await claim(store, 5)
        unclaimed = [task for task in (await store.page(Filter(), limit=10)).tasks if task.state == TaskState.PENDING]
        changes = [
            completed(claims[0], "zero"),
            failed(claims[1], "one"),
            cancelled(unclaimed[0]),
            released(claims[2]),
            completed(claims[3], "three"),
            failed(claims[4], "four", final=True),
        ]
        assert await store.settle(changes) == [WriteResult.APPLIED] * 6
        tasks = [await fetch(store, change.id) for change in changes]
        states = ["completed", "failed", "cancelled", "pending", "completed", "failed"]
        assert [task.state for task in tasks] == states
        assert [task.result for task in tasks] == [{"value": "zero"}, None, None, None, {"value": "three"}, None]
        assert [task.error for task in tasks] == [None, "one", None, None, None, "four"]
        assert [task.completed_at is not None for task in tasks] == [True, False, True, False, True, True]

    async def test_hundreds_settle_in_one_batch_in_any_order(self, store: Store) -> None:
        await submit_several(store, 600)
        claims = await claim(store, 600)
        changes = [completed(claimed, number) for number, claimed in enumerate(claims)][::-1]
        await apply(store, *changes)
        for number in (0, 299, 599):
            assert (await fetch(store, claims[number].id)).result == {"value": number}

    async def test_of_two_claims_of_one_task_in_a_batch_the_later_one_is_told_that_it_was_accepted(
        self, store: Store
    ) -> None:
        """A worker whose lease was lost and who got the same task again has two outcomes to tell of."""
        task_id = await submit(store)
        stale = await claim_one(store)
        await apply(store, expired(await fetch(store, task_id)))
        fresh = await claim_one(store)
        write_results = await store.settle([completed(stale, "stale"), completed(fresh, "fresh")])
        assert write_results == [WriteResult.STALE, WriteResult.APPLIED]
        assert (await fetch(store, task_id)).result == {"value": "fresh"}

    async def test_an_empty_batch_settles_nothing(self, store: Store) -> None:
        assert await store.settle([]) == []
