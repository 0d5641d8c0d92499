"""Pause: at once, for the whole fleet, one type or all; and nothing is lost by it."""

from __future__ import annotations

from tasklib.stores.protocol import Store
from tasklib.stores.values import ControlChange
from tests.conformance.builders import (
    WORKER_A,
    OpenStore,
    apply,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    lease_of,
    submit,
    submit_several,
)


class Pausing:
    async def test_a_paused_type_gives_nothing(self, store: Store) -> None:
        await submit_several(store, 3, "a")
        free = await submit(store, "b")
        await store.control(ControlChange(name="a", paused=True))
        assert [claimed.id for claimed in await claim(store, 10, names=["a", "b"], prefetch=5)] == [free]
        await store.control(ControlChange(name="a", paused=False))
        assert len(await claim(store, 10, names=["a", "b"])) == 3

    async def test_all_types_can_be_paused(self, store: Store) -> None:
        await submit_several(store, 3, "a")
        await submit_several(store, 3, "b")
        await store.control(ControlChange(paused=True))
        assert await claim(store, 10, names=["a", "b"], prefetch=5) == []
        await store.control(ControlChange(paused=False))
        assert len(await claim(store, 10, names=["a", "b"])) == 6

    async def test_one_type_stays_paused_when_all_are_resumed(self, store: Store) -> None:
        await submit(store, "a")
        await submit(store, "b")
        await store.control(ControlChange(name="a", paused=True))
        await store.control(ControlChange(paused=True))
        await store.control(ControlChange(paused=False))
        assert [claimed.name for claimed in await claim(store, 10, names=["a", "b"])] == ["b"]

    async def test_a_pause_holds_at_once_in_every_store(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        await submit_several(store, 4)
        assert len(await claim(other)) == 1
        await store.control(ControlChange(name="work", paused=True))
        assert await claim(other) == []
        await store.control(ControlChange(name="work", paused=False))
        assert len(await claim(other)) == 1
        await store.control(ControlChange(paused=True))
        assert await claim(other) == []
        third = await open_store()
        assert await claim(third) == []
        await third.control(ControlChange(paused=False))
        assert len(await claim(other)) == 1

    async def test_a_limited_type_can_be_paused(self, store: Store) -> None:
        await store.control(ControlChange(name="work", concurrency=5, paused=True))
        await submit(store)
        assert await claim(store) == []
        await store.control(ControlChange(name="work", paused=False))
        assert len(await claim(store)) == 1

    async def test_a_pause_leaves_the_tasks_alone(self, store: Store) -> None:
        task_id = await submit(store)
        before = await fetch(store, task_id)
        await store.control(ControlChange(paused=True))
        for _ in range(3):
            assert await claim(store) == []
        assert await fetch(store, task_id) == before

    async def test_what_runs_goes_on_under_a_pause(self, store: Store) -> None:
        await submit_several(store, 2)
        first, second = await claim(store, 2)
        await store.control(ControlChange(paused=True))
        [extension] = await store.extend(WORKER_A, [lease_of(first)], 600)
        assert extension.held
        await apply(store, completed(first))
        await apply(store, failed(second))
        assert await claim(store) == []

    async def test_what_becomes_due_under_a_pause_waits_for_its_end(self, store: Store) -> None:
        task_id = await submit(store, delay_seconds=50)
        await store.control(ControlChange(paused=True))
        store.clock_offset += 51
        assert await claim(store) == []
        await store.control(ControlChange(paused=False))
        assert (await claim_one(store)).id == task_id
