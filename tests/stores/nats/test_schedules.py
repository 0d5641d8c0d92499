"""A schedule and the tasks of its times are one write, also where it depends on others whether a task is made."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tasklib.core.cron import Overlap, every
from tasklib.stores.nats import NatsStore
from tasklib.stores.nats.kv import KeyValueStore
from tests.conformance.schedules import move_to_next, put, schedules_of, slots, tasks
from tests.stores.conftest import Fault, faults
from tests.stores.proxy import Proxy

OVERLAPS: Sequence[Overlap] = ("skip", "wait", "replace")


@pytest.fixture
async def proxy(nats_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(nats_url) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[NatsStore]:
    store = NatsStore(proxy.url)
    await store.open()
    yield store
    await store.close()


async def test_whoever_changes_a_schedule_first_leaves_no_task_behind(
    store: NatsStore, monkeypatch: pytest.MonkeyPatch
):
    """It is paused between the look at the keys and the write: a death there is no different."""
    write = KeyValueStore.write
    schedules = schedules_of(store)

    for overlap in OVERLAPS:
        await put(store, every(minutes=1, overlap=overlap), overlap)
        await move_to_next(store, name=overlap)

        async def after_a_pause(kv: KeyValueStore, batch: Any, name: str = overlap) -> int:
            monkeypatch.setattr(KeyValueStore, "write", write)
            await schedules.pause(name)
            return await write(kv, batch)

        monkeypatch.setattr(KeyValueStore, "write", after_a_pause)
        await schedules.fire()
        assert KeyValueStore.write is write, "it was about to write"
        assert await tasks(store) == []
        [kept] = await store.schedules([overlap])
        assert (kept.paused, kept.fired, kept.runs) == (True, 0, ())


@faults
async def test_a_fire_in_doubt_is_one_task(store: NatsStore, proxy: Proxy, fault: Fault):
    """Cut before the commit arrives, or before its answer does."""
    for overlap in OVERLAPS:
        await put(store, every(minutes=1, overlap=overlap), overlap)
        due = [await move_to_next(store, name=overlap)]
        for _ in range(2):  # the second time meets the task of the first
            fault(proxy, b"Nats-Batch-Commit")
            await schedules_of(store).fire()
            await schedules_of(store).fire()  # whoever could not tell looks again
            [kept] = await store.schedules([overlap])
            assert [run.slot for run in kept.runs] == due
            due.append(await move_to_next(store, name=overlap))
        await schedules_of(store).pause(overlap)
    assert proxy.faults == len(OVERLAPS) + 1, "a time that joins the task of another is a single message"
    assert len(await slots(store)) == len(OVERLAPS), "each has one task, which waits"
