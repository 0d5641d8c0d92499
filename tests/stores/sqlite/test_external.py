"""Submitting on the caller's own connection to the SQLite file, and the connections that are refused."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import apsw
import psycopg
import pytest
import sqlalchemy
import sqlalchemy.orm

from tasklib.core.errors import (
    SchemaMismatch,
    StoreBusy,
    StoreError,
    Unsupported,
)
from tasklib.core.task import NewTask
from tasklib.stores.sql.sqlite import SqliteStore
from tasklib.stores.values import Hint
from tests.conformance.builders import (
    WORK,
    fetch,
    new_task,
    submit,
    within_deadline,
)
from tests.stores.conftest import number_of


async def test_a_task_commits_with_the_callers_work(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN")
    [inserted] = store.insert_on(connection, [new_task()])
    assert await store.get([inserted.id]) == [None]
    connection.execute("COMMIT")
    assert (await fetch(store, inserted.id)).id == inserted.id


async def test_a_task_rolls_back_with_the_callers_work(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN")
    [inserted] = store.insert_on(connection, [new_task(key="once")])
    connection.execute("ROLLBACK")
    assert await store.get([inserted.id]) == [None]
    assert await store.get_by_key("once") is None


async def test_a_failed_submit_leaves_the_callers_transaction(store: SqliteStore, connection: apsw.Connection):
    connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO orders VALUES (1)")
    broken = NewTask(id=uuid4(), name=WORK, kwargs="{not json")
    with pytest.raises(StoreError, match="kwargs is JSON"):
        store.insert_on(connection, [new_task() for _ in range(300)] + [broken])
    connection.execute("COMMIT")
    assert connection.execute("SELECT count(*) FROM orders").get == 1
    assert await number_of(store) == 0


async def test_a_key_on_the_callers_connection(store: SqliteStore, connection: apsw.Connection):
    first = await submit(store, key="once")
    [again] = store.insert_on(connection, [new_task(key="once")])
    assert (again.id, again.created) == (first, False)


async def test_listeners_hear_of_the_callers_commit_and_not_of_a_rollback(
    store: SqliteStore, connection: apsw.Connection
):
    heard: list[Hint] = []
    event = asyncio.Event()

    def wake(hint: Hint) -> None:
        heard.append(hint)
        event.set()

    commits: list[str] = []

    def committing() -> bool:
        commits.append("theirs")
        return False

    connection.set_commit_hook(committing)
    store.listen(wake)
    connection.execute("BEGIN")
    store.insert_on(connection, [new_task("dropped")])
    connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    store.insert_on(connection, [new_task("kept")])
    connection.execute("COMMIT")
    await within_deadline(event, "a wake-up at the caller's commit")
    assert heard == ["kept"]
    event.clear()
    store.insert_on(connection, [new_task("alone")])
    await within_deadline(event, "a wake-up without a transaction")
    assert heard == ["kept", "alone"]
    assert commits == ["theirs", "theirs"], "the caller's own hook went missing"


async def test_the_callers_own_form_of_rows_does_not_matter(store: SqliteStore, connection: apsw.Connection):
    connection.row_trace = lambda _, row: {"row": row}
    connection.exec_trace = lambda *_: True
    first, again = store.insert_on(connection, [new_task(key="once"), new_task(key="once")])
    assert (first.created, again.created, first.id == again.id) == (True, False, True)


async def test_a_submit_waits_for_the_lock_of_another(store: SqliteStore, connection: apsw.Connection, path: Path):
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    call = asyncio.get_running_loop().run_in_executor(None, store.insert_on, connection, [new_task()])
    await store.now()
    assert not call.done()
    other.execute("COMMIT")
    other.close()
    [inserted] = await call
    assert (await fetch(store, inserted.id)).name == WORK


async def test_a_transaction_that_can_no_longer_write_is_told_why(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM tasks").fetchall()
    await submit(store)
    with pytest.raises(StoreBusy, match="BEGIN IMMEDIATE"):
        store.insert_on(connection, [new_task()])
    connection.execute("ROLLBACK")
    store.insert_on(connection, [new_task()])


async def test_a_store_need_not_be_open_for_it(sqlite_url: str, store: SqliteStore, connection: apsw.Connection):
    [inserted] = SqliteStore(sqlite_url).insert_on(connection, [new_task()])
    assert (await fetch(store, inserted.id)).id == inserted.id


def test_a_database_without_the_queue_is_refused(sqlite_url: str, path: Path):
    connection = apsw.Connection(str(path))
    with pytest.raises(SchemaMismatch, match="tasklib migrate"):
        SqliteStore(sqlite_url).insert_on(connection, [new_task()])
    connection.close()


def test_another_file_is_refused(store: SqliteStore, tmp_path: Path):
    connection = apsw.Connection(str(tmp_path / "other.db"))
    with pytest.raises(Unsupported, match=r"other\.db"):
        store.insert_on(connection, [new_task()])
    connection.close()


def test_a_queue_in_memory_shares_no_file(memory_url: str):
    connection = apsw.Connection(":memory:")
    with pytest.raises(Unsupported, match="in memory"):
        SqliteStore(memory_url).insert_on(connection, [new_task()])
    connection.close()


def foreign_connections() -> Iterator[tuple[str, object]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        yield "sqlite3", connection
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as lent:
        yield "SQLAlchemy", lent
    with sqlalchemy.orm.Session(engine) as session:
        yield "SQLAlchemy", session
    engine.dispose()  # its pool keeps what was given back open
    yield "psycopg", psycopg.Connection.__new__(psycopg.Connection)
    yield "builtins.dict", {}


def test_other_connections_are_refused_by_name(sqlite_url: str):
    store = SqliteStore(sqlite_url)
    for name, connection in foreign_connections():
        with pytest.raises(Unsupported, match=name) as caught:
            store.insert_on(connection, [new_task()])
        if name in ("sqlite3", "SQLAlchemy"):
            assert "undo each other's locks" in str(caught.value)
            assert "apsw.Connection" in str(caught.value)
