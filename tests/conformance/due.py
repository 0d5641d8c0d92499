"""What is not due is not claimed, and is claimed as soon as it is due."""

from __future__ import annotations

from datetime import timedelta

from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tests.conformance.builders import (
    WORK,
    OpenStore,
    alike_tasks,
    apply,
    claim,
    claim_one,
    failed,
    fetch,
    look,
    new_task,
    submit,
    submit_several,
)


class DueTimes:
    async def test_a_delayed_task_is_claimed_when_it_is_due_and_not_before(self, store: Store) -> None:
        task_id = await submit(store, delay_seconds=100)
        before = await fetch(store, task_id)
        assert await claim(store) == []
        store.clock_offset += 80
        assert await claim(store) == []
        assert await fetch(store, task_id) == before, "looking changes nothing"
        store.clock_offset += 21
        claimed = await claim_one(store)
        assert (claimed.id, claimed.version) == (task_id, before.version + 1)

    async def test_run_at_is_claimed_when_it_is_due_and_not_before(self, store: Store) -> None:
        task_id = await submit(store, run_at=await store.now() + timedelta(days=30))
        store.clock_offset += 29 * 86400
        assert await claim(store) == []
        store.clock_offset += 86401
        assert [claimed.id for claimed in await claim(store)] == [task_id]

    async def test_a_retry_is_claimed_when_it_is_due_and_not_before(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, failed(await claim_one(store), delay=100))
        task = await fetch(store, task_id)
        assert task.next_retry_at is not None
        assert (task.state, task.waiting, task.due_at) == (TaskState.FAILED, True, task.next_retry_at)
        store.clock_offset += 80
        assert await claim(store) == []
        store.clock_offset += 21
        claimed = await claim_one(store)
        assert (claimed.id, claimed.attempt) == (task_id, 2)
        running = await fetch(store, task_id)
        assert (running.state, running.next_retry_at, running.attempts) == (TaskState.RUNNING, None, 2)

    async def test_every_store_finds_what_has_become_due(self, store: Store, open_store: OpenStore) -> None:
        await submit_several(store, 5, delay_seconds=100)
        other = await open_store()
        assert await claim(other, 10) == []
        other.clock_offset = store.clock_offset + 101
        assert len(await claim(other, 10)) == 5

    async def test_thousands_that_become_due_at_once_are_all_found(self, store: Store) -> None:
        await submit_several(store, 2500, delay_seconds=10)
        store.clock_offset += 11
        found = 0
        for _ in range(50):
            found += len(await claim(store, 200))
        assert found == 2500

    async def test_the_longest_delays_are_kept(self, store: Store) -> None:
        century = 100 * 366 * 86400.0
        task_id = await submit(store, delay_seconds=century)
        await submit(store)
        await apply(store, failed(await claim_one(store), delay=century))
        store.clock_offset += 86400 * 365
        assert await claim(store, 5) == []
        task = await fetch(store, task_id)
        assert abs((task.scheduled_at - task.created_at).total_seconds() - century) < 1
        store.clock_offset += century
        assert len(await claim(store, 5)) == 2

    async def test_a_delay_beyond_the_calendar_is_the_longest_delay(self, store: Store) -> None:
        century = 100 * 366 * 86400.0
        for tasks in (
            [new_task(delay_seconds=1e12)],
            [new_task(delay_seconds=1e300, key="far")],
            [new_task(delay_seconds=1e12), new_task(delay_seconds=5)],
            alike_tasks(3, delay_seconds=1e12),
        ):
            first, *_ = await store.insert(tasks)
            task = await fetch(store, first.id)
            assert abs((task.scheduled_at - task.created_at).total_seconds() - century) < 1
        assert await claim(store, 10) == []
        store.clock_offset += 6
        assert len(await claim(store, 10)) == 1

    async def test_the_hint_says_when_the_next_is_due(self, store: Store) -> None:
        assert (await look(store)).next_due_in is None
        await submit(store, delay_seconds=100)
        await submit(store, delay_seconds=50)
        hint = (await look(store)).next_due_in
        assert hint is not None
        assert 20 < hint <= 50
        store.clock_offset += 51
        claimed = await look(store, 5)
        assert len(claimed.claims) == 1
        assert claimed.next_due_in is not None
        assert 20 < claimed.next_due_in <= 49

    async def test_the_hint_counts_retries_too(self, store: Store) -> None:
        await submit(store)
        await apply(store, failed(await claim_one(store), delay=200))
        hint = (await look(store)).next_due_in
        assert hint is not None
        assert 170 < hint <= 200

    async def test_there_is_no_hint_when_nothing_waits(self, store: Store) -> None:
        await submit(store)
        assert (await look(store, 5, names=[WORK])).next_due_in is None
