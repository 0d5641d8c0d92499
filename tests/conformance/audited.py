"""An audit entry is there exactly when the write that it tells of was applied."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.errors import StoreError
from tasklib.core.lifecycle import Phase
from tasklib.core.task import Task
from tasklib.stores.protocol import Store
from tasklib.stores.values import AuditEntry, ControlChange, Filter
from tests.conformance.access import made_token
from tests.conformance.builders import OpenStore, apply, cancelled, fetch, in_phase, next_id, submit_several

ENTRY = AuditEntry(actor="ada", action="act")


class Refused(Exception):
    """As good as an entry that cannot be written."""


def of_ids(applied: Sequence[UUID]) -> list[AuditEntry]:
    """One for each, and one for all."""
    return [*(replace(ENTRY, task_id=task_id) for task_id in applied), replace(ENTRY, detail=f"[{len(applied)}]")]


def refuse(applied: Sequence[object]) -> list[AuditEntry]:
    raise Refused


async def audited(store: Store) -> tuple[set[UUID | None], list[str]]:
    """The tasks that there is an entry of, one each, and the details of the others."""
    entries = await store.list_audit()
    about = Counter(entry.task_id for entry in entries if entry.task_id is not None)
    assert set(about.values()) <= {1}
    return set(about), [entry.detail for entry in reversed(entries) if entry.task_id is None]


class Audited:
    async def test_of_a_settle_those_that_were_applied(self, store: Store) -> None:
        tasks = [await in_phase(store, phase) for phase in (Phase.PENDING, Phase.WAITING, Phase.PENDING)]
        changes = [cancelled(task) for task in tasks]
        await apply(store, changes[2])
        changes.append(changes[0]._replace(id=next_id()))
        results = await store.settle(changes, audit=of_ids)
        assert results[:2] == [WriteResult.APPLIED] * 2
        assert WriteResult.APPLIED not in results[2:]
        assert await audited(store) == ({task.id for task in tasks[:2]}, ["[2]"])

    async def test_of_a_settle_that_comes_too_late_none(self, store: Store) -> None:
        task = await in_phase(store, Phase.FAILED)
        change = decide.retry_by_hand(task)
        assert await store.settle([change], audit=of_ids) == [WriteResult.APPLIED]
        assert await store.settle([change], audit=of_ids) == [WriteResult.DUPLICATE]
        await apply(store, cancelled(await fetch(store, task.id)))
        assert await store.settle([change], audit=of_ids) == [WriteResult.STALE]
        assert await audited(store) == ({task.id}, ["[1]"])

    async def test_of_requests_to_stop_those_that_run(self, store: Store) -> None:
        running, waiting = await in_phase(store, Phase.RUNNING), await in_phase(store, Phase.PENDING)
        assert await store.request_cancel([waiting.id, running.id, next_id()], audit=of_ids) == [running.id]
        assert await audited(store) == ({running.id}, ["[1]"])
        assert await store.request_cancel([waiting.id], audit=of_ids) == []
        assert await audited(store) == ({running.id}, ["[1]"])

    async def test_of_deletes_those_that_are_gone(self, store: Store) -> None:
        done, moved, running = [
            await in_phase(store, phase) for phase in (Phase.COMPLETED, Phase.FAILED, Phase.RUNNING)
        ]
        await apply(store, decide.retry_by_hand(moved))
        guards = [(task.id, task.version) for task in (moved, done, running)] + [(next_id(), 1)]
        assert (await store.delete(guards, audit=of_ids)).count(WriteResult.APPLIED) == 1
        assert await audited(store) == ({done.id}, ["[1]"])
        assert await store.delete(guards, audit=of_ids) == [WriteResult.STALE, WriteResult.MISSING] * 2
        assert await audited(store) == ({done.id}, ["[1]"])

    async def test_of_a_prune_what_it_deleted_by_state(self, store: Store) -> None:
        def of_states(gone: Sequence[str]) -> list[AuditEntry]:
            return [replace(ENTRY, detail=f"[{gone.count('completed')},{gone.count('failed')}]")]

        for phase in (Phase.COMPLETED, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED, Phase.PENDING):
            await in_phase(store, phase)
        store.clock_offset += 60
        states = ["completed", "failed"]
        assert await store.prune(states, 30, 100, dry_run=True, audit=of_states) == 3
        assert await audited(store) == (set(), [])
        assert await store.prune(states, 30, 100, audit=of_states) == 3
        assert await store.prune(states, 30, 100, audit=of_states) == 0
        assert [detail.replace(" ", "") for detail in (await audited(store))[1]] == ["[2,1]"]

    async def test_of_tokens_what_was_made_and_revoked(self, store: Store) -> None:
        await store.add_token(made_token("one"), audit=[ENTRY])
        await store.add_token(made_token("one"), audit=[ENTRY])  # as after a lost reply
        with pytest.raises(StoreError):
            await store.add_token(replace(made_token("one"), digest="other"), audit=[ENTRY])
        assert len(await store.list_audit()) == 1
        assert await store.revoke_token("one", audit=[ENTRY]) is True
        assert await store.revoke_token("one", audit=[ENTRY]) is False
        assert await store.revoke_token("two", audit=[ENTRY]) is False
        assert len(await store.list_audit()) == 2

    async def test_a_write_whose_entry_cannot_be_made_is_not_made(self, store: Store) -> None:
        pending, running, done = [
            await in_phase(store, phase) for phase in (Phase.PENDING, Phase.RUNNING, Phase.COMPLETED)
        ]
        tasks: list[Task | None] = [pending, running, done]
        with pytest.raises(Refused):
            await store.settle([cancelled(pending)], audit=refuse)
        with pytest.raises(Refused):
            await store.request_cancel([running.id], audit=refuse)
        with pytest.raises(Refused):
            await store.delete([(done.id, done.version)], audit=refuse)
        store.clock_offset += 60
        with pytest.raises(Refused):
            await store.prune(["completed"], 30, 100, audit=refuse)
        assert await store.get([pending.id, running.id, done.id]) == tasks
        assert (await store.stats())[done.name].completed == 1
        assert await store.list_audit() == []

    async def test_of_many_at_once_each_has_its_entry(self, store: Store) -> None:
        ids = await submit_several(store, 600)
        tasks = [task for task in await store.get(ids) if task is not None]
        assert set(await store.settle([cancelled(task) for task in tasks], audit=of_ids)) == {WriteResult.APPLIED}
        entries = await store.list_audit(limit=10_000)
        assert {entry.task_id for entry in entries} == {*ids, None}
        guards = [(task.id, task.version + 1) for task in tasks]
        assert set(await store.delete(guards, audit=of_ids)) == {WriteResult.APPLIED}
        assert (await store.count(Filter(), 1)).value == 0
        assert Counter(
            entry.task_id for entry in await store.list_audit(limit=10_000) if entry.task_id
        ) == dict.fromkeys(ids, 2)

    async def test_of_several_who_want_the_same_one(self, store: Store, open_store: OpenStore) -> None:
        task = await in_phase(store, Phase.PENDING)
        others = [await open_store() for _ in range(3)]
        results = await asyncio.gather(*(each.settle([cancelled(task)], audit=of_ids) for each in [store, *others]))
        assert sorted(result for [result] in results).count(WriteResult.APPLIED) == 1
        assert await audited(store) == ({task.id}, ["[1]"])

    async def test_a_control_and_its_entry(self, store: Store) -> None:
        before = await store.now()
        assert (await store.control(ControlChange(name="work", paused=True), audit=[ENTRY])).paused
        [entry] = await store.list_audit()
        assert entry.at is not None
        assert before <= entry.at
        assert {name: each.paused for name, each in (await store.controls()).items()} == {"work": True}
