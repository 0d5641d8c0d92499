"""Unique keys: one task of its type has one, until it starts, until it ends, or for a time."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import pytest

from tasklib.core.decide import retry_by_hand
from tasklib.core.task import Task
from tasklib.core.unique import Conflict, Unique, Until, debounce, throttle
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter, Inserted
from tests.conformance.builders import (
    OpenStore,
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    new_task,
    stopped,
)

STARTED = Unique("k", until="started")
FINISHED = Unique("k", until="finished")
NEWEST = Unique("k", until="started", conflict="replace")


async def _insert(store: Store, rule: Unique | None, payload: object = 0, **options: object) -> Inserted:
    [inserted] = await store.insert([new_task(payload=payload, unique=rule, **options)])  # type: ignore[arg-type]
    return inserted


async def _all(store: Store) -> list[Task]:
    return (await store.page(Filter(), limit=1000)).tasks


class UniqueTasks:
    @pytest.mark.parametrize("until", ["started", "finished", "elapsed"])
    @pytest.mark.parametrize("conflict", ["join", "replace"])
    async def test_fifty_submits_of_a_unique_key_make_one_task(
        self, store: Store, open_store: OpenStore, until: Until, conflict: Conflict
    ) -> None:
        rule = throttle("k", 60) if until == "elapsed" else Unique("k", until, conflict)
        stores = [store, *[await open_store() for _ in range(3)]]
        answers = await asyncio.gather(*(_insert(stores[each % 4], rule, each) for each in range(50)))
        assert len({answer.id for answer in answers}) == 1
        assert sum(answer.created for answer in answers) == 1
        replaces = rule.conflict == "replace"
        assert sum(answer.replaced for answer in answers) == (49 if replaces else 0)
        [task] = await _all(store)
        assert (task.unique_key, task.unique_until) == ("k", until)
        first = next(number for number, answer in enumerate(answers) if answer.created)
        assert replaces or task.kwargs == first

    async def test_it_is_one_of_its_type(self, store: Store) -> None:
        one = await _insert(store, FINISHED)
        other = await _insert(store, FINISHED, name="other")
        without = await _insert(store, None)
        assert (one.created, other.created, without.created) == (True, True, True)

    async def test_until_started_one_waits_while_one_runs(self, store: Store) -> None:
        first = await _insert(store, STARTED)
        running = await claim_one(store)
        assert (await fetch(store, first.id)).unique_key is None
        second = await _insert(store, STARTED)
        third = await _insert(store, STARTED)
        assert (second.created, third.created, third.id) == (True, False, second.id)
        await apply(store, failed(running))
        # The retry of the old one meets the new one: both run, and neither takes the other's key.
        assert {each.id for each in await claim(store, 2)} == {first.id, second.id}
        assert [task.unique_key for task in await _all(store)] == [None, None]

    async def test_a_worker_that_dies_between_its_claim_and_the_run_blocks_nobody(self, store: Store) -> None:
        """The claim has given the key up, and nothing has run."""
        first = await _insert(store, STARTED, max_retries=1)
        await claim_one(store, lease=10)
        second = await _insert(store, STARTED)
        assert second.created
        store.clock_offset += 11
        [lost] = await store.lost_leases(30, 10)
        await apply(store, expired(lost))
        assert (await _insert(store, STARTED)).id == second.id
        both = await claim(store, 2)
        assert {each.id for each in both} == {first.id, second.id}, "neither is held up by the other"
        await apply(store, *map(completed, both))
        assert (await _insert(store, STARTED)).created

    async def test_until_finished_a_worker_that_dies_does_not_end_it(self, store: Store) -> None:
        first = await _insert(store, FINISHED, max_retries=1)
        for final in (False, True):
            await claim_one(store, lease=10)
            store.clock_offset += 11
            assert (await _insert(store, FINISHED)).id == first.id, "its lease is over, and nobody has seen it yet"
            [lost] = await store.lost_leases(30, 10)
            await apply(store, expired(lost))
            assert (await _insert(store, FINISHED)).created == final

    async def test_claimed_by_its_id_it_has_started_too(self, store: Store) -> None:
        first = await _insert(store, STARTED)
        version = (await fetch(store, first.id)).version
        assert await store.claim_by_id(first.id, version, "by hand", 60) is not None
        assert (await _insert(store, STARTED)).created

    async def test_until_finished_there_is_one_at_all(self, store: Store) -> None:
        first = await _insert(store, FINISHED)
        running = await claim_one(store)
        assert (await _insert(store, FINISHED)).id == first.id
        await apply(store, failed(running))
        assert (await _insert(store, FINISHED)).id == first.id, "it waits for a retry"
        await apply(store, completed(await claim_one(store)))
        assert (await fetch(store, first.id)).unique_key is None
        second = await _insert(store, FINISHED)
        assert second.created
        await apply(store, failed(await claim_one(store), final=True))
        third = await _insert(store, FINISHED)
        assert third.created
        await apply(store, stopped(await claim_one(store)))
        fourth = await _insert(store, FINISHED)
        await apply(store, cancelled(await fetch(store, fourth.id)))
        fifth = await _insert(store, FINISHED)
        assert fifth.created
        await apply(store, failed(await claim_one(store), final=True))
        await apply(store, retry_by_hand(await fetch(store, fifth.id)))
        assert (await _insert(store, FINISHED)).created, "what is retried does not take its key again"

    async def test_the_newest_arguments_win_until_it_starts(self, store: Store) -> None:
        first = await _insert(store, NEWEST, "old", priority=1)
        second = await _insert(store, NEWEST, "new", priority=5, tags={"a": 1}, max_retries=0)
        assert (second.id, second.created, second.replaced) == (first.id, False, True)
        task = await fetch(store, first.id)
        assert (task.kwargs, task.priority, task.tags, task.max_retries) == ("new", 5, {"a": 1}, 0)
        assert task.version == 1, "whoever saw it as it was must look again"
        claimed = await claim_one(store)
        assert claimed.kwargs == '"new"'
        third = await _insert(store, Unique("k", conflict="replace"), "newer")
        assert third.created

    async def test_what_runs_is_joined_and_not_replaced(self, store: Store) -> None:
        rule = Unique("k", until="finished", conflict="replace")
        first = await _insert(store, rule, "old")
        running = await claim_one(store)
        second = await _insert(store, rule, "new")
        assert (second.id, second.created, second.replaced) == (first.id, False, False)
        await apply(store, failed(running, delay=30))
        due = (await fetch(store, first.id)).next_retry_at
        assert (await _insert(store, rule, "newer")).replaced, "it waits for its retry"
        task = await fetch(store, first.id)
        assert (task.kwargs, task.state, task.next_retry_at, len(task.history)) == ("newer", "failed", due, 1)

    async def test_a_debounce_waits_until_it_is_quiet_but_not_for_ever(self, store: Store) -> None:
        rule = debounce("k", 5, at_most=12)
        first = await _insert(store, rule, 0, delay_seconds=5.0)
        created = (await fetch(store, first.id)).created_at
        for number, passed, due in ((1, 4, 9), (2, 4, 12), (3, 3, 12)):
            store.clock_offset += passed
            assert not await claim(store)
            assert (await _insert(store, rule, number, delay_seconds=5.0)).id == first.id
            task = await fetch(store, first.id)
            assert abs(task.scheduled_at - created - timedelta(seconds=due)) < timedelta(seconds=1), number
        store.clock_offset += 1
        assert (await claim_one(store)).kwargs == "3"

    async def test_a_throttle_runs_one_in_its_time(self, store: Store) -> None:
        rule = throttle("k", 60)
        first = await _insert(store, rule)
        await apply(store, completed(await claim_one(store)))
        assert (await _insert(store, rule)).id == first.id, "although it is over"
        store.clock_offset += 61
        second = await _insert(store, rule)
        assert second.created
        assert (await fetch(store, first.id)).unique_key is None
        await apply(store, completed(await claim_one(store)))
        assert (await _insert(store, FINISHED)).created, "what is over blocks only another throttle"

    async def test_in_a_batch_each_meets_the_one_before_it(self, store: Store) -> None:
        await _insert(store, Unique("b", conflict="replace"), "there")
        rules = [STARTED, None, STARTED, Unique("b", conflict="replace"), Unique("b", conflict="replace"), NEWEST]
        tasks = [new_task(payload=number, unique=rule) for number, rule in enumerate(rules)]
        answers = await store.insert(tasks)
        assert [answer.created for answer in answers] == [True, True, False, False, False, False]
        assert [answer.replaced for answer in answers] == [False, False, False, True, True, True]
        assert answers[0].id == answers[2].id == answers[5].id == tasks[0].id
        kept = {task.unique_key: task.kwargs for task in await _all(store)}
        assert kept == {"k": 5, "b": 4, None: 1}

    async def test_batches_with_the_same_unique_keys_in_any_order_do_not_block_each_other(
        self, store: Store, open_store: OpenStore
    ) -> None:
        stores = [store, *[await open_store() for _ in range(3)]]
        shuffler = random.Random(1)
        keys = [f"key-{number}" for number in range(10)]
        batches = [
            [new_task(unique=Unique(key, "started", shuffler.choice(["join", "replace"]))) for key in order]
            for order in (shuffler.sample(keys, len(keys)) for _ in range(12))
        ]
        answers = await asyncio.gather(*(stores[turn % 4].insert(batch) for turn, batch in enumerate(batches)))
        assert sum(each.created for answer in answers for each in answer) == len(keys)
        assert len(await _all(store)) == len(keys)

    async def test_sent_again_after_a_lost_answer_it_is_the_same_task(self, store: Store) -> None:
        task = new_task(unique=STARTED)
        await store.insert([task])
        await claim_one(store)
        await _insert(store, STARTED)
        [again] = await store.insert([task])
        assert (again.id, again.created) == (task.id, True)
        assert len(await _all(store)) == 2

    async def test_an_idempotency_key_goes_first(self, store: Store) -> None:
        first = await _insert(store, FINISHED, key="once")
        await apply(store, completed(await claim_one(store)))
        assert (await _insert(store, FINISHED, key="once")).id == first.id
        second = await _insert(store, FINISHED, key="twice")
        assert second.created
        third = await _insert(store, FINISHED, key="thrice")
        assert (third.id, third.created) == (second.id, False)

    async def test_a_deleted_task_leaves_its_key(self, store: Store) -> None:
        first = await _insert(store, throttle("k", 60))
        await apply(store, completed(await claim_one(store)))
        await store.delete([(first.id, (await fetch(store, first.id)).version)])
        assert (await _insert(store, throttle("k", 60))).created
