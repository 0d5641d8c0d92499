"""An empty database gets its schema at first use, however many come at once."""

import asyncio
from pathlib import Path

import apsw
import psycopg
import pytest

from tasklib.core.errors import StoreClosed
from tasklib.engine.backends import Backend, make_store
from tasklib.engine.config import Config
from tasklib.stores.protocol import Store
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.sql.sqlite import SqliteStore
from tests.conformance.builders import fetch, submit


def make(url: str) -> Backend:
    return make_store(Config(database_url=url))


async def test_several_may_open_an_empty_database_at_once(backend_url: str):
    stores = [make(backend_url) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    task_id = await submit(stores[0])
    for store in stores:
        assert (await fetch(store, task_id)).id == task_id
        assert await store.schema_version() == len(store.migration_sql())
        await store.close()


async def test_several_may_migrate_an_empty_database_at_once(backend_url: str):
    """Fault 23, at once: one makes the tables, the others find them."""
    stores = [make(backend_url) for _ in range(4)]
    steps = await asyncio.gather(*(store.migrate() for store in stores))
    names = [name for name, _ in stores[0].migration_sql()]
    assert sorted(steps, key=len) == [[], [], [], names]
    for store in stores:
        await store.close()


async def test_a_plan_names_the_steps_and_takes_none(backend_url: str):
    store = make(backend_url)
    assert await store.schema_version() is None
    assert await store.migrate(plan=True) == [name for name, _ in store.migration_sql()]
    assert await store.schema_version() is None
    await store.close()


async def test_what_was_written_is_there_after_everybody_left(backend_url: str):
    first = make(backend_url)
    await first.open()
    task_id = await submit(first, payload={"kept": True})
    await first.close()
    second: Store = make(backend_url)
    await second.open()
    assert (await fetch(second, task_id)).kwargs == {"kept": True}
    await second.close()


async def test_a_store_that_was_never_opened_is_closed(backend_url: str):
    with pytest.raises(StoreClosed):
        await make(backend_url).now()


async def test_the_printed_scripts_make_a_schema_that_a_store_accepts(sqlite_url: str, postgres_url: str):
    """`tasklib migrate --sql` is for people who apply it themselves."""
    path = sqlite_url.removeprefix("sqlite:///")
    connection = apsw.Connection(path)
    for _, script in SqliteStore(sqlite_url).migration_sql():
        connection.execute(script)
    connection.close()
    with psycopg.connect(postgres_url.partition("?")[0], autocommit=True) as server:
        for _, script in PostgresStore(postgres_url).migration_sql():
            server.execute(script)
    for store in (SqliteStore(sqlite_url), PostgresStore(postgres_url)):
        await store.open()
        assert await store.migrate(plan=True) == []
        await store.close()


async def test_a_check_up_before_the_first_use_warns_and_makes_nothing(sqlite_url: str, postgres_url: str):
    for url in (sqlite_url, postgres_url):
        store = make(url)
        findings = await store.check_up()
        assert {finding.level for finding in findings} - {"ok"} == {"warning"}
        assert await store.schema_version() is None
        await store.close()
    assert not Path(sqlite_url.removeprefix("sqlite:///")).exists()
