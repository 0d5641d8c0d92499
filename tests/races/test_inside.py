"""True concurrency on PostgreSQL: calls under way at once, held inside their statements by a lock of the test's. That
they wait is read from the server, so nothing here depends on luck."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.errors import StoreUnavailable
from tasklib.core.task import Claim, Task
from tasklib.stores.protocol import Store
from tasklib.stores.values import ControlChange, NameStats
from tests.conformance.builders import (
    WORKER_A,
    cancelled,
    claim,
    completed,
    expired,
    failed,
    fetch,
    lease_of,
    released,
    submit,
)
from tests.waiting import eventually_async


@pytest.fixture
def race_url(postgres_url: str) -> str:
    return postgres_url


@dataclass
class Server:
    """Two sessions beside the stores: one holds locks, one looks."""

    schema: str
    holder: Any
    looker: Any

    @asynccontextmanager
    async def holding(self, what: str, *values: object) -> AsyncIterator[None]:
        """Locks these rows for as long as the block lasts."""
        async with self.holder.transaction():
            await self.holder.fetch(f"SELECT FROM {self.schema}.{what} FOR UPDATE", *values)
            yield

    async def waiting(self) -> list[int]:
        """Who waits for a row, or for one who waits for it."""
        found = await self.looker.fetch(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1", f"%{self.schema}%"
        )
        return [row["pid"] for row in found]

    async def begin(self, call: Awaitable[Any], number: int) -> "asyncio.Future[Any]":
        """Returns when the call waits inside its statement, as one of so many."""
        begun = asyncio.ensure_future(call)

        async def waits() -> bool:
            assert not begun.done(), f"it did not wait: {begun}"
            return len(await self.waiting()) == number

        await eventually_async(waits)
        return begun


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[Server]:
    address, _, schema = postgres_url.rpartition("schema=")
    holder, looker = [await asyncpg.connect(address.rstrip("?&")) for _ in range(2)]
    yield Server(schema, holder, looker)
    await holder.close()
    await looker.close()


async def _complete(store: Store, held: Claim, task: Task) -> bool:
    return await store.settle([completed(held, "mine")]) == [WriteResult.APPLIED]


async def _fail(store: Store, held: Claim, task: Task) -> bool:
    return await store.settle([failed(held, "mine", final=True)]) == [WriteResult.APPLIED]


async def _release(store: Store, held: Claim, task: Task) -> bool:
    return await store.settle([released(held)]) == [WriteResult.APPLIED]


async def _expire(store: Store, held: Claim, task: Task) -> bool:
    return await store.settle([expired(task)]) == [WriteResult.APPLIED]


async def _extend(store: Store, held: Claim, task: Task) -> bool:
    [extension] = await store.extend(WORKER_A, [lease_of(held)], 600)
    return extension.held


async def _ask(store: Store, held: Claim, task: Task) -> bool:
    return await store.request_cancel([held.id]) == [held.id]


async def _cancel(store: Store, held: Claim, task: Task) -> bool:
    return await store.settle([cancelled(task)]) == [WriteResult.APPLIED]


async def _retry(store: Store, held: Claim, task: Task) -> bool:
    return await store.settle([decide.retry_by_hand(task)]) == [WriteResult.APPLIED]


async def _delete(store: Store, held: Claim, task: Task) -> bool:
    return await store.delete([(task.id, task.version)]) == [WriteResult.APPLIED]


RUNNING = {
    "complete": _complete,
    "fail": _fail,
    "release": _release,
    "expire": _expire,
    "extend": _extend,
    "ask": _ask,
}
LEAVES_THE_CLAIM = {"extend", "ask"}
ENDS_UNDONE = {"fail", "release", "expire"}
FAILED = {"retry": _retry, "delete": _delete}
WAITING = {"retry": _retry, "cancel": _cancel}


async def test_the_first_of_two_that_wait_for_a_running_task_wins(stores: Sequence[Store], server: Server):
    """Faults 6 and 20. Both have seen the same row and wait for its lock; the second finds, inside its statement, that
    its guard no longer holds."""
    for (first, one), (second, other) in itertools.permutations(RUNNING.items(), 2):
        task_id = await submit(stores[0])
        [held] = await claim(stores[0], lease=1000)
        _advance(stores)
        task = await fetch(stores[0], task_id)
        async with server.holding("tasks WHERE id = $1", task_id):
            begun = [
                await server.begin(one(stores[1], held, task), 1),
                await server.begin(other(stores[2], held, task), 2),
            ]
        won = await asyncio.gather(*begun)
        # An extension takes nothing from its holder, but from a janitor that saw the lease before it.
        both = first in LEAVES_THE_CLAIM and not (first == "extend" and second == "expire")
        assert won == [True, both], (first, second)
        after = await fetch(stores[0], task_id)
        assert after.version == held.version + sum(
            1 for verb, wins in zip((first, second), won, strict=True) if wins and verb not in LEAVES_THE_CLAIM
        )
        if first == "ask" and second in ENDS_UNDONE:
            assert after.state == "cancelled", "the request came while the outcome waited for the row"
        if after.completed_at is None:
            await stores[0].settle([completed(held) if after.state == "running" else cancelled(after)])


async def test_the_first_of_two_that_wait_for_a_finished_task_wins(stores: Sequence[Store], server: Server):
    """Fault 20. An operator's retry and a delete of what has failed, and those that come too late for it."""
    for (first, one), (second, other) in itertools.permutations(FAILED.items(), 2):
        await submit(stores[0])
        [held] = await claim(stores[0])
        await stores[0].settle([failed(held, final=True)])
        task = await fetch(stores[0], held.id)
        async with server.holding("tasks WHERE id = $1", task.id):
            begun = [
                await server.begin(one(stores[1], held, task), 1),
                await server.begin(other(stores[2], held, task), 2),
            ]
        assert await asyncio.gather(*begun) == [True, False], (first, second)
        [after] = await stores[0].get([task.id])
        assert (after is None) == (first == "delete")
        assert not await _complete(stores[3], held, task)
        stats = (await stores[0].stats()).get("work", NameStats())
        assert (stats.failed, stats.pending) == (0, int(first == "retry"))
        if after is not None:
            await stores[0].settle([cancelled(after)])
            await stores[0].delete([(after.id, after.version + 1)])


