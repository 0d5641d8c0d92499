"""A task that is linked to another at the moment of its end, which waits for the link and cannot see the new task."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tasklib.core.decide import WriteResult
from tasklib.core.task import Claim, NewTask
from tasklib.stores.sql.postgres import PostgresStore
from tests.conformance.builders import apply, claim_one, completed, failed, fetch, new_task, submit
from tests.conformance.flows import run, states, waiting
from tests.waiting import eventually_async

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def other(postgres_server: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(postgres_server)
    yield connection
    await connection.close()


class Late:
    """A child whose submit commits when the end of its parent waits for it."""

    def __init__(self, store: PostgresStore, other: Any, schema: str) -> None:
        self._store = store
        self._other = other
        self._waiting = (
            f"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}%'"
        )

    async def link(self, child: NewTask, end: Awaitable[Any]) -> Any:
        begun = self._other.transaction()
        await begun.start()
        inserted = self._store.insert_on(self._other, [child])
        assert isinstance(inserted, Awaitable)
        await inserted
        return await self.commit(begun, end)

    async def commit(self, begun: Any, call: Awaitable[Any], *others: Awaitable[Any]) -> Any:
        """As soon as the call, and with it the others, wait for it. The answer to the first."""
        calling = [asyncio.ensure_future(each) for each in (call, *others)]

        async def waits() -> bool:
            assert not any(each.done() for each in calling), f"it did not wait: {calling}"
            return int(await self._store._calls.run(self._count)) == len(calling)

        await eventually_async(waits)
        await begun.commit()
        return (await asyncio.gather(*calling))[0]

    async def _count(self, connection: Any, timeout: float) -> Any:
        return await connection.fetchval(self._waiting)


@pytest.fixture
def late(store: PostgresStore, other: Any, schema: str) -> Late:
    return Late(store, other, schema)


async def running(store: PostgresStore) -> Claim:
    await submit(store, "parent")
    return await claim_one(store, "parent")


async def test_a_late_link_is_released_by_a_second_look(store: PostgresStore, late: Late):
    held = await running(store)
    child, known = waiting(held.id), waiting(held.id)
    await store.insert([known])
    await late.link(child, apply(store, completed(held)))
    await run(store, child, known)


async def test_a_late_link_to_what_did_not_know_of_any(store: PostgresStore, late: Late):
    held = await running(store)
    child = waiting(held.id)
    await late.link(child, apply(store, completed(held)))
    await run(store, child)


async def test_a_late_link_to_what_fails_is_cut_off(store: PostgresStore, late: Late):
    held = await running(store)
    child, at_end = waiting(held.id), waiting(held.id, on="end")
    await store.insert([at_end])
    await late.link(child, apply(store, failed(held, final=True)))
    assert await states(store, child) == ["cancelled"]
    await run(store, at_end)


async def test_two_last_parents_that_are_inside_their_settles_at_once(
    store: PostgresStore, postgres_url: str, other: Any, schema: str, late: Late
):
    """Each began before the other was over, and cannot see its end: a look at the parents would strand the child."""
    second = PostgresStore(postgres_url)
    await second.open()
    parents = [new_task("one"), new_task("two")]
    child = waiting(*parents)
    await store.insert([*parents, child])
    one, two = await claim_one(store, "one"), await claim_one(store, "two")
    begun = other.transaction()
    await begun.start()
    await other.execute(f"SELECT FROM {schema}.tasks WHERE id = '{child.id}' FOR UPDATE")
    await late.commit(begun, apply(store, completed(one)), apply(second, completed(two)))
    await second.close()
    await run(store, child)


async def test_a_worker_that_is_killed_before_its_second_look(store: PostgresStore, postgres_url: str, late: Late):
    """What it wrote is written; the child is found by whoever looks next."""
    parent = new_task("parent")
    known, child = waiting(parent), waiting(parent)
    await store.insert([parent, known])
    command = [sys.executable, "-m", "tests.stores.postgres.dying", postgres_url]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=env, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"claimed\n"
    await late.link(child, process.communicate(b"now\n"))
    assert process.returncode == -signal.SIGKILL
    assert (await fetch(store, parent.id)).state == "completed"
    assert (await fetch(store, child.id)).waits == 1
    await run(store, known)
    assert await store.release_stranded(10) == 1
    await run(store, child)


async def test_a_late_link_holds_off_a_delete(store: PostgresStore, late: Late):
    """The parent is over, and its result is needed."""
    held = await running(store)
    await apply(store, completed(held))
    parent = await fetch(store, held.id)
    child = waiting(parent.id)
    result = await late.link(child, store.delete([(parent.id, parent.version)]))
    assert result == [WriteResult.AWAITED]
    assert (await fetch(store, parent.id)).version == parent.version
    await run(store, child)


async def test_a_link_waits_for_an_end_that_is_under_way(store: PostgresStore, other: Any, schema: str, late: Late):
    """It finds the parent over, and waits for nothing."""
    held = await running(store)
    begun = other.transaction()
    await begun.start()
    await other.execute(
        f"UPDATE {schema}.tasks SET state = 'completed', completed_at = now(), worker_id = NULL, version = version + 1"
    )
    child = waiting(held.id)
    await late.commit(begun, store.insert([child]))
    await run(store, child)


async def test_a_submit_in_a_transaction_that_is_rolled_back_links_nothing(store: PostgresStore, other: Any):
    held = await running(store)
    begun = other.transaction()
    await begun.start()
    inserted = store.insert_on(other, [waiting(held.id), new_task("beside")])
    assert isinstance(inserted, Awaitable)
    await inserted
    await begun.rollback()
    assert (await store.feeds(held.id, 10)).number == 0
    await apply(store, completed(held))
