"""Tasks that wait for tasks: very many into one, the net under a worker that died, and rows that somebody edited."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tasklib.core.decide import WriteResult
from tasklib.core.flows import NEVER, After
from tasklib.core.task import NewTask
from tasklib.engine.backends import make_store
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import Store
from tasklib.worker.janitor import Janitor
from tests.conformance.builders import (
    alike_tasks,
    apply,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    new_task,
    settle,
    submit,
)
from tests.conformance.flow_ends import retry
from tests.conformance.flows import run, states, waiting
from tests.stores.conftest import Execute

OpenStore = Callable[[], Awaitable[Store]]
DEADLINE = 100
"""Seconds. To link a hundred thousand is one statement, and other tests take the machine."""
FAN_IN = 100_000 if "TASKLIB_MODEL_RACES" in os.environ else 10_000


@pytest.fixture
async def open_store(table_url: str) -> AsyncIterator[OpenStore]:
    async with AsyncExitStack() as stack:

        async def opened() -> Store:
            store = make_store(Config(database_url=table_url, call_timeout_seconds=DEADLINE))
            await store.open()
            stack.push_async_callback(store.close)
            return store

        yield opened


@pytest.mark.parametrize("table_url", ["sqlite", "postgres"], indirect=True)
async def test_many_into_one(open_store: OpenStore):
    store = await open_store()
    batch = alike_tasks(FAN_IN)
    await store.insert(batch)
    child = new_task("child")._replace(after=After(tuple(batch.columns["id"])))
    await store.insert([child])
    while claims := await claim(store, 1_000):
        assert (await fetch(store, child.id)).waits > 0
        await apply(store, *map(completed, claims))
    assert (await claim_one(store, "child")).id == child.id


async def test_one_that_was_left_waiting_is_found(store: Store, open_store: OpenStore, by_hand: Execute):
    """As if those who ended the parents had not seen the link: the net under a worker that died."""
    one, two, three = new_task("one"), new_task("two"), new_task("three")
    released, lost, waits = waiting(one), waiting(one, two), waiting(three)
    await store.insert([one, two, three, released, lost, waits])
    by_hand("UPDATE tasks SET feeds = NULL")
    await apply(store, completed(await claim_one(store, "one")))
    await apply(store, failed(await claim_one(store, "two"), final=True))
    assert await states(store, released, lost) == ["pending", "pending"]
    assert await claim(store) == []
    assert await store.release_stranded(10) == 2
    assert await states(store, released, lost, waits) == ["pending", "cancelled", "pending"]
    await run(store, released)
    await apply(store, completed(await claim_one(store, "three")))
    store.clock_offset += 7_200  # only the first look is at old ones
    assert await store.release_stranded(10) == 0
    later = await open_store()
    later.clock_offset = store.clock_offset
    assert await later.release_stranded(10) == 1
    await run(store, waits)


async def test_the_janitor_of_any_worker_finds_it_and_has_it_run(
    store: Store, table_url: str, by_hand: Execute, caplog: pytest.LogCaptureFixture
):
    parent = new_task()
    child = waiting(parent)
    await store.insert([parent, child])
    by_hand("UPDATE tasks SET feeds = NULL")
    await apply(store, completed(await claim_one(store)))
    engine, found = Engine(Config(database_url=table_url)), asyncio.Event()
    janitor = asyncio.create_task(Janitor(engine, found.set).run())
    await asyncio.wait_for(found.wait(), 20)
    janitor.cancel()
    await asyncio.gather(janitor, return_exceptions=True)
    await engine.close()
    assert "released 1 tasks whose parents had all ended" in caplog.text
    await run(store, child)


async def test_rows_that_somebody_edited(store: Store, by_hand: Execute):
    """They are shown, and what is beside them goes on."""
    head = new_task("head")
    good, negative, odd = waiting(head), waiting(head), waiting(head)
    await store.insert([head, good, negative, odd])
    missing = new_task().id
    by_hand(f"UPDATE tasks SET waits = -3 WHERE id = '{negative.id}'")
    by_hand(
        f"""UPDATE tasks SET after = '{{"parents": ["x", 7], "delay": "soon", "runAt": 5}}' WHERE id = '{odd.id}'"""
    )
    if store.traits.engine == "postgresql":
        by_hand(f"UPDATE tasks SET feeds = feeds || '{missing}'::uuid WHERE id = '{head.id}'")
    else:
        by_hand(f"UPDATE tasks SET feeds = json_insert(feeds, '$[#]', '{missing}', '$[#]', 'x') WHERE id = '{head.id}'")
    assert await store.release_stranded(10) <= 1
    await apply(store, completed(await claim_one(store, "head")))
    assert {each.id for each in await claim(store, 4)} >= {good.id}
    found = await fetch(store, negative.id)
    assert (found.waits, found.state, found.scheduled_at) == (-3, "pending", NEVER)
    by_hand(f"UPDATE tasks SET scheduled_at = <0> WHERE id = '{negative.id}'")
    store.clock_offset += 1
    await run(store, negative)
    assert (await store.feeds(head.id, 10)).number == 3


async def test_a_row_with_links_that_nobody_can_read(store: Store, by_hand: Execute):
    """Its parents end, fail and come back all the same."""
    head, other = new_task("head"), new_task("other")
    child, fine = waiting(head, other), waiting(head)
    await store.insert([head, other, child, fine])
    by_hand(f"UPDATE tasks SET after = '[1]' WHERE id = '{child.id}'")
    await apply(store, failed(await claim_one(store, "head"), final=True))
    assert await states(store, child, fine) == ["cancelled", "cancelled"]
    await retry(store, head)
    assert await states(store, fine) == ["pending"]
    await apply(store, completed(await claim_one(store, "head")))
    assert fine.id in {each.id for each in await claim(store, 2)}


async def test_what_runs_by_hand_is_left_alone_by_the_ends_of_its_parents(store: Store, by_hand: Execute):
    """Somebody made it due although it waits."""
    one, two = new_task("one"), new_task("two")
    child = waiting(one, two)
    await store.insert([one, two, child])
    by_hand(f"UPDATE tasks SET scheduled_at = <0> WHERE id = '{child.id}'")
    store.clock_offset += 1
    running = await claim_one(store)
    await apply(store, completed(await claim_one(store, "one")))
    await apply(store, failed(await claim_one(store, "two"), final=True))
    assert await settle(store, completed(running)) is WriteResult.APPLIED
    assert await states(store, child) == ["completed"]


async def test_a_parent_that_is_gone_counts_as_cancelled(store: Store, by_hand: Execute):
    needs, runs = await submit(store, "one"), await submit(store, "two")
    child: NewTask = waiting(needs)
    at_end = waiting(runs, on="end")
    await store.insert([child, at_end])
    by_hand(f"DELETE FROM tasks WHERE id IN ('{needs}', '{runs}')")
    assert await store.release_stranded(10) == 2
    found = await fetch(store, child.id)
    assert (found.state, found.error) == ("cancelled", f"DependencyFailed: task {needs} (deleted) was cancelled")
    await run(store, at_end)


async def test_nothing_of_a_refused_batch_is_left(store: Store, by_hand: Execute):
    """Links and locks of a submit that is refused in its middle are undone, and the parent ends as ever."""
    parent = await submit(store)
    held = await claim_one(store)
    free: Any = new_task("free")
    with pytest.raises(ValueError, match="no task"):
        await store.insert([free, waiting(parent), waiting(new_task())])
    assert (await store.feeds(parent, 10)).number == 0
    assert await store.get([free.id]) == [None]
    await apply(store, completed(held))
