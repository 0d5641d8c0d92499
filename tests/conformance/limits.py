"""Limits for the whole fleet: starts a second, and running at once. Exact, and free for all types that have none."""

from __future__ import annotations

import asyncio

from tasklib.core.task import Claim
from tasklib.stores.protocol import Store
from tasklib.stores.values import ControlChange
from tests.conformance.builders import (
    WORK,
    OpenStore,
    apply,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    look,
    released,
    submit,
    submit_several,
)

SLOW = 0.02
"""One start in 50 seconds: the time a test itself takes is nothing beside it."""


class RateLimits:
    async def test_the_bucket_holds_as_much_as_the_rate(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=5))
        await submit_several(store, 30)
        assert len(await claim(store, 20)) == 5
        store.clock_offset += 1000
        assert len(await claim(store, 20)) == 5, "what was not used does not add up beyond the bucket"

    async def test_a_slow_rate_lets_one_start(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=SLOW))
        await submit_several(store, 10)
        assert len(await claim(store, 5)) == 1
        assert await claim(store, 5) == []

    async def test_the_bucket_fills_with_time(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=SLOW))
        await submit_several(store, 10)
        await claim(store, 5)
        store.clock_offset += 40
        assert await claim(store, 5) == []
        store.clock_offset += 15
        assert len(await claim(store, 5)) == 1
        assert await claim(store, 5) == []

    async def test_what_is_less_than_a_whole_start_is_not_lost(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=2))
        await submit_several(store, 50)
        assert len(await claim(store, 20)) == 2
        await store.control(ControlChange(name=WORK, operator_rate=SLOW))
        await claim(store, 20)
        for _ in range(7):
            store.clock_offset += 7  # looking again and again must not throw the fractions away
            assert await claim(store, 20) == []
        store.clock_offset += 7
        assert len(await claim(store, 20)) == 1

    async def test_a_token_that_lacks_less_than_a_millionth_is_one(self, store: Store) -> None:
        """Sums of fractions never quite reach it. A rate so slow that the time a test takes is nothing beside it."""
        await store.control(ControlChange(name=WORK, operator_rate=1e-6))
        await submit_several(store, 3)
        assert len(await claim(store, 3)) == 1
        store.clock_offset += 1_000_000 - 100
        assert await claim(store, 3) == []
        store.clock_offset += 99.5
        assert len(await claim(store, 3)) == 1

    async def test_it_holds_over_several_stores(self, store: Store, open_store: OpenStore) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=7))
        stores = [store, *[await open_store() for _ in range(3)]]
        await submit_several(store, 60)
        start = await store.now()
        rounds = await asyncio.gather(*(claim(stores[turn % 4], 10, worker=f"w{turn}") for turn in range(8)))
        seconds = (await store.now() - start).total_seconds()
        taken = sum(map(len, rounds))
        assert 7 <= taken <= 7 + 7 * seconds, "the bucket, and what came in while they were claiming"

    async def test_a_deferred_task_uses_no_attempt(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=SLOW))
        ids = await submit_several(store, 3)
        before = [await fetch(store, task_id) for task_id in ids[1:]]
        for _ in range(3):
            await claim(store, 3)
        assert [await fetch(store, task_id) for task_id in ids[1:]] == before

    async def test_types_without_a_limit_are_not_affected(self, store: Store) -> None:
        await store.control(ControlChange(name="slow", operator_rate=SLOW))
        await submit_several(store, 10, "slow", priority=10)
        await submit_several(store, 10, "free")
        names = [claimed.name for claimed in await claim(store, 20, names=["slow", "free"])]
        assert names == ["slow", *["free"] * 10]

    async def test_the_hint_says_when_the_next_may_start(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=SLOW))
        await submit_several(store, 3)
        await claim(store, 3)
        hint = (await look(store, 3)).next_due_in
        assert hint is not None
        assert 20 < hint <= 51

    async def test_one_limit_for_all_types(self, store: Store) -> None:
        await store.control(ControlChange(operator_rate=SLOW))
        await submit_several(store, 5, "a")
        await submit_several(store, 5, "b")
        assert len(await claim(store, 10, names=["a", "b"])) == 1
        assert await claim(store, 10, names=["a"]) == []
        assert await claim(store, 10, names=["b"]) == []
        store.clock_offset += 55
        assert len(await claim(store, 10, names=["b"])) == 1
        await store.control(ControlChange(operator_rate=3))
        assert len(await claim(store, 10, names=["a", "b"])) == 3

    async def test_the_codes_default_is_a_limit_too(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, default_rate=2))
        await submit_several(store, 20)
        assert len(await claim(store, 10)) == 2
        await store.control(ControlChange(name=WORK, operator_rate=4))
        assert len(await claim(store, 10)) <= 4
        await store.control(ControlChange(name=WORK, operator_rate=0))
        assert len(await claim(store, 50)) >= 14, "0: no limit, whatever the code says"

    async def test_a_default_that_is_set_again_does_not_fill_the_bucket(
        self, store: Store, open_store: OpenStore
    ) -> None:
        """Every process sets its defaults when it starts: a fleet that restarts must not start more for it."""
        await store.control(ControlChange(name=WORK, default_rate=SLOW))
        await submit_several(store, 5)
        assert len(await claim(store, 5)) == 1
        other = await open_store()
        await other.control(ControlChange(name=WORK, default_rate=SLOW))
        assert await claim(other, 5) == []
        assert await claim(store, 5) == []

    async def test_a_limit_that_is_cleared_is_gone(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, operator_rate=SLOW))
        await submit_several(store, 10)
        assert len(await claim(store, 10)) == 1
        await store.control(ControlChange(name=WORK, operator_rate=None))
        assert len(await claim(store, 10)) == 9


