"""Which leases are lost: run out, or left behind by a worker that fell silent or said goodbye."""

from __future__ import annotations

from dataclasses import replace

from tasklib.core.lifecycle import Phase
from tasklib.stores.protocol import Store
from tests.conformance.builders import (
    WORKER_A,
    WORKER_B,
    OpenStore,
    apply,
    claim,
    claim_one,
    completed,
    expired,
    fetch,
    heartbeat_of,
    in_phase,
    next_id,
    submit,
    submit_several,
)


class LostLeases:
    async def test_a_lease_that_ran_out_is_lost(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=100)
        store.clock_offset += 80
        assert await store.lost_leases(30, 10) == []
        store.clock_offset += 21
        assert await store.lost_leases(30, 10) == [await fetch(store, running.id)]

    async def test_what_runs_without_a_lease_is_lost(self, store: Store, open_store: OpenStore) -> None:
        """Otherwise it would run for ever. Only somebody who edits records makes it."""
        await submit(store)
        running = await fetch(store, (await claim_one(store)).id)
        edited = replace(running, id=next_id(), locked_until=None)
        await store.restore([edited])
        for each in (store, await open_store()):
            assert [task.id for task in await each.lost_leases(30, 10)] == [edited.id]
        await apply(store, expired(await fetch(store, edited.id)))
        assert (await fetch(store, edited.id)).waiting

    async def test_listing_changes_nothing(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        before = await fetch(store, running.id)
        store.clock_offset += 11
        assert await store.lost_leases(30, 10) == await store.lost_leases(30, 10) == [before]
        assert await fetch(store, running.id) == before

    async def test_a_silent_worker_loses_its_leases(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        await submit(store)
        running = await claim_one(store, worker=WORKER_A, lease=600)
        store.clock_offset += 20
        assert await store.lost_leases(30, 10) == []
        store.clock_offset += 11
        assert [task.id for task in await store.lost_leases(30, 10)] == [running.id]

    async def test_a_heartbeat_keeps_them(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        await submit(store)
        await claim_one(store, worker=WORKER_A, lease=600)
        store.clock_offset += 25
        await store.heartbeat(heartbeat_of(WORKER_A, running=1))
        store.clock_offset += 25
        assert await store.lost_leases(30, 10) == []

    async def test_a_worker_that_said_goodbye_loses_its_leases_at_once(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        await submit(store)
        running = await claim_one(store, worker=WORKER_A, lease=600)
        assert await store.lost_leases(30, 10) == []
        await store.deregister_worker(WORKER_A)
        assert [task.id for task in await store.lost_leases(30, 10)] == [running.id]

    async def test_a_worker_that_never_registered_is_judged_by_its_lease_alone(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_B))
        await submit(store)
        running = await claim_one(store, worker=WORKER_A, lease=600)
        store.clock_offset += 500
        assert await store.lost_leases(30, 10) == []
        store.clock_offset += 101
        assert [task.id for task in await store.lost_leases(30, 10)] == [running.id]

    async def test_one_workers_silence_is_not_anothers(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        await store.heartbeat(heartbeat_of(WORKER_B))
        await submit_several(store, 4)
        of_anna = await claim(store, 2, worker=WORKER_A)
        await claim(store, 2, worker=WORKER_B)
        store.clock_offset += 31
        await store.heartbeat(heartbeat_of(WORKER_B))
        assert {task.id for task in await store.lost_leases(30, 10)} == {claimed.id for claimed in of_anna}
        await store.deregister_worker(WORKER_B)
        assert len(await store.lost_leases(30, 10)) == 4

    async def test_every_store_comes_to_the_same_list(self, store: Store, open_store: OpenStore) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        await submit_several(store, 2)
        await claim(store, 2, worker=WORKER_A)
        other = await open_store()
        assert await other.lost_leases(30, 10) == []
        other.clock_offset = store.clock_offset + 31
        assert len(await other.lost_leases(30, 10)) == 2

    async def test_never_more_than_asked_for(self, store: Store) -> None:
        await submit_several(store, 5)
        await claim(store, 5, lease=10)
        store.clock_offset += 11
        assert len(await store.lost_leases(30, 3)) == 3
        assert len(await store.lost_leases(30, 50)) == 5

    async def test_only_running_tasks_have_leases_to_lose(self, store: Store) -> None:
        await store.heartbeat(heartbeat_of(WORKER_A))
        running = [await in_phase(store, phase) for phase in Phase][1]
        store.clock_offset += 10_000
        assert [task.id for task in await store.lost_leases(30, 100)] == [running.id]

    async def test_a_settled_task_is_no_longer_lost(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        await apply(store, completed(running))
        assert await store.lost_leases(30, 10) == []
