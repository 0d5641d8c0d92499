"""Submitting many at once: in order, and all or none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tasklib.core.column_batch import ColumnBatch
from tasklib.core.retry import RetryPolicy
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import OpenStore, alike_tasks, claim, fetch, new_task, submit

EVERYTHING = Filter()


class Batches:
    async def test_ids_come_back_in_the_order_given(self, store: Store) -> None:
        tasks = [new_task(payload=number) for number in range(20)]
        tasks = tasks[::2] + tasks[1::2][::-1]
        inserted = await store.insert(tasks)
        assert [entry.id for entry in inserted] == [task.id for task in tasks]
        assert all(entry.created for entry in inserted)

    async def test_an_empty_batch_stores_nothing(self, store: Store) -> None:
        assert await store.insert([]) == []
        assert (await store.count(EVERYTHING, 10)).value == 0

    async def test_a_batch_may_mix_all_kinds(self, store: Store) -> None:
        there = await submit(store, key="there")
        tasks = [
            new_task("a", 1),
            new_task("b", 2, key="new"),
            new_task("c", 3, delay_seconds=60),
            new_task("d", 4, key="there"),
            new_task("e", 5, run_at=await store.now()),
            new_task("f", 6, key="new"),
            new_task("g", 7, priority=5, tags={"x": 1}),
        ]
        inserted = await store.insert(tasks)
        assert [entry.created for entry in inserted] == [True, True, True, False, True, False, True]
        assert [entry.id for entry in inserted] == [
            tasks[0].id,
            tasks[1].id,
            tasks[2].id,
            there,
            tasks[4].id,
            tasks[1].id,
            tasks[6].id,
        ]
        kept = [await fetch(store, entry.id) for entry in inserted]
        assert [task.name for task in kept] == ["a", "b", "c", "work", "e", "b", "g"]
        assert (await store.count(EVERYTHING, 100)).value == 6

    async def test_thousands_go_in_one_batch(self, store: Store) -> None:
        tasks = [new_task(payload=number, key=f"key-{number}" if number % 2 else None) for number in range(3000)]
        inserted = await store.insert(tasks)
        assert [entry.id for entry in inserted] == [task.id for task in tasks]
        assert (await store.count(EVERYTHING, 10_000)).value == 3000
        assert [(await fetch(store, entry.id)).kwargs for entry in inserted[::1000]] == [0, 1000, 2000]

    @pytest.mark.parametrize("due", ["now", "later", "then", "past"])
    async def test_tasks_that_are_alike_are_stored_like_any_others(self, store: Store, due: str) -> None:
        now = await store.now()
        times: dict[str, dict[str, Any]] = {
            "now": {},
            "later": {"delay_seconds": 3600},
            "then": {"run_at": now + timedelta(hours=1)},
            "past": {"run_at": now - timedelta(hours=1)},
        }
        policy = RetryPolicy(base=7.0)
        more: dict[str, Any] = {"timeout_seconds": 9, "priority": -4, "tags": {"x": [1]}, "retry_policy": policy}
        alike = alike_tasks(3, max_retries=7, **more, **times[due])
        inserted = await store.insert(alike)
        assert [(entry.id, entry.created) for entry in inserted] == [(task.id, True) for task in alike]
        others = await store.insert([task._replace(id=new_task().id) for task in alike])
        for number, (one, other) in enumerate(zip(inserted, others, strict=True)):
            kept, like = await fetch(store, one.id), await fetch(store, other.id)
            assert kept.kwargs == number
            if due in ("now", "later"):
                assert kept.scheduled_at - kept.created_at == like.scheduled_at - like.created_at
                like = replace(like, scheduled_at=kept.scheduled_at)
            assert kept == replace(like, id=kept.id, created_at=kept.created_at, updated_at=kept.created_at)
        assert len(await claim(store, 10)) == (6 if due in ("now", "past") else 0)

    async def test_tasks_that_are_alike_keep_their_traces(self, store: Store) -> None:
        alike = alike_tasks(3)
        traced = ColumnBatch(alike.first, **alike.columns, trace=["a", "b", "c"])
        assert [(await fetch(store, entry.id)).trace for entry in await store.insert(traced)] == ["a", "b", "c"]

    async def test_a_batch_of_one_keeps_its_key(self, store: Store) -> None:
        first, second = alike_tasks(1, key="k"), alike_tasks(1, key="k")
        answers = [answer for batch in (first, second) for answer in await store.insert(batch)]
        assert [(answer.id, answer.created) for answer in answers] == [(first[0].id, True), (first[0].id, False)]

    async def test_a_batch_that_is_there_already_is_not_stored_again(self, store: Store) -> None:
        """Its reply was lost."""
        alike = alike_tasks(3)
        for _ in range(2):
            assert [entry.id for entry in await store.insert(alike)] == [task.id for task in alike]
        assert (await store.count(EVERYTHING, 10)).value == 3

    async def test_a_batch_is_seen_whole_or_not_at_all(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        writing = asyncio.create_task(store.insert(alike_tasks(500)))
        seen = set()
        while not writing.done():
            seen.add((await other.count(EVERYTHING, 10_000)).value)
        await writing
        assert seen <= {0, 500}
        assert (await other.count(EVERYTHING, 10_000)).value == 500

    async def test_a_batch_is_claimed_only_when_it_is_whole(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        tasks = [new_task() for _ in range(200)]
        writing = asyncio.create_task(store.insert(tasks))
        first: list[object] = []
        while not first and not writing.done():
            first = list(await claim(other, 200))
        await writing
        assert len(first) in (0, 200)

    async def test_a_cancelled_submit_leaves_all_or_nothing(self, store: Store) -> None:
        """However far it had come."""
        for steps in (0, 1, 2, 3, 5, 8, 13):
            name = f"after-{steps}"
            tasks = [new_task(name) for _ in range(100)]
            writing = asyncio.create_task(store.insert(tasks))
            await _turns(steps)
            writing.cancel()
            await asyncio.wait([writing])
            assert (await store.count(Filter(names=[name]), 1000)).value in (0, 100)
        task_id = await submit(store, "afterwards")
        assert [claimed.id for claimed in await claim(store, names=["afterwards"])] == [task_id], "the store goes on"


async def _turns(number: int) -> None:
    """Lets the event loop go round this often."""
    loop = asyncio.get_running_loop()
    for _ in range(number):
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn
