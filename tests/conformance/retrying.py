"""An operator's retry: all attempts anew, due at once, the history kept."""

from __future__ import annotations

from tasklib.core import decide
from tasklib.core.lifecycle import Phase
from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import apply, claim_one, completed, failed, fetch, in_phase, submit


class Retrying:
    async def test_a_final_failure_starts_anew(self, store: Store) -> None:
        await submit(store, max_retries=1, priority=3)
        await apply(store, failed(await claim_one(store), "one"))
        await apply(store, failed(await claim_one(store), "two"))
        [task] = (await store.page(Filter(states=["failed"]), limit=5)).tasks
        start = await store.now()
        await apply(store, decide.retry_by_hand(task))
        end = await store.now()
        after = await fetch(store, task.id)
        assert (after.state, after.retry_count, after.attempts) == (TaskState.PENDING, 0, 0)
        assert (after.completed_at, after.next_retry_at, after.worker_id) == (None, None, None)
        assert start <= after.scheduled_at <= end
        assert (after.version, after.error, after.history) == (task.version + 1, "two", task.history)
        assert (after.priority, after.created_at) == (3, task.created_at)

    async def test_it_has_all_its_attempts_again(self, store: Store) -> None:
        task = await in_phase(store, Phase.FAILED, max_retries=1)
        await apply(store, decide.retry_by_hand(task))
        for attempt in (1, 2):
            running = await claim_one(store, task.name)
            assert (running.id, running.attempt) == (task.id, attempt)
            await apply(store, failed(running))
        assert (await fetch(store, task.id)).completed_at is not None

    async def test_a_waiting_retry_can_be_brought_forward(self, store: Store) -> None:
        task = await in_phase(store, Phase.WAITING)
        await apply(store, decide.retry_by_hand(task))
        running = await claim_one(store, task.name)
        assert (running.id, running.attempt) == (task.id, 1)
        await apply(store, completed(running))
        after = await fetch(store, task.id)
        assert (after.state, after.error, len(after.history)) == (TaskState.COMPLETED, None, 1)

    async def test_a_result_after_a_retry_is_the_new_attempts(self, store: Store) -> None:
        task = await in_phase(store, Phase.FAILED)
        await apply(store, decide.retry_by_hand(task))
        await apply(store, completed(await claim_one(store, task.name), "second life"))
        assert (await fetch(store, task.id)).result == {"value": "second life"}
