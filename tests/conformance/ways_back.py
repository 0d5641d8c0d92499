"""What brings a task back that waits, was cancelled or is over: run now, revive, and a copy under a new id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.lifecycle import Phase
from tasklib.core.task import TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import AuditEntry, Count, Filter, NameStats
from tests.conformance.audited import ENTRY, audited, of_ids
from tests.conformance.builders import (
    apply,
    cancelled,
    claim,
    claim_one,
    failed,
    fetch,
    in_phase,
    new_task,
    released,
    settle,
    snoozed,
    stopped,
    submit,
)


class WaysBack:
    async def test_run_now_brings_forward_what_is_scheduled(self, store: Store) -> None:
        task_id = await submit(store, delay_seconds=3600)
        assert await claim(store) == []
        change = decide.run_now(await fetch(store, task_id), await store.now())
        assert change is not None
        assert await store.settle([change], audit=of_ids) == [WriteResult.APPLIED]
        running = await claim_one(store)
        assert (running.id, running.attempt) == (task_id, 1)
        assert await settle(store, change) is WriteResult.STALE
        assert (await fetch(store, task_id)).state == TaskState.RUNNING
        assert await audited(store) == ({task_id}, ["[1]"])

    async def test_run_now_keeps_the_attempts_of_what_waits_for_its_retry(self, store: Store) -> None:
        task = await in_phase(store, Phase.WAITING)
        change = decide.run_now(task, await store.now())
        assert change is not None
        await apply(store, change)
        running = await claim_one(store, task.name)
        assert (running.id, running.attempt) == (task.id, 2)
        assert (await store.stats())[task.name] == NameStats(running=1)
        await apply(store, failed(running, final=True))
        assert len((await fetch(store, task.id)).history) == 2

    async def test_what_is_not_due_is_found_until_it_is(self, store: Store) -> None:
        waiting = [await submit(store, "later", delay_seconds=600), (await in_phase(store, Phase.WAITING)).id]
        await submit(store, "snoozes")
        running = await claim_one(store, "snoozes")
        await apply(store, snoozed(running, 600))
        waiting.append(running.id)
        for phase in (Phase.PENDING, Phase.RUNNING, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED):
            await in_phase(store, phase, f"{phase}")
        for where, expected in (
            (Filter(not_due=True), waiting),
            (Filter(not_due=True, states=["pending"]), [waiting[0], waiting[2]]),
            (Filter(not_due=True, states=["pending", "failed"], terminal=False), waiting),
            (Filter(not_due=True, names=["later"]), waiting[:1]),
            (Filter(not_due=True, terminal=True), []),
        ):
            page = await store.page(where, limit=9, oldest_first=True)
            assert [task.id for task in page.tasks] == expected, where
            assert await store.count(where, 9) == Count(len(expected), False), where
        store.clock_offset += 86_400
        assert (await store.page(Filter(not_due=True), limit=9)).tasks == []

    async def test_a_revived_task_waits_for_its_time_as_before(self, store: Store) -> None:
        task_id = await submit(store, delay_seconds=3600)
        before = await fetch(store, task_id)
        await apply(store, cancelled(before))
        over = await fetch(store, task_id)
        assert (await store.stats())["work"].cancelled == 1
        change = decide.revive(over)
        assert await store.settle([change], audit=of_ids) == [WriteResult.APPLIED]
        after = await fetch(store, task_id)
        assert (after.state, after.completed_at, after.scheduled_at) == (TaskState.PENDING, None, before.scheduled_at)
        figures = (await store.stats())["work"]
        assert (figures.pending, figures.cancelled) == (1, 0)
        assert await claim(store) == []
        store.clock_offset += 3601
        await apply(store, released(await claim_one(store)))
        assert await settle(store, change) is WriteResult.STALE, "it has lived on"
        assert await audited(store) == ({task_id}, ["[1]"])

    async def test_a_revived_task_that_was_stopped_has_all_its_attempts(self, store: Store) -> None:
        task_id = await submit(store, max_retries=0)
        await store.request_cancel([task_id])
        running = await claim_one(store)
        await store.request_cancel([task_id])
        await apply(store, stopped(running))
        await apply(store, decide.revive(await fetch(store, task_id)))
        again = await claim_one(store)
        after = await fetch(store, task_id)
        assert (again.id, again.attempt, after.cancel_requested_at) == (task_id, 1, None)
        assert [entry["error"] for entry in after.history] == ["stopped as asked"]

    async def test_a_copy_names_its_first_and_is_in_the_trail(self, store: Store) -> None:
        first = await in_phase(store, Phase.COMPLETED, key="once")
        made = new_task(first.name)

        def copied(ids: Sequence[UUID]) -> list[AuditEntry]:
            assert list(ids) == [made.id]
            return [replace(ENTRY, action="copy", task_id=first.id)]

        [inserted] = await store.insert([made], copy_of=first.id, audit=copied)
        assert (inserted.id, inserted.created) == (made.id, True)
        copy = await fetch(store, made.id)
        assert (copy.copy_of, copy.state, first.copy_of) == (first.id, TaskState.PENDING, None)
        [entry] = await store.list_audit()
        assert (entry.action, entry.task_id) == ("copy", first.id)
        assert (await claim_one(store, first.name)).id == made.id
        assert await store.insert([made], copy_of=first.id, audit=copied) == [inserted], "as after a lost reply"
        assert len(await store.list_audit()) == 1

    async def test_of_submits_those_that_are_new_are_in_the_trail(self, store: Store) -> None:
        first, again, other = (new_task(key=key) for key in ("one", "one", "two"))
        await store.insert([first], audit=of_ids)
        await store.insert([again], audit=of_ids)
        await store.insert([again, other], audit=of_ids)
        assert await audited(store) == ({first.id, other.id}, ["[1]", "[1]"])
