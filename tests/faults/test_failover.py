"""The primary dies and its standby takes over: what was copied stays, what was not is lost with the primary, and nobody
who held a claim there can settle anything here."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from tasklib import Config, TaskState
from tasklib.core.decide import WriteResult
from tasklib.core.errors import TRANSIENT, StoreUnavailable
from tasklib.engine.engine import Engine
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.values import Filter
from tests.conformance.builders import apply, claim, completed, fetch, submit
from tests.faults.standby import Standby, url_of, wait_for_standby
from tests.queues import as_default
from tests.servers import PostgresServer
from tests.waiting import eventually, eventually_async
from tests.worker import app
from tests.worker.processes import fleet_on

pytestmark = pytest.mark.infrastructure


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def standby(primary: PostgresServer) -> Iterator[Standby]:
    with Standby(primary) as server:
        eventually(server.streams, timeout=30)
        assert server.is_standby()
        yield server


@pytest.fixture
async def queue(primary: PostgresServer, standby: Standby) -> AsyncIterator[Engine]:
    """The standby is named first, and passed over for as long as it takes no writes."""
    async with as_default(Engine(Config(database_url=url_of(standby, primary)))) as engine:
        yield engine


async def test_a_standby_alone_is_refused(standby: Standby, primary: PostgresServer):
    """Fault 13: a worker that reaches a read-only server only says so, within its deadline, and writes nothing."""
    for url in (url_of(standby), f"{url_of(standby)}?target_session_attrs=read-write"):
        store = PostgresStore(url, call_timeout=1.0)
        with pytest.raises(StoreUnavailable, match=r"read-only|read-write"):
            await store.open()
        await store.close()


async def test_an_asynchronous_failover_loses_the_tail_and_nothing_else(
    primary: PostgresServer, standby: Standby, queue: Engine, tmp_path: Path
):
    """Fault 13, asynchronous: the tail is gone; workers find the new primary; what was copied ends as it should; and a
    claim of the old primary settles nothing on the new one, although its version is handed out there again."""
    url = url_of(standby, primary)
    kept = await app.work.submit_many_async({"number": number} for number in range(500))
    holder = PostgresStore(url)
    await holder.open()
    contended = await submit(holder, "held")
    eventually(lambda: _has(standby, contended), timeout=30)
    with fleet_on(url, tmp_path) as fleet:
        workers = [fleet.start(4, call_timeout_seconds=5), fleet.start(4, call_timeout_seconds=5)]
        await eventually_async(lambda: len(fleet.journal) > 100, 60)

        standby.stop_following()
        [stale] = await claim(holder, 1, names=["held"], worker="holder")
        tail = await app.work.submit_many_async({"number": number} for number in range(1000, 1050))
        primary.kill9()
        standby.promote()

        again = await submit(holder, "afterwards")
        there = [found is not None for found in await holder.get([*tail, again])]
        assert there == [False] * 50 + [True], "the tail is lost"
        [fresh] = await claim(holder, 1, names=["held"], worker="another")
        assert (fresh.id, fresh.version) == (stale.id, stale.version), "the same version is given out twice"
        assert await holder.settle([completed(stale, "stale")]) == [WriteResult.STALE]
        await apply(holder, completed(fresh, "fresh"))
        assert (await fetch(holder, contended)).result == {"value": "fresh"}

        async def all_done() -> bool:
            done = Filter(names=["work"], states=[TaskState.COMPLETED])
            return (await queue.count(done, 10_000)).value == len(kept)

        await eventually_async(all_done, 90, interval=0.1)
        for worker in workers:
            assert worker.process.poll() is None, "it found the new primary by itself"
            assert len(worker.said.splitlines()) < 300, "no flood of log lines"
        await _one_outcome_each(queue, kept)
    await holder.close()


def _has(standby: Standby, task_id: UUID) -> bool:
    with psycopg.connect(standby.dsn) as connection:
        return connection.execute("SELECT 1 FROM tasks WHERE id = %s", [task_id]).fetchone() == (1,)


async def _one_outcome_each(queue: Engine, ids: list[UUID]) -> None:
    for task in await (await queue.store()).get(ids):
        assert task is not None, "acknowledged and gone"
        assert (task.state, task.result) == (TaskState.COMPLETED, {"value": task.kwargs["number"] * 2})


async def test_a_synchronous_failover_loses_nothing(
    primary: PostgresServer, standby: Standby, queue: Engine, tmp_path: Path
):
    """Fault 13, synchronous: every submit that returned is there after the failover, runs, and has one outcome."""
    wait_for_standby(primary)
    url = url_of(standby, primary)
    acknowledged: list[UUID] = []
    refused = 0
    over = asyncio.Event()

    async def keep_submitting(number: int) -> None:
        nonlocal refused
        while not over.is_set():
            try:
                acknowledged.extend(await app.work.submit_many_async([{"number": number}] * 5))
            except TRANSIENT:
                refused += 1

    with fleet_on(url, tmp_path) as fleet:
        worker = fleet.start(4, call_timeout_seconds=5)
        submitting = [asyncio.create_task(keep_submitting(number)) for number in range(4)]
        try:
            await eventually_async(lambda: len(fleet.journal) > 100, 60)
            await asyncio.to_thread(primary.kill9)
            before = len(acknowledged)
            await asyncio.to_thread(standby.promote)
            await eventually_async(lambda: len(acknowledged) > before + 100, 60)
        finally:
            over.set()
            await asyncio.gather(*submitting)
        ids = set(acknowledged)
        assert len(ids) == len(acknowledged)

        async def all_done() -> bool:
            return (await queue.stats())["work"].pending + (await queue.stats())["work"].running == 0

        await eventually_async(all_done, 90, interval=0.1)
        assert worker.process.poll() is None
        await _one_outcome_each(queue, acknowledged)
        starts = fleet.starts("work")
        for task in await (await queue.store()).get(acknowledged):
            assert task is not None
            assert starts[str(task.id)] <= task.attempts
