"""Through a real PgBouncer in transaction mode: no statement may rest on what the session was told before."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest

from tasklib import Config, TaskState
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.values import Filter
from tests.conformance import OpenStore
from tests.conformance.batches import Batches
from tests.conformance.cancelling import Cancelling
from tests.conformance.claim_by_id import Taking
from tests.conformance.claiming import Claiming
from tests.conformance.controls import ControlsKept
from tests.conformance.deleting import Deleting
from tests.conformance.due import DueTimes
from tests.conformance.filters import Filters
from tests.conformance.guards import Guards
from tests.conformance.keys import Keys
from tests.conformance.leases import Leases
from tests.conformance.limits import ConcurrencyLimits, RateLimits
from tests.conformance.lost import LostLeases
from tests.conformance.pausing import Pausing
from tests.conformance.races import Races
from tests.conformance.reads import Looking
from tests.conformance.schema import Schema
from tests.conformance.settling import Settling
from tests.conformance.submitting import Submitting
from tests.conformance.values import Values
from tests.faults.pgbouncer import PgBouncer, pgbouncer
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import fleet_on

pytestmark = pytest.mark.infrastructure


@pytest.fixture(scope="module")
def pooler(postgres_server: str) -> Iterator[PgBouncer]:
    with pgbouncer(postgres_server) as pooler:
        yield pooler


@pytest.fixture
def pooled_url(pooler: PgBouncer, postgres_url: str) -> str:
    """A schema of one's own, through the pooler; nothing in the address says that there is one."""
    return f"{pooler.url}?{postgres_url.partition('?')[2]}"


class TestThroughPgBouncer(
    Submitting,
    Batches,
    Keys,
    Values,
    Claiming,
    DueTimes,
    Settling,
    Guards,
    Leases,
    LostLeases,
    Cancelling,
    Deleting,
    Races,
    Looking,
    Filters,
    ControlsKept,
    Pausing,
    RateLimits,
    ConcurrencyLimits,
    Taking,
    Schema,
):
    """What every store must do, but for wake-ups: behind a pooler nobody is woken, and workers poll."""

    pytestmark: ClassVar = [pytest.mark.asyncio, pytest.mark.infrastructure]

    @pytest.fixture
    async def open_store(self, pooled_url: str) -> AsyncIterator[OpenStore]:
        async with AsyncExitStack() as stack:

            async def open_store() -> PostgresStore:
                store = PostgresStore(pooled_url)
                await store.open()
                stack.push_async_callback(store.close)
                return store

            yield open_store

    @pytest.fixture
    async def store(self, open_store: OpenStore) -> PostgresStore:
        store = await open_store()
        assert isinstance(store, PostgresStore)
        assert not store.traits.wakes, "the pooler was not noticed"
        return store


async def test_workers_drain_a_queue(pooler: PgBouncer, pooled_url: str, tmp_path: Path):
    """PgBouncer in transaction mode: several workers, more connections of clients than of servers, and a caller's own
    transaction."""
    before = pooler.transactions()
    engine = Engine(Config(database_url=pooled_url))
    earlier = use_engine(engine)
    try:
        ids = await app.work.submit_many_async({"number": number} for number in range(2000))
        schema = pooled_url.partition("schema=")[2]
        with psycopg.connect(pooler.url, prepare_threshold=None) as connection:
            connection.execute(f"SET LOCAL search_path = {schema}")
            handle = app.work.options(connection=connection).submit(5)
            assert await engine.get(handle.id) is None, "not there before the commit"
            connection.commit()
            connection.execute(f"SET LOCAL search_path = {schema}")
            handle = app.work.options(connection=connection).submit(6)
            connection.rollback()
            assert await engine.get(handle.id) is None
        with fleet_on(pooled_url, tmp_path) as fleet:
            workers = [fleet.start(4) for _ in range(3)]

            async def all_done() -> bool:
                return (await engine.count(Filter(states=[TaskState.COMPLETED]), 10_000)).value == len(ids) + 1

            await eventually_async(all_done, 90, interval=0.1)
            assert all(worker.process.poll() is None for worker in workers)
            assert set(fleet.starts("work").values()) == {1}
    finally:
        use_engine(earlier)
        await engine.close()
    assert pooler.transactions() > before + 50, "it went through the pooler"
