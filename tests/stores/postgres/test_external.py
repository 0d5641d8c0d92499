"""Submitting on the caller's own connection: it commits and rolls back with the caller's transaction."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from typing import Any
from urllib.parse import urlsplit

import apsw
import asyncpg
import django
import psycopg
import psycopg2
import pytest
import sqlalchemy
from django.conf import settings
from django.db.utils import ConnectionHandler
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tasklib.core.errors import SchemaMismatch, TaskConflict, TaskLibError, Unsupported
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import NewTask
from tasklib.core.unique import Unique
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.values import Hint, Inserted
from tests.conformance.builders import WORK, WORKER_A, fetch, heartbeat_of, new_task, submit, within_deadline

Finish = Callable[[], Awaitable[None]]


# Each gives the connection to submit on, a commit and a rollback.


@asynccontextmanager
async def with_asyncpg(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    connection = await asyncpg.connect(server)
    transaction = connection.transaction()
    await transaction.start()
    yield connection, transaction.commit, transaction.rollback
    await connection.close()


@asynccontextmanager
async def with_asyncpg_pool(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    async with asyncpg.create_pool(server, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield connection, transaction.commit, transaction.rollback


@asynccontextmanager
async def with_psycopg(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    with psycopg.connect(server, row_factory=dict_row) as connection:
        yield connection, awaitable(connection.commit), awaitable(connection.rollback)


@asynccontextmanager
async def with_psycopg_cursor(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    with psycopg.connect(server) as connection, connection.cursor() as cursor:
        yield cursor, awaitable(connection.commit), awaitable(connection.rollback)


@asynccontextmanager
async def with_psycopg_async(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    async with await psycopg.AsyncConnection.connect(server, row_factory=dict_row) as connection:
        yield connection, connection.commit, connection.rollback


@asynccontextmanager
async def with_psycopg_async_cursor(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    async with await psycopg.AsyncConnection.connect(server) as connection, connection.cursor() as cursor:
        yield cursor, connection.commit, connection.rollback


@asynccontextmanager
async def with_psycopg2(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    connection = psycopg2.connect(server)
    yield connection, awaitable(connection.commit), awaitable(connection.rollback)
    connection.close()


@asynccontextmanager
async def with_sqlalchemy_connection(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    engine = sqlalchemy.create_engine(server.replace("postgresql", "postgresql+psycopg", 1))
    with engine.connect() as connection:
        yield connection, awaitable(connection.commit), awaitable(connection.rollback)
    engine.dispose()


@asynccontextmanager
async def with_sqlalchemy_session(server: str, driver: str = "psycopg") -> AsyncIterator[tuple[Any, Finish, Finish]]:
    engine = sqlalchemy.create_engine(server.replace("postgresql", f"postgresql+{driver}", 1))
    with Session(engine) as session:
        yield session, awaitable(session.commit), awaitable(session.rollback)
    engine.dispose()


def with_sqlalchemy_on_psycopg2(server: str) -> AbstractAsyncContextManager[tuple[Any, Finish, Finish]]:
    return with_sqlalchemy_session(server, "psycopg2")


@asynccontextmanager
async def with_sqlalchemy_async_session(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    engine = create_async_engine(server.replace("postgresql", "postgresql+asyncpg", 1))
    async with AsyncSession(engine) as session:
        yield session, session.commit, session.rollback
    await engine.dispose()


@asynccontextmanager
async def with_sqlalchemy_async_connection(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    engine = create_async_engine(server.replace("postgresql", "postgresql+psycopg", 1))
    async with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback
    await engine.dispose()


@asynccontextmanager
async def with_django(server: str) -> AsyncIterator[tuple[Any, Finish, Finish]]:
    if not settings.configured:
        settings.configure()
        django.setup()
    parts = urlsplit(server)
    given = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username,
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname,
        "PORT": parts.port,
    }

    def begin() -> Any:
        connection = ConnectionHandler({"default": given})["default"]
        connection.set_autocommit(False)
        return connection

    # Django refuses sync calls in a thread that runs a loop: this caller is in other threads.
    connection = await asyncio.to_thread(begin)
    connection.inc_thread_sharing()
    yield connection, in_thread(connection.commit), in_thread(connection.rollback)
    await asyncio.to_thread(connection.close)


DRIVERS = [
    with_asyncpg,
    with_asyncpg_pool,
    with_psycopg,
    with_psycopg_cursor,
    with_psycopg_async,
    with_psycopg_async_cursor,
    with_psycopg2,
    with_sqlalchemy_connection,
    with_sqlalchemy_session,
    with_sqlalchemy_on_psycopg2,
    with_sqlalchemy_async_session,
    with_sqlalchemy_async_connection,
    with_django,
]
drivers = pytest.mark.parametrize("driver", DRIVERS, ids=[driver.__name__[5:] for driver in DRIVERS])


def awaitable(call: Callable[[], Any]) -> Finish:
    async def wait() -> None:
        call()

    return wait


def in_thread(call: Callable[[], Any]) -> Finish:
    async def wait() -> None:
        await asyncio.to_thread(call)

    return wait


async def insert_on(store: PostgresStore, connection: Any, *tasks: NewTask) -> list[Inserted]:
    if type(connection).__module__.startswith("django."):
        done = await asyncio.to_thread(store.insert_on, connection, tasks)
        assert isinstance(done, list)
        return done
    answer = store.insert_on(connection, tasks)
    return list(await answer if isinstance(answer, Awaitable) else answer)


@drivers
async def test_it_commits_with_the_caller(store: PostgresStore, postgres_server: str, driver: Any):
    task = new_task(
        payload={"text": "50 % of :these are $1 'quoted' ünïcode \\ %s {braces}", "number": 12345678901234567890},
        tags={"batch": 7},
        priority=3,
        max_retries=5,
        timeout_seconds=9,
        key="once",
        retry_policy=RetryPolicy(base=1.5),
        trace="00-abc",
    )
    nothing = new_task(payload=[])
    async with driver(postgres_server) as (connection, commit, _):
        made = await insert_on(store, connection, task, nothing)
        assert made == [Inserted(task.id, True), Inserted(nothing.id, True)]
        assert await store.get([task.id]) == [None], "not before the commit"
        await commit()
    stored = await fetch(store, task.id)
    assert stored.kwargs == {
        "text": "50 % of :these are $1 'quoted' ünïcode \\ %s {braces}",
        "number": 12345678901234567890,
    }
    assert (stored.tags, stored.priority, stored.max_retries, stored.timeout_seconds) == ({"batch": 7}, 3, 5, 9)
    assert (stored.idempotency_key, stored.trace, stored.state) == ("once", "00-abc", "pending")
    assert stored.retry_policy is not None
    assert stored.retry_policy["base"] == 1.5
    assert stored.scheduled_at == stored.created_at
    assert (await fetch(store, nothing.id)).kwargs == []


@drivers
async def test_it_rolls_back_with_the_caller(store: PostgresStore, postgres_server: str, driver: Any):
    task = new_task(key="once")
    async with driver(postgres_server) as (connection, _, rollback):
        await insert_on(store, connection, task)
        await rollback()
    assert await store.get([task.id]) == [None]
    assert (await store.insert([new_task(key="once")]))[0].created, "the key is free again"


@drivers
async def test_a_key_that_is_taken_answers_with_its_task(store: PostgresStore, postgres_server: str, driver: Any):
    task_id = await submit(store, key="once")
    async with driver(postgres_server) as (connection, commit, _):
        again, another, same = new_task(key="once"), new_task(key="another"), new_task(key="another")
        made = await insert_on(store, connection, again, another, same)
        assert made == [Inserted(task_id, False), Inserted(another.id, True), Inserted(another.id, False)]
        await commit()


@drivers
async def test_a_unique_key_joins_replaces_and_rolls_back(store: PostgresStore, postgres_server: str, driver: Any):
    rule = Unique("k", until="started", conflict="replace")
    [there] = await store.insert([new_task(payload=0, unique=rule)])
    async with driver(postgres_server) as (connection, _, rollback):
        tasks = [new_task(payload=number, unique=Unique(key, "started", "replace")) for number, key in enumerate("kkj")]
        made = await insert_on(store, connection, *tasks)
        assert [(each.id, each.created, each.replaced) for each in made] == [
            (there.id, False, True),
            (there.id, False, True),
            (tasks[2].id, True, False),
        ]
        await rollback()
    assert (await fetch(store, there.id)).kwargs == 0
    assert (await store.insert([new_task(unique=Unique("j"))]))[0].created, "the key is free again"


async def test_delays_count_from_the_database_s_clock(store: PostgresStore, postgres_server: str):
    task = new_task(delay_seconds=90)
    with psycopg.connect(postgres_server) as connection:
        store.insert_on(connection, [task])
    stored = await fetch(store, task.id)
    assert (stored.scheduled_at - stored.created_at).total_seconds() == 90


async def test_a_payload_of_null_is_a_payload(store: PostgresStore, postgres_server: str):
    task = NewTask(id=new_task().id, name=WORK, kwargs="null")
    with psycopg.connect(postgres_server) as connection:
        store.insert_on(connection, [task])
    assert (await fetch(store, task.id)).kwargs is None


async def test_the_store_need_not_be_open(store: PostgresStore, postgres_url: str, postgres_server: str):
    closed = PostgresStore(postgres_url)
    task = new_task()
    with psycopg.connect(postgres_server) as connection:
        assert closed.insert_on(connection, [task]) == [Inserted(task.id, True)]
    assert (await fetch(store, task.id)).id == task.id


async def test_workers_are_woken_by_the_commit(store: PostgresStore, postgres_server: str):
    await store.heartbeat(heartbeat_of(WORKER_A))
    heard: list[Hint] = []
    woken = asyncio.Event()

    def wake(hint: Hint) -> None:
        heard.append(hint)
        woken.set()

    store.listen(wake)
    await within_deadline(woken, "the first wake-up, when listening begins")
    heard.clear()
    woken.clear()
    with psycopg.connect(postgres_server) as connection:
        store.insert_on(connection, [new_task("mail")])
        assert heard == []
    await within_deadline(woken, "a wake-up")
    assert heard == ["mail"]


async def test_a_key_in_an_open_transaction_is_waited_for(store: PostgresStore, postgres_server: str):
    first, second = new_task(key="once"), new_task(key="once")
    async with with_psycopg(postgres_server) as (connection, commit, _):
        await insert_on(store, connection, first)
        waiting = asyncio.ensure_future(store.insert([second]))
        await until_blocked(postgres_server)
        await commit()
        assert await waiting == [Inserted(first.id, False)]


async def test_a_key_that_is_rolled_back_is_the_next_one_s(store: PostgresStore, postgres_server: str):
    """Fault 19: a key whose transaction is rolled back belongs to the next who asked."""
    first, second = new_task(key="once"), new_task(key="once")
    async with with_psycopg(postgres_server) as (connection, _, rollback):
        await insert_on(store, connection, first)
        waiting = asyncio.ensure_future(store.insert([second]))
        await until_blocked(postgres_server)
        await rollback()
        assert await waiting == [Inserted(second.id, True)]


@drivers
@pytest.mark.parametrize("tables", ["", "CREATE TABLE {schema}.tasks (id int)"], ids=["none", "somebody else's"])
async def test_a_database_without_the_queue_is_told_in_a_line(
    postgres_url: str, postgres_server: str, schema: str, driver: Any, tables: str
):
    """Fault 26: a connection that is not the queue's."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(tables.format(schema=schema).encode())
    store = PostgresStore(postgres_url)
    async with driver(postgres_server) as (connection, _, rollback):
        with pytest.raises(SchemaMismatch, match="tasklib migrate") as refusal:
            await insert_on(store, connection, new_task())
        await rollback()
    assert "this connection is not the queue's" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not isinstance(refusal.value.__cause__, (TaskLibError, type(None))), "the driver's own"


