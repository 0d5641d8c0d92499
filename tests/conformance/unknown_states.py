"""Rows in a state that this version does not know, left by a newer one or by hand: shown, skipped, harmless."""

from __future__ import annotations

from typing import cast

from tasklib.core.lifecycle import phase_of
from tasklib.core.task import Task, TaskState
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import apply, claim, claim_one, completed, fetch, released, submit, submit_several

UNKNOWN = "on hold"


async def _stranger(store: Store) -> Task:
    await submit(store, priority=100)
    running = await claim_one(store)
    await apply(store, released(running)._replace(state=cast(TaskState, UNKNOWN)))
    return await fetch(store, running.id)


class Strangers:
    async def test_it_is_shown_as_it_is(self, store: Store) -> None:
        task = await _stranger(store)
        assert (task.state, phase_of(task)) == (UNKNOWN, None)
        assert (await store.page(Filter(), limit=9)).tasks == [task]
        assert (await store.page(Filter(states=[UNKNOWN]), limit=9)).tasks == [task]
        assert (await store.count(Filter(states=[UNKNOWN]), 9)).value == 1

    async def test_it_is_skipped_and_its_neighbours_proceed(self, store: Store) -> None:
        task = await _stranger(store)
        ids = await submit_several(store, 3)
        store.clock_offset += 100_000
        claims = await claim(store, 10)
        assert [claimed.id for claimed in claims] == ids
        await apply(store, *[completed(claimed) for claimed in claims])
        assert await fetch(store, task.id) == task

    async def test_maintenance_leaves_it_alone(self, store: Store) -> None:
        task = await _stranger(store)
        store.clock_offset += 100_000
        assert await store.lost_leases(30, 10) == []
        assert await store.request_cancel([task.id]) == []
        assert await store.prune([UNKNOWN, "completed", "failed", "cancelled"], 1, 10) == 0
        await store.delete([(task.id, task.version)])
        await store.compact_stats()
        assert await fetch(store, task.id) == task

    async def test_the_figures_do_not_stumble_over_it(self, store: Store) -> None:
        await _stranger(store)
        await submit(store)
        stats = (await store.stats())["work"]
        assert (stats.pending, stats.running, stats.waiting) == (1, 0, 0)
