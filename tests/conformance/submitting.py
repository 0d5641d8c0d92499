"""A submitted task: what is in its row, and when."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta

import pytest

from tasklib.core.errors import Unsupported
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import OpenStore, claim, fetch, new_task, next_id, submit


class Submitting:
    async def test_a_new_task_is_pending_and_due(self, store: Store) -> None:
        before = await store.now()
        task = await fetch(store, await submit(store, "greet", payload={"to": "Ada"}))
        after = await store.now()
        assert (task.name, task.state, task.kwargs, task.args) == ("greet", TaskState.PENDING, {"to": "Ada"}, {})
        assert before <= task.created_at <= after
        assert before <= task.scheduled_at <= after
        assert before <= task.updated_at <= after
        assert (task.started_at, task.completed_at, task.next_retry_at) == (None, None, None)
        assert (task.worker_id, task.locked_until, task.cancel_requested_at) == (None, None, None)
        assert (task.result, task.error, task.history, task.retry_count) == (None, None, [], 0)
        assert (task.attempts, task.idempotency_key, task.retry_policy, task.trace) == (0, None, None, None)

    async def test_every_option_is_kept(self, store: Store) -> None:
        policy = RetryPolicy(base=1.5, multiplier=3.0, cap=90.0, jitter=0.25)
        task_id = await submit(
            store,
            "greet",
            max_retries=-1,
            timeout_seconds=45,
            priority=-7,
            tags={"batch": "daily", "user": 123},
            key="greet-ada",
            retry_policy=policy,
            trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        task = await fetch(store, task_id)
        assert (task.max_retries, task.timeout_seconds, task.priority) == (-1, 45, -7)
        assert task.tags == {"batch": "daily", "user": 123}
        assert task.idempotency_key == "greet-ada"
        assert task.retry_policy == {"base": 1.5, "multiplier": 3.0, "cap": 90.0, "jitter": 0.25}
        assert task.trace == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async def test_priority_takes_any_32_bit_integer(self, store: Store) -> None:
        extremes = [-(2**31), 2**31 - 1]
        ids = [await submit(store, priority=priority) for priority in extremes]
        assert [(await fetch(store, task_id)).priority for task_id in ids] == extremes

    async def test_the_id_is_the_callers(self, store: Store) -> None:
        mine = next_id()
        assert await submit(store, id=mine) == mine
        assert (await fetch(store, mine)).id == mine

    async def test_times_are_aware_and_in_utc(self, store: Store) -> None:
        task = await fetch(store, await submit(store))
        for instant in (task.created_at, task.updated_at, task.scheduled_at, await store.now()):
            assert instant.utcoffset() == timedelta(0)

    async def test_a_delay_is_counted_from_the_stores_clock(self, store: Store) -> None:
        store.clock_offset = 7200.0
        before = await store.now()
        task = await fetch(store, await submit(store, delay_seconds=90.5))
        after = await store.now()
        delay = timedelta(seconds=90.5)
        assert before + delay - _GRAIN <= task.scheduled_at <= after + delay + _GRAIN
        assert before <= task.created_at <= after
        assert task.state == TaskState.PENDING

    async def test_run_at_is_kept_as_the_instant_it_names(self, store: Store) -> None:
        run_at = (await store.now()).replace(microsecond=250_000) + timedelta(days=400)
        assert (await fetch(store, await submit(store, run_at=run_at))).scheduled_at == run_at

    async def test_run_at_in_the_past_is_due_now(self, store: Store) -> None:
        task_id = await submit(store, run_at=await store.now() - timedelta(days=3))
        assert [claim.id for claim in await claim(store)] == [task_id]

    async def test_what_was_submitted_is_there_for_every_other_store(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        task_id = await submit(store, payload=[1, 2])
        assert await fetch(other, task_id) == await fetch(store, task_id)

    async def test_an_id_nobody_has_is_none_in_its_place(self, store: Store) -> None:
        first, second = await submit(store), await submit(store)
        found = await store.get([second, next_id(), first, second])
        assert [task and task.id for task in found] == [second, None, first, second]
        assert await store.get([]) == []

    async def test_a_connection_that_cannot_be_joined_is_refused_by_name(self, store: Store) -> None:
        class Stranger:
            pass

        async def submit_on(connection: object) -> None:
            answer = store.insert_on(connection, [new_task()])
            if isinstance(answer, Awaitable):
                await answer

        with pytest.raises(Unsupported, match="Stranger") as refusal:
            await submit_on(Stranger())
        refused_as_a_whole = f"a {store.traits.engine} queue cannot join" in str(refusal.value)
        assert refused_as_a_whole is not store.traits.joins_transactions
        assert (await store.count(Filter(), 10)).value == 0

    async def test_a_name_may_hold_any_text(self, store: Store) -> None:
        for name in ("x", "n" * 255, "naïve ✓ 名前", "it's; DROP TABLE tasks --", "a.b/c%_\\"):
            [inserted] = await store.insert([new_task(name)])
            assert (await fetch(store, inserted.id)).name == name
            assert [claim.name for claim in await claim(store, names=[name])] == [name]


_GRAIN = timedelta(milliseconds=1)
"""Clocks of stores are at least this fine."""
