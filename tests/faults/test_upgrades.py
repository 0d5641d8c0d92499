"""The schema is upgraded while the queue is at work. The next step is made up here."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from tasklib import Config, StoreBusy
from tasklib.engine.backends import make_store
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.stores.sql.migrate import STEPS
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.sql.postgres import schema as postgres_schema
from tasklib.stores.sql.queries import Step
from tasklib.stores.sql.sqlite import SqliteStore
from tests.conformance.builders import submit
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import ROOT, fleet_on

NEXT = "9999_made_up"
LONG = 60

Upgrade = Callable[[], None]


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.infrastructure), "postgres"])
def shared_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def add_step(monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    """A migration behind the newest one."""
    name = f"9999_{column}"
    for engine, table in (("postgres", "{schema}.tasks"), ("sqlite", "tasks")):
        step = Step(len(STEPS[engine]) + 1, name, f"ALTER TABLE {table} ADD COLUMN {column} text;")
        monkeypatch.setitem(STEPS, engine, [*STEPS[engine], step])


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """From here on this process is the new version; processes that it starts are still the old one."""

    def upgrade() -> None:
        add_step(monkeypatch, "made_up")

    return upgrade


@asynccontextmanager
async def submits_without_end(url: str) -> AsyncIterator[list[float]]:
    """Somebody who submits all the while, through an engine of the old version: how long each submit took."""
    engine = Engine(Config(database_url=url))
    await engine.store()
    before = use_engine(engine)
    took: list[float] = []
    over = asyncio.Event()

    async def keep_submitting() -> None:
        while not over.is_set():
            begun = time.monotonic()
            await app.work.submit_async(len(took))
            took.append(time.monotonic() - begun)

    submitting = asyncio.create_task(keep_submitting())
    try:
        yield took
    finally:
        over.set()
        await submitting
        use_engine(before)
        await engine.close()


async def test_old_and_new_work_side_by_side(shared_url: str, upgrade: Upgrade, tmp_path: Path):
    """Fault 23: upgraded under load, by three at once and then again, while a worker and somebody who submits are still
    the old version. They go on; only who starts anew must be the new one."""
    with fleet_on(shared_url, tmp_path) as fleet:
        async with submits_without_end(shared_url) as submits:
            old = fleet.start(2, dead_after_seconds=30.0)
            await eventually_async(lambda: len(fleet.journal) > 20, LONG)
            upgrade()
            stores = [make_store(Config(database_url=shared_url)) for _ in range(3)]
            assert await stores[0].migrate(plan=True) == [NEXT]
            steps = await asyncio.gather(*(store.migrate() for store in stores))
            assert sorted(steps, key=len) == [[], [], [NEXT]]
            assert [await store.migrate() for store in stores] == [[], [], []]
            seen = len(submits)
            await eventually_async(lambda: len(submits) > seen + 20, LONG)
            new = stores[0]
            await new.open()
            await submit(new, "work", payload={"number": 1})
        late = fleet.start(1)
        assert await asyncio.to_thread(late.wait) != 0
        assert "upgrade tasklib" in late.said

        async def all_done() -> bool:
            return (await new.stats())["work"].completed == len(submits) + 1

        await eventually_async(all_done, LONG)
        assert old.process.poll() is None
        assert set(fleet.starts("work").values()) == {1}
    for store in stores:
        await store.close()


SLOW = """
    CREATE TABLE slow AS
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000000)
    SELECT max(n) FROM numbers;
"""


async def test_a_migration_takes_longer_than_calls_may(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    """It walks through every row. On PostgreSQL its transaction lifts the limit by itself."""
    store = SqliteStore(sqlite_url)
    await store.open()
    monkeypatch.setitem(STEPS, "sqlite", [*STEPS["sqlite"], Step(len(STEPS["sqlite"]) + 1, NEXT, SLOW)])
    monkeypatch.setattr(store, "_timeout", 0.02)
    assert await store.migrate() == [NEXT]
    await store.close()


@pytest.mark.infrastructure
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_code_of_version_1_works_beside_the_new(engine: str):
    """A short `make upgrade`. It takes the history of this repository."""
    command = [sys.executable, "-m", "tests.upgrade.run", "--engine", engine, "--duration", "12", "--rows", "20000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


async def test_a_migration_that_has_to_wait_does_not_hold_up_the_queue(
    postgres_url: str, upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch
):
    """Fault 23, no long exclusive lock: a forgotten transaction reads the table. PostgreSQL would line everybody up
    behind the migration that waits for it; so the migration steps back and tries again, and then says who must end."""
    server, _, schema = postgres_url.partition("?schema=")
    with psycopg.connect(server) as reader:
        async with submits_without_end(postgres_url) as submits:
            reader.execute(f"SELECT count(*) FROM {schema}.tasks")
            upgrade()
            store = PostgresStore(postgres_url)
            migrating = asyncio.create_task(store.migrate())
            await eventually_async(lambda: max(submits, default=0) > 0.5, LONG)  # it waited for the migration
            seen = len(submits)
            await eventually_async(lambda: len(submits) > seen + 50, LONG)
            assert not migrating.done()
            reader.rollback()
            assert await migrating == [NEXT]
            assert max(submits) < 5, "nobody waited for long"
        monkeypatch.setattr(postgres_schema, "PATIENCE_SECONDS", 0.0)
        add_step(monkeypatch, "another")
        newer = PostgresStore(postgres_url)
        reader.execute(f"SELECT count(*) FROM {schema}.tasks")
        with pytest.raises(StoreBusy, match="transaction"):
            await newer.migrate()
        await newer.close()
    await store.close()
