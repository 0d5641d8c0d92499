"""What may be taken to wait inside a worker: nothing that the worker's death would wear out, nothing limited."""

from __future__ import annotations

from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import ControlChange
from tests.conformance.builders import (
    WORK,
    WORKER_A,
    apply,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    new_task,
    released,
    submit,
    submit_several,
)


class Prefetch:
    async def test_prefetch_comes_on_top_of_the_slots(self, store: Store) -> None:
        await submit_several(store, 10)
        assert len(await claim(store, 2, prefetch=3)) == 5
        assert len(await claim(store, 2, prefetch=30)) == 5

    async def test_a_last_attempt_is_never_prefetched(self, store: Store) -> None:
        ids = await submit_several(store, 6, max_retries=0)
        claims = await claim(store, 2, prefetch=4)
        assert [claimed.id for claimed in claims] == ids[:2]
        assert all(claimed.no_prefetch for claimed in claims)

    async def test_what_may_be_prefetched_is_taken_past_what_may_not(self, store: Store) -> None:
        retries = [3, 3, 0, 3, 0, 3]
        inserted = await store.insert([new_task(max_retries=number) for number in retries])
        before = [await fetch(store, inserted[place].id) for place in (2, 4)]
        claims = await claim(store, 2, prefetch=4)
        assert [claimed.id for claimed in claims] == [inserted[place].id for place in (0, 1, 3, 5)]
        assert not any(claimed.no_prefetch for claimed in claims)
        after = [await fetch(store, inserted[place].id) for place in (2, 4)]
        assert after == before, "what was passed over is untouched"

    async def test_a_last_attempt_gets_its_slot_in_its_turn(self, store: Store) -> None:
        inserted = await store.insert([new_task(max_retries=number) for number in (0, 3, 3)])
        claims = await claim(store, 1, prefetch=1)
        assert [(claimed.id, claimed.no_prefetch) for claimed in claims] == [
            (inserted[0].id, True),
            (inserted[1].id, False),
        ]

    async def test_a_task_comes_to_its_last_attempt_by_failing(self, store: Store) -> None:
        await submit(store, "a", max_retries=2)
        for attempt, alone in ((1, False), (2, False), (3, True)):
            claimed = await claim_one(store, "a")
            assert (claimed.attempt, claimed.no_prefetch) == (attempt, alone)
            await apply(store, failed(claimed))

    async def test_unlimited_retries_have_no_last_attempt(self, store: Store) -> None:
        await submit(store, max_retries=-1)
        for _ in range(5):
            claimed = await claim_one(store)
            assert not claimed.no_prefetch
            await apply(store, failed(claimed))

    async def test_a_task_that_lost_its_worker_is_never_prefetched(self, store: Store) -> None:
        ids = await submit_several(store, 3, max_retries=-1)
        claims = await claim(store, 3, lease=10)
        store.clock_offset += 11
        await apply(store, *[expired(await fetch(store, claimed.id)) for claimed in claims])
        [first] = await claim(store, 1, prefetch=5)
        assert (first.id, first.no_prefetch, first.attempt) == (ids[0], True, 2)
        [second] = await claim(store, 1, prefetch=5)
        assert second.no_prefetch

    async def test_a_task_that_then_failed_by_itself_is_no_longer_a_suspect(self, store: Store) -> None:
        task_id = await submit(store, max_retries=-1)
        await claim(store, lease=10)
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, task_id)))
        suspect = await claim_one(store)
        await apply(store, failed(suspect, "its own fault"))
        assert (suspect.no_prefetch, (await claim_one(store)).no_prefetch) == (True, False)

    async def test_a_task_that_lost_two_workers_starts_apart(self, store: Store) -> None:
        task_id = await submit(store, max_retries=-1)
        for apart in (False, False, True, True):
            claimed = await claim_one(store, lease=10)
            assert (claimed.isolated, [each.isolated for each in await store.claims_of_worker(WORKER_A)]) == (
                apart,
                [apart],
            )
            store.clock_offset += 11
            await apply(store, expired(await fetch(store, task_id)))
        suspect = await store.claim_by_id(task_id, (await fetch(store, task_id)).version, WORKER_A, 10)
        assert suspect is not None
        assert suspect.isolated
        await apply(store, released(suspect))
        suspect = await claim_one(store)
        assert suspect.isolated, "giving it back clears nothing"
        await apply(store, failed(suspect, "its own fault"))
        assert not (await claim_one(store)).isolated

    async def test_a_last_attempt_after_a_lost_worker_starts_apart(self, store: Store) -> None:
        task_id = await submit(store, max_retries=1)
        await claim_one(store, lease=10)
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, task_id)))
        assert (await claim_one(store)).isolated
        await submit(store, "b", max_retries=1)
        await apply(store, failed(await claim_one(store, "b")))
        last = await claim_one(store, "b")
        assert (last.no_prefetch, last.isolated) == (True, False), "it was not lost"

    async def test_a_task_apart_is_known_under_limits_too(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=50.0))
        task_id = await submit(store, max_retries=1)
        assert not (await claim_one(store, lease=10)).isolated
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, task_id)))
        assert (await claim_one(store)).isolated

    async def test_a_type_with_a_concurrency_limit_is_not_prefetched(self, store: Store) -> None:
        await store.control(ControlChange(name="limited", concurrency=100))
        await submit_several(store, 5, "limited")
        assert len(await claim(store, 1, names=["limited"], prefetch=4)) == 1
        await submit_several(store, 5, "free")
        names = [claimed.name for claimed in await claim(store, 1, names=["limited", "free"], prefetch=20)]
        assert names.count("limited") <= 1
        assert names.count("free") == 5

    async def test_a_type_with_a_rate_limit_is_not_prefetched(self, store: Store) -> None:
        await store.control(ControlChange(name="limited", operator_rate=50.0))
        await submit_several(store, 5, "limited")
        assert len(await claim(store, 1, names=["limited"], prefetch=4)) == 1

    async def test_at_most_so_many_of_a_name(self, store: Store) -> None:
        await submit_several(store, 5, "a", priority=9)
        await submit_several(store, 5, "b")
        claims = await claim(store, 10, names=["a", "b"], per_name={"a": 2})
        assert "".join(claimed.name for claimed in claims) == "aabbbbb"
        assert await claim(store, 10, names=["a"], per_name={"a": 0}) == []
        claims = await claim(store, 1, names=["a"], prefetch=5, per_name={"a": 2})
        assert len(claims) == 2

    async def test_a_cap_of_a_name_that_is_not_asked_for_changes_nothing(self, store: Store) -> None:
        task_id = await submit(store)
        await submit(store, "other")
        [claimed] = await claim(store, 5, per_name={"other": 3})
        assert (claimed.id, claimed.name) == (task_id, WORK)

    async def test_what_was_prefetched_can_be_completed_as_any_other(self, store: Store) -> None:
        await submit_several(store, 4)
        claims = await claim(store, 1, prefetch=3)
        await apply(store, *[completed(claimed) for claimed in claims])
        assert {(await fetch(store, claimed.id)).state for claimed in claims} == {TaskState.COMPLETED}