class ConcurrencyLimits:
    async def test_never_more_at_once(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, concurrency=3))
        await submit_several(store, 10)
        claims = await claim(store, 10)
        assert len(claims) == 3
        assert await claim(store, 10) == []

    async def test_each_end_makes_room_for_one(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, concurrency=4))
        await submit_several(store, 10, max_retries=0)
        first, second, third, _ = await claim(store, 10)
        await apply(store, completed(first))
        assert len(await claim(store, 10)) == 1
        await apply(store, failed(second))
        await apply(store, released(third))
        assert len(await claim(store, 10)) == 2

    async def test_room_is_not_lost_with_a_worker(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, concurrency=1))
        await submit_several(store, 2, max_retries=0)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        assert await claim(store) == []
        await apply(store, expired(await fetch(store, running.id)))
        assert len(await claim(store, 5)) == 1

    async def test_it_is_exact_over_several_stores(self, store: Store, open_store: OpenStore) -> None:
        await store.control(ControlChange(name=WORK, concurrency=5))
        stores = [store, *[await open_store() for _ in range(3)]]
        await submit_several(store, 60)
        running: list[Claim] = []
        for finished in (0, 2, 5, 1):
            await apply(store, *[completed(running.pop()) for _ in range(finished)]) if finished else None
            rounds = await asyncio.gather(*(claim(stores[turn % 4], 10, worker=f"w{turn}") for turn in range(8)))
            running += [claimed for claims in rounds for claimed in claims]
            assert len(running) == 5
        assert (await store.stats())[WORK].running == 5

    async def test_one_room_for_all_types_is_exact_over_several_stores(
        self, store: Store, open_store: OpenStore
    ) -> None:
        """They do not even fight for the same tasks: only the limit itself can keep them apart."""
        await store.control(ControlChange(concurrency=1))
        stores = [store, *[await open_store() for _ in range(3)]]
        names = [f"type-{number}" for number in range(4)]
        for name in names:
            await submit_several(store, 5, name)
        for each in stores:
            await claim(each, names=["nothing"])
        for _ in range(5):
            rounds = await asyncio.gather(
                *(claim(each, names=[name], worker=name) for each, name in zip(stores, names, strict=True))
            )
            running = [claimed for claims in rounds for claimed in claims]
            assert len(running) == 1
            await apply(store, completed(running[0]))

    async def test_a_task_that_waits_for_room_uses_no_attempt(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, concurrency=1))
        ids = await submit_several(store, 2)
        before = await fetch(store, ids[1])
        for _ in range(3):
            await claim(store, 2)
        assert await fetch(store, ids[1]) == before

    async def test_types_with_room_of_their_own_are_not_affected(self, store: Store) -> None:
        await store.control(ControlChange(name="narrow", concurrency=2))
        await submit_several(store, 10, "narrow", priority=10)
        await submit_several(store, 10, "free")
        names = [claimed.name for claimed in await claim(store, 20, names=["narrow", "free"])]
        assert names == ["narrow"] * 2 + ["free"] * 10

    async def test_a_type_with_room_waits_for_its_turn_among_the_others(self, store: Store) -> None:
        await store.control(ControlChange(name="narrow", concurrency=2))
        early, narrow, late = [await submit_several(store, 3, name) for name in ("free", "narrow", "free")]
        claims = [await claim(store, slots, names=["narrow", "free"]) for slots in (2, 3, 3)]
        ids = [[claimed.id for claimed in each] for each in claims]
        assert ids == [early[:2], [early[2], *narrow[:2]], late]

    async def test_a_type_with_room_is_next_when_the_worker_has_enough_of_another(self, store: Store) -> None:
        await store.control(ControlChange(name="narrow", concurrency=2))
        free, narrow = [await submit_several(store, 3, name) for name in ("free", "narrow")]
        claims = await claim(store, 3, names=["narrow", "free"], per_name={"free": 1})
        assert [claimed.id for claimed in claims] == [free[0], *narrow[:2]]

    async def test_one_room_for_all_types(self, store: Store) -> None:
        await store.control(ControlChange(concurrency=3))
        await submit_several(store, 5, "a")
        await submit_several(store, 5, "b")
        assert len(await claim(store, 10, names=["a"], per_name={"a": 2})) == 2
        assert len(await claim(store, 10, names=["a", "b"])) == 1
        assert await claim(store, 10, names=["a", "b"]) == []

    async def test_both_limits_hold_at_once(self, store: Store) -> None:
        await store.control(ControlChange(name="a", operator_rate=4, concurrency=3))
        await store.control(ControlChange(concurrency=5))
        await submit_several(store, 10, "a", priority=1)
        await submit_several(store, 10, "b")
        names = [claimed.name for claimed in await claim(store, 20, names=["a", "b"])]
        assert names == ["a"] * 3 + ["b"] * 2

    async def test_a_limit_of_nothing_lets_nothing_start(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, concurrency=0))
        await submit(store)
        assert await claim(store, 5) == []
        await store.control(ControlChange(name=WORK, concurrency=None))
        assert len(await claim(store, 5)) == 1

    async def test_a_limited_name_claims_in_order(self, store: Store) -> None:
        await store.control(ControlChange(name=WORK, concurrency=4))
        low = await submit(store, priority=-1)
        ids = await submit_several(store, 3)
        assert [claimed.id for claimed in await claim(store, 3)] == ids
        assert [claimed.id for claimed in await claim(store, 3)] == [low]
