"""Leases: extended by their holder, nobody else, and his until somebody takes them."""

from __future__ import annotations

from datetime import timedelta

from tasklib.core.task import Task
from tasklib.stores.protocol import Store
from tasklib.stores.values import Held
from tests.conformance.builders import (
    WORKER_A,
    WORKER_B,
    OpenStore,
    apply,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    lease_of,
    next_id,
    released,
    submit,
    submit_several,
)


class Leases:
    async def test_an_extension_counts_from_now(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=100)
        before = await fetch(store, running.id)
        store.clock_offset += 50
        start = await store.now()
        [extension] = await store.extend(WORKER_A, [lease_of(running)], 100)
        end = await store.now()
        assert (extension.id, extension.held, extension.cancel_requested) == (running.id, True, False)
        task = await fetch(store, running.id)
        assert task.locked_until is not None
        assert start + timedelta(seconds=100) - _GRAIN <= task.locked_until <= end + timedelta(seconds=100) + _GRAIN
        assert _without_lease(task) == _without_lease(before)

    async def test_an_extension_leaves_the_version_alone(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store)
        for _ in range(3):
            store.clock_offset += 5
            await store.extend(WORKER_A, [lease_of(running)], 600)
        assert (await fetch(store, running.id)).version == running.version
        await apply(store, completed(running))

    async def test_a_lease_that_ran_out_but_was_not_taken_is_still_its_holders(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 1000
        [extension] = await store.extend(WORKER_A, [lease_of(running)], 10)
        assert extension.held
        assert await store.lost_leases(30, 10) == []
        await apply(store, completed(running))

    async def test_an_outcome_counts_although_the_lease_ran_out(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 1000
        await apply(store, completed(running, "late but first"))

    async def test_another_worker_cannot_extend(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, worker=WORKER_A)
        before = await fetch(store, running.id)
        store.clock_offset += 5
        assert [extension.held for extension in await store.extend(WORKER_B, [lease_of(running)], 600)] == [False]
        assert await fetch(store, running.id) == before

    async def test_an_old_claim_cannot_extend(self, store: Store) -> None:
        await submit(store)
        old = await claim_one(store)
        await apply(store, released(old))
        await claim_one(store)
        before = await fetch(store, old.id)
        store.clock_offset += 5
        assert [extension.held for extension in await store.extend(WORKER_A, [lease_of(old)], 600)] == [False]
        assert await fetch(store, old.id) == before

    async def test_an_expired_claim_cannot_extend(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, running.id)))
        before = await fetch(store, running.id)
        assert [extension.held for extension in await store.extend(WORKER_A, [lease_of(running)], 600)] == [False]
        assert await fetch(store, running.id) == before

    async def test_each_lease_of_a_batch_has_its_own_answer(self, store: Store) -> None:
        await submit_several(store, 5)
        claims = await claim(store, 5)
        await apply(store, completed(claims[0]))
        await apply(store, failed(claims[1], delay=60))
        await store.request_cancel([claims[2].id])
        nobody = next_id()
        leases = [*[lease_of(claimed) for claimed in claims], Held(nobody, 1)]
        answers = await store.extend(WORKER_A, leases[::-1], 600)
        assert len(answers) == 6
        told = {answer.id: (answer.held, answer.cancel_requested) for answer in answers}
        assert [told[lease.id][0] for lease in leases] == [False, False, True, True, True, False]
        assert [told[claimed.id][1] for claimed in claims[2:]] == [True, False, False]

    async def test_nothing_to_extend_is_fine(self, store: Store) -> None:
        assert list(await store.extend(WORKER_A, [], 600)) == []

    async def test_every_store_sees_the_extension(self, store: Store, open_store: OpenStore) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        other = await open_store()
        other.clock_offset = store.clock_offset
        assert len(await other.lost_leases(30, 10)) == 1
        await store.extend(WORKER_A, [lease_of(running)], 60)
        assert await other.lost_leases(30, 10) == []


def _without_lease(task: Task) -> dict[str, object]:
    fields = {name: getattr(task, name) for name in Task.__dataclass_fields__}
    del fields["locked_until"]
    return fields


_GRAIN = timedelta(milliseconds=1)
"""Clocks of stores are at least this fine."""
