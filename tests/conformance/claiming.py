"""Claims: which tasks, how many, in which order, and what a claim does to the row."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tasklib.core.lifecycle import Phase
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import ControlChange
from tests.conformance.builders import (
    WORK,
    WORKER_A,
    WORKER_B,
    OpenStore,
    apply,
    claim,
    claim_one,
    failed,
    fetch,
    in_phase,
    new_task,
    next_id,
    submit,
    submit_several,
)


class Claiming:
    async def test_a_claim_marks_the_task_running_under_the_worker(self, store: Store) -> None:
        before = await fetch(store, await submit(store))
        start = await store.now()
        await claim_one(store, worker=WORKER_A, lease=90)
        end = await store.now()
        task = await fetch(store, before.id)
        assert (task.state, task.worker_id) == (TaskState.RUNNING, WORKER_A)
        assert task.started_at is not None
        assert task.locked_until is not None
        assert start <= task.started_at <= end
        assert start <= task.updated_at <= end
        assert start + timedelta(seconds=90) - _GRAIN <= task.locked_until <= end + timedelta(seconds=90) + _GRAIN
        assert (task.version, task.attempts, task.retry_count) == (before.version + 1, 1, 0)
        assert (task.completed_at, task.next_retry_at) == (None, None)
        assert (task.created_at, task.scheduled_at) == (before.created_at, before.scheduled_at)

    async def test_a_claim_holds_all_that_is_needed_to_run(self, store: Store) -> None:
        policy = RetryPolicy(base=2.0)
        task_id = await submit(
            store, payload={"a": 1}, max_retries=5, timeout_seconds=9, tags={"t": 1}, retry_policy=policy, trace="trace"
        )
        claim = await claim_one(store)
        task = await fetch(store, task_id)
        assert (claim.id, claim.name, claim.version, claim.worker_id) == (task_id, WORK, task.version, WORKER_A)
        assert (claim.retry_count, claim.attempt, claim.max_retries, claim.timeout_seconds) == (0, 1, 5, 9)
        assert (claim.started_at, claim.trace, claim.no_prefetch) == (task.started_at, "trace", False)
        assert claim.retry_policy is not None
        assert RetryPolicy.from_json(claim.retry_policy) == policy

    async def test_the_order_is_priority_then_first_come(self, store: Store) -> None:
        await submit_several(store, 3, "a", priority=0)
        store.clock_offset += 1
        await submit_several(store, 2, "b", priority=10)
        store.clock_offset += 1
        await submit_several(store, 2, "a", priority=10)
        store.clock_offset += 1
        await submit_several(store, 2, "b", priority=0)
        await submit_several(store, 1, "b", priority=-5)
        claims = await claim(store, 20, names=["a", "b"])
        assert "".join(claim.name for claim in claims) == "bbaaaaabbb"
        tasks = [await fetch(store, claim.id) for claim in claims]
        assert tasks == sorted(tasks, key=lambda task: (-task.priority, task.created_at, task.id))

    @pytest.mark.parametrize("limit", [None, 10])
    async def test_the_order_holds_when_the_clock_went_back(self, store: Store, limit: int | None) -> None:
        """What was due, and is not any more, does not stand before others of its type."""
        if limit is not None:
            await store.control(ControlChange(name="a", operator_rate=limit))
        first, second = await submit(store, "a"), await submit(store, "b")
        store.clock_offset += 1000
        later = await submit(store, "a", priority=1)
        store.clock_offset -= 1000
        claims = [await claim(store, names=["a", "b"]) for _ in range(3)]
        assert [[claimed.id for claimed in each] for each in claims] == [[first], [second], []]
        store.clock_offset += 1000
        assert [claimed.id for claimed in await claim(store, names=["a", "b"])] == [later]

    async def test_the_order_holds_over_several_claims(self, store: Store) -> None:
        names = ["a", "b", "c"]
        ids = []
        for number in range(12):
            ids.append(await submit(store, names[number % 3]))
            store.clock_offset += 1
        taken = [claimed.id for _ in range(4) for claimed in await claim(store, 3, names=names)]
        assert taken == ids

    async def test_created_at_goes_before_the_id(self, store: Store) -> None:
        """Ids are made by machines whose clocks differ; the store's clock says who came first."""
        for names in (["a", "a"], ["b", "c"]):
            for slots in (2, 1):
                earlier, later = next_id(), next_id()
                await submit(store, names[0], id=later)
                store.clock_offset += 1
                await submit(store, names[1], id=earlier)
                claims = await claim(store, slots, names=names) + await claim(store, 2 - slots, names=names)
                assert [claimed.id for claimed in claims] == [later, earlier]

    async def test_the_id_decides_among_those_created_at_once(self, store: Store) -> None:
        await store.insert([new_task() for _ in range(10)][::-1])
        claims = await claim(store, 10)
        tasks = [await fetch(store, claimed.id) for claimed in claims]
        assert tasks == sorted(tasks, key=lambda task: (task.created_at, task.id))

    async def test_a_retry_keeps_its_place_by_the_time_it_was_created(self, store: Store) -> None:
        first = await submit(store)
        await apply(store, failed(await claim_one(store), delay=0))
        store.clock_offset += 1
        second = await submit(store)
        assert [claimed.id for claimed in await claim(store, 2)] == [first, second]

    async def test_a_late_due_time_does_not_change_the_order(self, store: Store) -> None:
        delayed = await submit(store, delay_seconds=30)
        store.clock_offset += 1
        plain = await submit(store)
        store.clock_offset += 60
        assert [claimed.id for claimed in await claim(store, 2)] == [delayed, plain]

    async def test_only_the_names_asked_for_are_claimed(self, store: Store) -> None:
        await submit(store, "a", priority=100)
        b = await submit(store, "b")
        await submit(store, "B", priority=100)
        assert [claimed.id for claimed in await claim(store, 10, names=["b", "unknown"])] == [b]
        assert await claim(store, 10, names=["b", "unknown"]) == []
        assert await claim(store, 10, names=[]) == []

    async def test_hundreds_of_names_are_one_claim(self, store: Store) -> None:
        names = [f"name-{number}" for number in range(300)]
        ids = [entry.id for entry in await store.insert([new_task(name) for name in names])]
        assert [claimed.id for claimed in await claim(store, 400, names=names[::-1])] == ids

    async def test_a_name_asked_for_twice_counts_once(self, store: Store) -> None:
        await submit_several(store, 4)
        claims = await claim(store, 10, names=[WORK, WORK])
        assert len({claimed.id for claimed in claims}) == len(claims) == 4

    async def test_never_more_than_the_slots(self, store: Store) -> None:
        await submit_several(store, 30, "a")
        await submit_several(store, 30, "b")
        assert len(await claim(store, 7, names=["a", "b"])) == 7
        assert await claim(store, 0, names=["a", "b"]) == []
        assert len(await claim(store, 100, names=["a", "b"])) == 53

    async def test_only_pending_and_due_retries_are_claimed(self, store: Store) -> None:
        tasks = [await in_phase(store, phase) for phase in Phase]
        names = [task.name for task in tasks]
        claims = await claim(store, 20, names=names, worker=WORKER_B)
        assert [claimed.id for claimed in claims] == [tasks[0].id]
        unclaimed = [await fetch(store, task.id) for task in tasks[1:]]
        assert unclaimed == tasks[1:]

    async def test_a_task_is_claimed_once_however_many_ask_at_once(self, store: Store, open_store: OpenStore) -> None:
        stores = [store, *[await open_store() for _ in range(3)]]
        ids = await submit_several(store, 100)
        taken: list[object] = []
        for _ in range(100):
            rounds = await asyncio.gather(
                *(claim(stores[turn % 4], 9, prefetch=2, worker=f"worker-{turn}") for turn in range(8))
            )
            taken += [claimed.id for claims in rounds for claimed in claims]
            assert all(len(claims) <= 11 for claims in rounds)
            if not any(rounds):
                break
        assert sorted(map(str, taken)) == sorted(map(str, ids))

    async def test_held_tells_all_that_runs_under_a_worker(self, store: Store, open_store: OpenStore) -> None:
        await submit_several(store, 3, "a", payload={"n": 1}, max_retries=0)
        await submit_several(store, 3, "b", tags={"t": 1}, timeout_seconds=4)
        mine = await claim(store, 4, names=["a", "b"], worker=WORKER_A)
        await claim(store, 1, names=["a", "b"], worker=WORKER_B)
        other = await open_store()
        assert sorted(await other.claims_of_worker(WORKER_A), key=lambda claimed: claimed.id) == sorted(
            mine, key=lambda claimed: claimed.id
        )
        await apply(store, *[failed(claimed) for claimed in mine[:3]])
        assert await store.claims_of_worker(WORKER_A) == mine[3:]
        assert await store.claims_of_worker("nobody") == []


_GRAIN = timedelta(milliseconds=1)
"""Clocks of stores are at least this fine."""
