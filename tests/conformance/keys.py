"""One idempotency key, one task: however many submit it at once, and until it is deleted."""

from __future__ import annotations

import asyncio
import random

import pytest

from tasklib.core.lifecycle import Phase
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import OpenStore, fetch, in_phase, new_task, submit


class Keys:
    async def test_fifty_submits_at_once_make_one_task(self, store: Store, open_store: OpenStore) -> None:
        stores = [store, *[await open_store() for _ in range(3)]]
        answers = await asyncio.gather(
            *(stores[number % 4].insert([new_task(payload=number, key="once")]) for number in range(50))
        )
        entries = [entry for answer in answers for entry in answer]
        assert len({entry.id for entry in entries}) == 1
        assert sum(entry.created for entry in entries) == 1
        page = await store.page(Filter(), limit=100)
        assert [task.id for task in page.tasks] == [entries[0].id]

    async def test_batches_with_the_same_keys_in_any_order_do_not_block_each_other(
        self, store: Store, open_store: OpenStore
    ) -> None:
        stores = [store, *[await open_store() for _ in range(3)]]
        shuffler = random.Random(1)
        keys = [f"key-{number}" for number in range(30)]
        orders = [shuffler.sample(keys, len(keys)) for _ in range(12)]
        answers = await asyncio.gather(
            *(stores[turn % 4].insert([new_task(key=key) for key in order]) for turn, order in enumerate(orders))
        )
        ids: dict[str, set[object]] = {key: set() for key in keys}
        made = 0
        for order, answer in zip(orders, answers, strict=True):
            for key, entry in zip(order, answer, strict=True):
                ids[key].add(entry.id)
                made += entry.created
        assert all(len(found) == 1 for found in ids.values())
        assert made == len(keys)
        assert (await store.count(Filter(), 1000)).value == len(keys)

    async def test_the_same_key_twice_in_a_batch_is_one_task(self, store: Store) -> None:
        first, plain, second = await store.insert(
            [new_task(payload=1, key="k"), new_task(), new_task(payload=2, key="k")]
        )
        assert first.id == second.id != plain.id
        assert [first.created, plain.created, second.created] == [True, True, False]
        assert (await fetch(store, first.id)).kwargs == 1

    async def test_other_arguments_do_not_make_another_task(self, store: Store) -> None:
        task_id = await submit(store, "mail", payload={"to": "Ada"}, key="k", priority=3)
        before = await fetch(store, task_id)
        assert await submit(store, "report", payload={"to": "Bob"}, key="k", delay_seconds=60) == task_id
        assert await fetch(store, task_id) == before

    @pytest.mark.parametrize("phase", Phase)
    async def test_the_key_answers_in_every_phase(self, store: Store, phase: Phase) -> None:
        task = await in_phase(store, phase, key="k")
        [again] = await store.insert([new_task(key="k")])
        assert (again.id, again.created) == (task.id, False)
        assert await store.get_by_key("k") == task

    async def test_the_key_is_free_once_the_task_is_deleted(self, store: Store) -> None:
        task = await in_phase(store, Phase.COMPLETED, key="k")
        await store.delete([(task.id, task.version)])
        assert await store.get_by_key("k") is None
        [again] = await store.insert([new_task(key="k")])
        assert again.created
        assert again.id != task.id

    async def test_the_key_is_free_once_the_task_is_pruned(self, store: Store) -> None:
        task = await in_phase(store, Phase.COMPLETED, key="k")
        store.clock_offset += 100
        assert await store.prune(["completed"], 50, 10) == 1
        [again] = await store.insert([new_task(key="k")])
        assert (again.created, again.id == task.id) == (True, False)

    async def test_keys_are_compared_exactly(self, store: Store) -> None:
        keys = ["k", "K", " k", "k ", "k%", "k_", "ké", "ke\u0301", "k\n", "'k'", "😀", "k" * 255]
        inserted = await store.insert([new_task(key=key) for key in keys])
        assert all(entry.created for entry in inserted)
        for key, entry in zip(keys, inserted, strict=True):
            found = await store.get_by_key(key)
            assert found is not None
            assert (found.id, found.idempotency_key) == (entry.id, key)

    async def test_an_unknown_key_has_no_task(self, store: Store) -> None:
        await submit(store, key="k")
        assert await store.get_by_key("other") is None

    async def test_tasks_without_a_key_are_never_the_same(self, store: Store) -> None:
        inserted = await store.insert([new_task(), new_task()])
        assert [entry.created for entry in inserted] == [True, True]
