"""Every write carries its guard: whoever is no longer the holder changes nothing, and is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tasklib.core import decide
from tasklib.core.decide import Change, WriteResult
from tasklib.core.lifecycle import Phase
from tasklib.core.task import Claim, TaskState
from tasklib.stores.protocol import Store
from tests.conformance.builders import (
    WORKER_A,
    WORKER_B,
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    in_phase,
    lease_of,
    next_id,
    released,
    settle,
    snoozed,
    stopped,
    submit,
    submit_several,
)

OUTCOMES: dict[str, Callable[[Claim], Change]] = {
    "completed": completed,
    "failed": failed,
    "failed for good": lambda claimed: failed(claimed, final=True),
    "released": released,
    "snoozed": lambda claimed: snoozed(claimed, 60),
    "stopped": stopped,
}

every_outcome = pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES.keys())


class Guards:
    @every_outcome
    async def test_another_version_loses(self, store: Store, outcome: Callable[[Claim], Change]) -> None:
        await submit(store)
        running = await claim_one(store)
        before = await fetch(store, running.id)
        for version in (running.version - 1, running.version + 1, 0):
            assert await settle(store, outcome(running)._replace(version=version)) is WriteResult.STALE
        assert await fetch(store, running.id) == before

    @every_outcome
    async def test_another_worker_loses(self, store: Store, outcome: Callable[[Claim], Change]) -> None:
        """A version alone is not enough: after a failover that rolled back, two claims may share one."""
        await submit(store)
        running = await claim_one(store, worker=WORKER_A)
        before = await fetch(store, running.id)
        for worker in (WORKER_B, None, "", WORKER_A.upper()):
            assert await settle(store, outcome(running)._replace(worker_id=worker)) is WriteResult.STALE
        assert await fetch(store, running.id) == before

    @every_outcome
    async def test_an_expired_claim_loses(self, store: Store, outcome: Callable[[Claim], Change]) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, running.id)))
        before = await fetch(store, running.id)
        assert await settle(store, outcome(running)) is WriteResult.STALE
        assert await fetch(store, running.id) == before

    @every_outcome
    async def test_a_claim_that_another_worker_took_over_loses(
        self, store: Store, outcome: Callable[[Claim], Change]
    ) -> None:
        await submit(store)
        old = await claim_one(store, worker=WORKER_A, lease=10)
        store.clock_offset += 11
        await apply(store, expired(await fetch(store, old.id)))
        new = await claim_one(store, worker=WORKER_B)
        before = await fetch(store, old.id)
        assert await settle(store, outcome(old)) is WriteResult.STALE
        assert await fetch(store, old.id) == before
        await apply(store, outcome(new))

    @every_outcome
    async def test_a_worker_that_took_its_own_task_anew_cannot_use_the_old_claim(
        self, store: Store, outcome: Callable[[Claim], Change]
    ) -> None:
        await submit(store)
        old = await claim_one(store)
        await apply(store, released(old))
        await claim_one(store)
        before = await fetch(store, old.id)
        assert await settle(store, outcome(old)) is WriteResult.STALE
        assert await fetch(store, old.id) == before

    @every_outcome
    async def test_a_deleted_task_is_missing(self, store: Store, outcome: Callable[[Claim], Change]) -> None:
        await submit(store)
        running = await claim_one(store)
        await apply(store, completed(running))
        task = await fetch(store, running.id)
        assert await store.delete([(task.id, task.version)]) == [WriteResult.APPLIED]
        assert await settle(store, outcome(running)) is WriteResult.MISSING
        assert await settle(store, outcome(running)._replace(id=next_id())) is WriteResult.MISSING
        assert await store.get([task.id]) == [None]

    @every_outcome
    async def test_a_finished_task_stays_as_it_is(self, store: Store, outcome: Callable[[Claim], Change]) -> None:
        """Whatever comes late: the recorded outcome stands. The very same write is *already*, any other is *lost*."""
        for ending in OUTCOMES.values():
            await submit(store)
            running = await claim_one(store)
            await apply(store, ending(running))
            before = await fetch(store, running.id)
            late, first = outcome(running), ending(running)
            same = (late.state, late.terminal, late.error) == (first.state, first.terminal, first.error)
            assert await settle(store, late) is (WriteResult.DUPLICATE if same else WriteResult.STALE)
            assert await fetch(store, running.id) == before
            store.clock_offset += 61
            await claim(store, 5)  # so that the next round finds its own

    async def test_an_outcome_that_is_repeated_counts_once(self, store: Store) -> None:
        await submit(store)
        change = completed(await claim_one(store))
        assert [await settle(store, change) for _ in range(3)] == [
            WriteResult.APPLIED,
            WriteResult.DUPLICATE,
            WriteResult.DUPLICATE,
        ]
        assert (await store.stats())["work"].completed == 1

    async def test_an_outcome_twice_in_a_batch_is_written_once(self, store: Store) -> None:
        for outcome in (completed, failed):
            await submit(store, "twice", max_retries=0)
            running = await claim_one(store, "twice")
            write_results = await store.settle([outcome(running), outcome(running)])
            assert WriteResult.APPLIED in write_results
            assert set(write_results) <= {WriteResult.APPLIED, WriteResult.DUPLICATE}
            assert (await fetch(store, running.id)).version == running.version + 1
        stats = (await store.stats())["twice"]
        assert (stats.completed, stats.failed) == (1, 1)

    async def test_of_two_outcomes_in_a_batch_the_first_that_holds_its_guard_is_the_one(self, store: Store) -> None:
        """In whichever order and of whichever kind: the write_results say which one was written."""
        makers: list[Callable[[Claim], Change]] = [completed, failed, released, stopped]
        for first in makers:
            for second in makers:
                await submit(store, "twice")
                old = await claim_one(store, "twice")
                await apply(store, released(old))
                running = await claim_one(store, "twice")
                write_results = await store.settle([completed(old), first(running), second(running)])
                assert write_results == [
                    WriteResult.STALE,
                    WriteResult.APPLIED,
                    WriteResult.DUPLICATE if first is second else WriteResult.STALE,
                ]
                task = await fetch(store, running.id)
                assert (task.state, task.version) == (first(running).state, running.version + 1)
                if not task.completed_at:
                    await apply(store, cancelled(task))

    async def test_those_that_lose_do_not_hold_up_the_others(self, store: Store) -> None:
        await submit_several(store, 5)
        claims = await claim(store, 5)
        await apply(store, completed(claims[3]))
        changes = [
            completed(claims[0]),
            completed(claims[1]._replace(worker_id=WORKER_B)),
            failed(claims[2]),
            completed(claims[3]),
            completed(claims[4]._replace(id=next_id())),
            failed(claims[4]._replace(version=99)),
        ]
        assert await store.settle(changes) == [
            WriteResult.APPLIED,
            WriteResult.STALE,
            WriteResult.APPLIED,
            WriteResult.DUPLICATE,
            WriteResult.MISSING,
            WriteResult.STALE,
        ]
        states = [(await fetch(store, claimed.id)).state for claimed in claims]
        assert states == ["completed", "running", "failed", "completed", "running"]

    @every_outcome
    async def test_beside_one_that_wins_the_losers_change_nothing(
        self, store: Store, outcome: Callable[[Claim], Change]
    ) -> None:
        """A batch that has something to write must still write nothing of those whose guard failed."""
        await submit_several(store, 5)
        winner, *losers = await claim(store, 5)
        before = [await fetch(store, claimed.id) for claimed in losers]
        changes = [outcome(claimed) for claimed in losers]
        batch = [
            changes[0]._replace(version=losers[0].version + 1),
            changes[1]._replace(version=losers[1].version - 1),
            outcome(winner),
            changes[2]._replace(worker_id=WORKER_B),
            changes[3]._replace(worker_id=None),
        ]
        lost = WriteResult.STALE
        assert await store.settle(batch) == [lost, lost, WriteResult.APPLIED, lost, lost]
        assert [await fetch(store, claimed.id) for claimed in losers] == before

    @every_outcome
    async def test_beside_its_own_a_worker_changes_nothing_of_others(
        self, store: Store, outcome: Callable[[Claim], Change]
    ) -> None:
        await submit_several(store, 2)
        [of_other] = await claim(store, 1)
        [own] = await claim(store, 1, worker=WORKER_B)
        before = await fetch(store, of_other.id)
        write_results = await store.settle([outcome(own), outcome(of_other)._replace(worker_id=WORKER_B)])
        assert write_results == [WriteResult.APPLIED, WriteResult.STALE]
        assert await fetch(store, of_other.id) == before

    async def test_beside_a_lease_that_expired_an_extended_one_stays(self, store: Store) -> None:
        await submit_several(store, 2)
        gone, alive = await claim(store, 2, lease=10)
        store.clock_offset += 11
        lost = {task.id: task for task in await store.lost_leases(30, 10)}
        await store.extend(WORKER_A, [lease_of(alive)], 600)
        before = await fetch(store, alive.id)
        write_results = await store.settle([expired(lost[alive.id]), expired(lost[gone.id])])
        assert write_results == [WriteResult.STALE, WriteResult.APPLIED]
        assert await fetch(store, alive.id) == before

    async def test_a_claim_held_by_name_alone_is_guarded_by_the_name(self, store: Store) -> None:
        for outcome in (completed, failed):
            await submit(store)
            running = await claim_one(store, worker=WORKER_A)
            change = outcome(running)._replace(version=None)
            assert await settle(store, change._replace(worker_id=WORKER_B)) is WriteResult.STALE
            await apply(store, change)
            assert await settle(store, change) is WriteResult.STALE, "the name is gone with the lease"

    async def test_a_lease_extended_after_it_was_listed_is_not_expired(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        [lost] = await store.lost_leases(30, 10)
        [extension] = await store.extend(WORKER_A, [lease_of(running)], 10)
        assert extension.held
        before = await fetch(store, running.id)
        assert before.version == lost.version, "so the version cannot be what protects it"
        assert await settle(store, expired(lost)) is WriteResult.STALE
        assert await fetch(store, running.id) == before
        await apply(store, completed(running))

    async def test_a_task_that_finished_after_it_was_listed_is_not_expired(self, store: Store) -> None:
        await submit(store)
        running = await claim_one(store, lease=10)
        store.clock_offset += 11
        [lost] = await store.lost_leases(30, 10)
        await apply(store, completed(running, "just in time"))
        before = await fetch(store, running.id)
        assert await settle(store, expired(lost)) is WriteResult.STALE
        assert await fetch(store, running.id) == before

    async def test_a_task_claimed_after_it_was_looked_at_is_not_cancelled(self, store: Store) -> None:
        task = await in_phase(store, Phase.PENDING)
        await claim_one(store, task.name)
        before = await fetch(store, task.id)
        assert await settle(store, cancelled(task)) is WriteResult.STALE
        assert await settle(store, cancelled(task)._replace(version=before.version)) is WriteResult.STALE, (
            "it has a worker now"
        )
        assert await fetch(store, task.id) == before

    async def test_a_task_retried_after_it_was_looked_at_is_not_retried_again(self, store: Store) -> None:
        task = await in_phase(store, Phase.FAILED)
        change = decide.retry_by_hand(task)
        await apply(store, change)
        assert await settle(store, change) is WriteResult.DUPLICATE
        await claim_one(store, task.name)
        before = await fetch(store, task.id)
        assert await settle(store, change) is WriteResult.STALE
        assert await fetch(store, task.id) == before
        assert before.state == TaskState.RUNNING