async def test_the_first_of_two_that_wait_for_a_waiting_task_wins(stores: Sequence[Store], server: Server):
    """Fault 20. Nobody holds it, so the version alone tells that somebody else was first."""
    for (first, one), (_, other) in itertools.permutations(WAITING.items(), 2):
        await submit(stores[0])
        [held] = await claim(stores[0])
        await stores[0].settle([failed(held, delay=60)])
        task = await fetch(stores[0], held.id)
        async with server.holding("tasks WHERE id = $1", task.id):
            begun = [
                await server.begin(one(stores[1], held, task), 1),
                await server.begin(other(stores[2], held, task), 2),
            ]
        assert await asyncio.gather(*begun) == [True, False], first
        after = await fetch(stores[0], task.id)
        assert (after.state, after.version) == ("pending" if first == "retry" else "cancelled", task.version + 1)
        if first == "retry":
            assert await _cancel(stores[0], held, after)


async def test_a_claim_that_waits_does_not_take_what_was_cancelled_meanwhile(stores: Sequence[Store], server: Server):
    """Fault 20. The claim has begun, and waits for its limit's lock; a cancel comes and is over before it goes on."""
    await stores[0].control(ControlChange(name="work", concurrency=1))
    task_id = await submit(stores[0])
    task = await fetch(stores[0], task_id)
    async with server.holding("task_controls"):
        claiming = await server.begin(claim(stores[1]), 1)
        assert await stores[2].settle([cancelled(task)]) == [WriteResult.APPLIED]
    assert await claiming == []
    assert (await fetch(stores[0], task_id)).state == "cancelled"


async def test_claims_that_wait_for_one_limit_do_not_exceed_it(stores: Sequence[Store], server: Server):
    """Fault 20. Each counts what runs after its wait, not before it."""
    await stores[0].control(ControlChange(name="work", concurrency=1))
    ids = [await submit(stores[0]) for _ in range(3)]
    async with server.holding("task_controls"):
        begun = [await server.begin(claim(store, 3), number) for number, store in enumerate(stores[1:4], start=1)]
    claims = [each for found in await asyncio.gather(*begun) for each in found]
    assert [each.id for each in claims] == ids[:1]


async def test_a_session_that_dies_inside_a_claim_leaves_nothing(stores: Sequence[Store], server: Server):
    """Fault 2. Killed between the count and the mark: nothing is claimed, nothing is counted, the next one gets it."""
    await stores[0].control(ControlChange(name="work", concurrency=1))
    task_id = await submit(stores[0])
    before = await fetch(stores[0], task_id)
    async with server.holding("task_controls"):
        claiming = await server.begin(claim(stores[1]), 1)
        await _kill(server)
        with pytest.raises(StoreUnavailable):
            await claiming
    assert await fetch(stores[0], task_id) == before
    assert [each.id for each in await claim(stores[2])] == [task_id]


async def test_a_session_that_dies_inside_a_settle_settles_once(stores: Sequence[Store], server: Server):
    """Fault 2. The store sends it again on another connection; row and counters move once."""
    task_id = await submit(stores[0])
    [held] = await claim(stores[0])
    async with server.holding("tasks WHERE id = $1", task_id):
        settling = await server.begin(stores[1].settle([completed(held, "mine")]), 1)
        await _kill(server)
    assert await settling == [WriteResult.APPLIED]
    task = await fetch(stores[0], task_id)
    assert (task.version, task.result) == (held.version + 1, {"value": "mine"})
    assert (await stores[0].stats())["work"].completed == 1


async def _kill(server: Server) -> None:
    [waiting] = await server.waiting()
    assert await server.looker.fetchval("SELECT pg_terminate_backend($1, 10000)", waiting)


def _advance(stores: Sequence[Store]) -> None:
    for store in stores:
        store.clock_offset += 1001
