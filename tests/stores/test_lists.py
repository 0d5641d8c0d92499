"""Lists where the table is strange, or bigger than what is sorted: they show what a plain filter does, and they end."""

import asyncio
import random
import secrets
from collections.abc import AsyncIterator

import apsw
import asyncpg
import pytest

from tasklib.core.errors import StoreBusy
from tasklib.stores import lists
from tasklib.stores.base import Filter, Store
from tasklib.stores.postgres import PostgresStore, calls
from tasklib.stores.sqlite import SqliteStore, lanes, listing
from tasklib.testing.suite.builders import fetch, submit, submit_several
from tasklib.testing.suite.lists import compare, various
from tests.stores.test_hand_edits import Execute, by_hand, store

__all__ = ["by_hand", "store"]

BOUNDS = {
    "few pending": {},
    "a page is found by walking, or not": {"WALKED_ROWS": 2},
    "too many to sort": {"SORTED_ROWS": 2},
    "too many names": {"KNOWN_NAMES": 2},
    "nothing but walking": {"SORTED_ROWS": 0, "KNOWN_NAMES": 0},
}


@pytest.mark.parametrize("bounds", BOUNDS)
async def test_strange_rows_are_listed_too(
    store: Store, by_hand: Execute, monkeypatch: pytest.MonkeyPatch, bounds: str
):
    for name, value in BOUNDS[bounds].items():
        monkeypatch.setattr(lists, name, value)
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    ids = [task.id for task in await various(store, chance, 40)]
    for task_id in chance.sample(ids, 25):
        state = chance.choice(["pending", "running", "completed", "failed", "cancelled", "on hold", "no such state"])
        over = chance.choice(["NULL", "<-5>"])
        ready = chance.choice(["true", "false"])
        worker = chance.choice(["NULL", "'anna'"])
        by_hand(
            f"UPDATE tasks SET state = '{state}', completed_at = {over}, ready = {ready}, worker_id = {worker} "
            f"WHERE id = '{task_id}'"
        )
    await compare(store, [await fetch(store, task_id) for task_id in ids], chance, 50, f"seed {seed}")


async def test_sqlite_lists_what_is_neither_ready_nor_not(sqlite_url: str):
    store = SqliteStore(sqlite_url)
    await store.open()
    task_id = await submit(store)
    connection = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    connection.execute("UPDATE tasks SET ready = 2")
    connection.close()
    assert [task.id for task in (await store.page(Filter(states=["pending"]), limit=9)).tasks] == [task_id]
    await store.close()


@pytest.fixture
async def postgres(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def sqlite(sqlite_url: str) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(sqlite_url)
    await store.open()
    yield store
    await store.close()


async def test_a_list_on_postgres_is_given_up_in_time(postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calls, "READING_SECONDS", 0.05)
    target = postgres._calls.target
    host, port = target.hosts[0]
    other = await asyncpg.connect(host=host, port=port, **target.arguments)
    async with other.transaction():
        await other.execute(f"LOCK TABLE {target.quoted_schema}.tasks IN ACCESS EXCLUSIVE MODE")
        for look in (postgres.page(Filter(), limit=5), postgres.count(Filter(), 5), postgres.stats()):
            with pytest.raises(StoreBusy, match=r"took longer than 0\.05 s"):
                await look
    await other.close()
    assert (await postgres.page(Filter(), limit=5)).tasks == [], "the connection is whole again"


async def test_a_list_on_sqlite_is_given_up_in_time(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    monkeypatch.setattr(lanes, "READING_SECONDS", 0.05)
    monkeypatch.setattr(listing, "count", lambda connection, **_: connection.execute(endless).fetchall())
    async with asyncio.timeout(20):
        with pytest.raises(StoreBusy, match="in time"):
            await sqlite.count(Filter(), 5)
    await submit_several(sqlite, 2)
    assert len((await sqlite.page(Filter(), limit=5)).tasks) == 2
