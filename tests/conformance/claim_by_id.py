"""Taking one task by its id: the same rules as for a claim, under the same controls, for that task alone."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from uuid import UUID

import pytest

from tasklib.core.lifecycle import Phase
from tasklib.core.task import Claim
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
    completed,
    failed,
    fetch,
    in_phase,
    next_id,
    submit,
    submit_several,
)

SLOW = 0.02


async def take(store: Store, task_id: UUID, *, worker: str = WORKER_A) -> Claim | None:
    """At the version it has now."""
    return await store.claim_by_id(task_id, (await fetch(store, task_id)).version, worker, 600)


class Taking:
    async def test_a_task_that_waits_can_be_taken(self, store: Store) -> None:
        await submit(store, priority=9)
        task_id = await submit(store, payload={"n": 1}, tags={"a": 1}, timeout_seconds=7, max_retries=2)
        taken = await store.claim_by_id(task_id, (await fetch(store, task_id)).version, WORKER_A, 60)
        assert taken is not None
        task = await fetch(store, task_id)
        assert (task.state, task.worker_id, task.version, task.attempts) == ("running", WORKER_A, taken.version, 1)
        assert task.locked_until is not None
        assert task.started_at is not None
        assert timedelta(seconds=59) < task.locked_until - task.started_at <= timedelta(seconds=61)
        assert await store.claims_of_worker(WORKER_A) == [taken], "a claim like any other"
        assert (taken.id, taken.worker_id, taken.attempt, taken.max_retries) == (task_id, WORKER_A, 1, 2)
        assert (taken.name, taken.timeout_seconds, taken.no_prefetch) == (WORK, 7, False)

    async def test_what_was_taken_is_not_claimed_again_and_can_be_settled(self, store: Store) -> None:
        task_id = await submit(store)
        taken = await take(store, task_id)
        assert taken is not None
        assert await claim(store, 5) == []
        await apply(store, completed(taken, "done"))
        assert (await fetch(store, task_id)).result == {"value": "done"}

    async def test_a_retry_that_is_due_can_be_taken(self, store: Store) -> None:
        task_id = await submit(store)
        await apply(store, failed(await claim_one(store), delay=0))
        taken = await take(store, task_id, worker=WORKER_B)
        assert taken is not None
        assert (taken.attempt, taken.worker_id) == (2, WORKER_B)
        task = await fetch(store, task_id)
        assert (task.next_retry_at, task.error) == (None, "boom")

    async def test_another_version_is_not_taken(self, store: Store) -> None:
        task_id = await submit(store)
        task = await fetch(store, task_id)
        for version in (task.version - 1, task.version + 1):
            assert await store.claim_by_id(task_id, version, WORKER_A, 60) is None
        assert await fetch(store, task_id) == task

    @pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED, Phase.WAITING])
    async def test_what_does_not_wait_or_is_not_due_is_not_taken(self, store: Store, phase: Phase) -> None:
        before = await in_phase(store, phase)
        assert await store.claim_by_id(before.id, before.version, WORKER_B, 60) is None
        assert await fetch(store, before.id) == before

    async def test_what_is_not_due_is_taken_when_it_is(self, store: Store) -> None:
        """Also before anything was promoted."""
        task_id = await submit(store, delay_seconds=50)
        assert await take(store, task_id) is None
        store.clock_offset += 51
        assert await take(store, task_id) is not None

    async def test_a_task_that_is_not_there_is_not_taken(self, store: Store) -> None:
        assert await store.claim_by_id(next_id(), 0, WORKER_A, 60) is None

    async def test_one_of_twenty_takes_it(self, store: Store, open_store: OpenStore) -> None:
        stores = [store, *[await open_store() for _ in range(3)]]
        task_id = await submit(store)
        version = (await fetch(store, task_id)).version
        taken = await asyncio.gather(*(stores[n % 4].claim_by_id(task_id, version, f"w{n}", 60) for n in range(20)))
        [winner] = [each for each in taken if each is not None]
        task = await fetch(store, task_id)
        assert (task.worker_id, task.version, task.attempts) == (winner.worker_id, winner.version, 1)

    async def test_it_is_taken_or_claimed_but_not_both(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        for _ in range(10):
            task_id = await submit(store)
            version = (await fetch(store, task_id)).version
            taken, claimed = await asyncio.gather(
                store.claim_by_id(task_id, version, WORKER_A, 60), claim(other, 1, worker=WORKER_B)
            )
            winners = [each for each in (taken, *claimed) if each is not None]
            assert [each.worker_id for each in winners] == [(await fetch(store, task_id)).worker_id]
            await apply(store, completed(winners[0]))

    @pytest.mark.parametrize("name", [WORK, ""])
    async def test_nothing_is_taken_under_a_pause(self, store: Store, open_store: OpenStore, name: str) -> None:
        other = await open_store()
        task_id = await submit(store)
        before = await fetch(store, task_id)
        await store.control(ControlChange(name=name, paused=True))
        assert await take(other, task_id) is None
        assert await fetch(store, task_id) == before
        await store.control(ControlChange(name=name, paused=False))
        assert await take(other, task_id) is not None

    @pytest.mark.parametrize("name", [WORK, ""])
    async def test_a_limited_type_under_a_pause_is_not_taken(self, store: Store, name: str) -> None:
        task_id = await submit(store)
        await store.control(ControlChange(name=name, paused=True, operator_rate=5, concurrency=5))
        assert await take(store, task_id) is None
        await store.control(ControlChange(name=name, paused=False))
        assert await take(store, task_id) is not None

    @pytest.mark.parametrize("name", [WORK, ""])
    async def test_a_rate_holds_for_taking_and_claiming_together(self, store: Store, name: str) -> None:
        await store.control(ControlChange(name=name, operator_rate=SLOW))
        ids = await submit_several(store, 5)
        assert await take(store, ids[4]) is not None, "the bucket was full"
        assert await take(store, ids[3]) is None
        assert await claim(store, 5) == []
        store.clock_offset += 55
        assert await take(store, ids[3]) is not None
        assert await take(store, ids[2]) is None
        store.clock_offset += 55
        assert len(await claim(store, 5)) == 1
        assert await take(store, ids[2]) is None

    @pytest.mark.parametrize("name", [WORK, ""])
    async def test_a_concurrency_limit_holds_for_taking_and_claiming_together(self, store: Store, name: str) -> None:
        await store.control(ControlChange(name=name, concurrency=2))
        ids = await submit_several(store, 5)
        first = await take(store, ids[4])
        assert first is not None
        assert len(await claim(store, 5)) == 1
        assert await take(store, ids[3]) is None
        await apply(store, completed(first))
        assert await take(store, ids[3]) is not None
        assert await take(store, ids[2]) is None
        assert await claim(store, 5) == []

    async def test_a_take_that_fails_uses_no_token(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=SLOW))
        ids = await submit_several(store, 2)
        version = (await fetch(store, ids[0])).version
        assert await store.claim_by_id(ids[0], version + 1, WORKER_A, 60) is None
        assert await store.claim_by_id(ids[0], version, WORKER_A, 60) is not None

    async def test_other_types_are_not_affected(self, store: Store) -> None:
        await store.control(ControlChange(name="narrow", concurrency=0, operator_rate=SLOW))
        assert await take(store, await submit(store, "narrow")) is None
        for _ in range(3):
            assert await take(store, await submit(store)) is not None

    async def test_limits_are_exact_over_several_stores_that_take(self, store: Store, open_store: OpenStore) -> None:
        await store.control(ControlChange(name="counted", concurrency=5))
        await store.control(ControlChange(name="rated", operator_rate=7))
        stores = [store, *[await open_store() for _ in range(3)]]
        for name, most in (("counted", 5), ("rated", 7)):
            ids = await submit_several(store, 24, name)
            version = (await fetch(store, ids[0])).version
            takes = (stores[n % 4].claim_by_id(task_id, version, f"w{n}", 600) for n, task_id in enumerate(ids))
            claims = (claim(stores[n], 2, names=[name], worker=f"c{n}") for n in range(4))
            began = time.monotonic()
            taken, claimed = await asyncio.gather(asyncio.gather(*takes), asyncio.gather(*claims))
            number = sum(each is not None for each in taken) + sum(map(len, claimed))
            meanwhile = 1 + 7 * (time.monotonic() - began) if name == "rated" else 0
            assert most <= number <= most + meanwhile, "the limit, and tokens that came in meanwhile"