@drivers
async def test_what_a_unique_index_keeps_out_is_refused_by_its_name(
    store: PostgresStore, postgres_server: str, schema: str, driver: Any
):
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE UNIQUE INDEX one_waiting ON {schema}.tasks (name) WHERE state = 'pending'".encode())
    await submit(store)
    async with driver(postgres_server) as (connection, _, rollback):
        with pytest.raises(TaskConflict, match="one_waiting") as refusal:
            await insert_on(store, connection, new_task())
        await rollback()
    assert "\n" not in str(refusal.value)
    assert not isinstance(refusal.value.__cause__, (TaskLibError, type(None))), "the driver's own"


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_a_key_that_the_snapshot_cannot_see_is_the_database_s_error(
    store: PostgresStore, postgres_server: str, level: str
):
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}".encode())
        connection.execute("SELECT 1 FROM pg_class LIMIT 1")  # takes the snapshot
        await submit(store, key="once")
        with pytest.raises(psycopg.errors.SerializationFailure) as failure:
            store.insert_on(connection, [new_task(key="once")])
        assert any("run this transaction again" in note for note in failure.value.__notes__)
        connection.rollback()


async def until_blocked(server: str) -> None:
    connection = await asyncpg.connect(server)
    try:
        async with asyncio.timeout(20):
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO%'"
            )
            while not await connection.fetchval(waiting):
                pass
    finally:
        await connection.close()


def strangers() -> Iterator[tuple[Any, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection, "sqlite3.Connection"
    with closing(apsw.Connection(":memory:")) as other:
        yield other, "apsw.Connection"
    memory = sqlalchemy.create_engine("sqlite://")
    yield memory, "sqlalchemy.engine.base.Engine"
    with memory.connect() as lent:
        yield lent, "SQLAlchemy connection to sqlite"
    with Session(memory) as session:
        yield session, "SQLAlchemy connection to sqlite"
    memory.dispose()  # its pool keeps what was given back open
    yield "postgresql://", "builtins.str"
    yield None, "builtins.NoneType"


def test_unknown_connections_are_refused_by_name():
    store = PostgresStore("postgresql://nowhere/app")
    for stranger, name in strangers():
        with pytest.raises(Unsupported, match=name) as refusal:
            store.insert_on(stranger, [new_task()])
        assert "psycopg" in str(refusal.value), "says what is accepted"
