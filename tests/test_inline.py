"""Tasks in the test's own thread and transaction: nothing is committed, and handlers see what the test has done."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tasklib import Retry, Snooze, TaskFailed, TaskHandle, TaskState, Unsupported, current_task, flow, task, tq
from tasklib.api.sync import run_sync
from tasklib.core.registry import Registry
from tasklib.testing import QueueForTests, fresh_queue

registry = Registry()
ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@task(registry=registry)
def note(text: str) -> dict[str, Any]:
    ran.append((text, threading.get_ident(), current_task().attempt))
    return {"text": text, "pair": (1, 2)}


@task(registry=registry)
async def note_async(text: str) -> str:
    ran.append((text, threading.get_ident(), current_task().attempt))
    return text


@task(registry=registry, max_retries=1)
def fails(text: str) -> None:
    ran.append((text, threading.get_ident(), current_task().attempt))
    raise ValueError(f'no "{text}" \\ {{here}}')


@task(registry=registry)
def snoozes() -> None:
    raise Snooze(delay=60)


@task(registry=registry)
def asks_again() -> None:
    raise Retry("later", delay=30)


# -- inline, in memory -------------------------------------------------------------------------------------------------


def test_inline_runs_a_submit_in_its_own_thread(tasklib_queue: QueueForTests):
    with tasklib_queue.inline(registry=registry):
        done, other = note.submit("a"), note_async.submit("b")
        assert ran == [("a", threading.get_ident(), 1), ("b", threading.get_ident(), 1)]
        assert done.get().result == {"value": {"text": "a", "pair": [1, 2]}}  # through JSON, as in a worker
        assert (done.result(1), other.result(1)) == ({"text": "a", "pair": [1, 2]}, "b")
    assert note.submit("c").get().state == TaskState.PENDING


async def test_inline_awaits_async_handlers(tasklib_queue: QueueForTests):
    with tasklib_queue.inline(registry=registry):
        assert await (await note_async.submit_async("a")).result_async(1) == "a"
        assert await (await note.submit_async("b")).result_async(1) == {"text": "b", "pair": [1, 2]}
        assert note_async.submit("c").result(1) == "c"  # a blocking call in a running loop
    assert [text for text, _, _ in ran] == ["a", "b", "c"]


def test_inline_leaves_failures_delays_and_snoozes_as_a_worker_does(tasklib_queue: QueueForTests):
    with tasklib_queue.inline(registry=registry):
        failing, snoozed, again = fails.submit("a"), snoozes.submit(), asks_again.submit()
        later = note.options(delay_seconds=60).submit("later")
    assert failing.get().waiting
    assert 'ValueError: no "a"' in str(failing.get().error)
    assert (snoozed.get().state, snoozed.get().attempts) == (TaskState.PENDING, 0)
    assert (again.get().due_at - tasklib_queue.now).total_seconds() == pytest.approx(30, abs=5)
    assert later.get().state == TaskState.PENDING
    tasklib_queue.advance(60)
    tasklib_queue.drain(registry=registry, names=["fails", "note"])
    with pytest.raises(TaskFailed):
        failing.result(1)
    assert later.get().state == TaskState.COMPLETED


def test_inline_runs_what_handlers_submit_and_what_tq_adds(tasklib_queue: QueueForTests):
    @task(registry=registry, name="chain")
    def chain(depth: int) -> int:
        return 0 if depth == 0 else 1 + chain.submit(depth - 1).result(1)

    try:
        with tasklib_queue.inline(registry=registry):
            assert chain.submit(3).result(1) == 3
            tq.init(enable_worker=False)
            tq("note").add({"text": "fluent"})
        assert [text for text, _, _ in ran] == ["fluent"]
    finally:
        registry.remove("chain")


def test_the_clock_can_be_read(tasklib_queue: QueueForTests):
    before = tasklib_queue.now
    tasklib_queue.advance(3600)
    assert 3600 <= (tasklib_queue.now - before).total_seconds() < 3700


def test_a_queue_in_memory_takes_submits_on_any_connection(tasklib_queue: QueueForTests):
    engine = sa.create_engine("sqlite://")
    with Session(engine) as session:
        session.execute(sa.text("CREATE TABLE orders (id INTEGER)"))
        handle = note.options(connection=session).submit("a")
        assert ran == []
        tasklib_queue.drain(connection=session, registry=registry)
        assert ran == [("a", threading.get_ident(), 1)]
        assert handle.result(1)["text"] == "a"
        assert [each.id for each in tasklib_queue.tasks(connection=session)] == [handle.id]
    engine.dispose()


# -- in a transaction of PostgreSQL ------------------------------------------------------------------------------------


@pytest.fixture
def in_postgres(postgres_url: str) -> Iterator[QueueForTests]:
    with fresh_queue(database_url=postgres_url) as queue:
        run_sync(queue.engine.store())  # makes the schema
        yield queue


@contextmanager
def _psycopg(url: str) -> Iterator[Any]:
    connection = psycopg.connect(url)
    yield connection
    connection.rollback()
    connection.close()


@contextmanager
def _psycopg2(url: str) -> Iterator[Any]:
    connection = psycopg2.connect(url)
    yield connection
    connection.rollback()
    connection.close()


@contextmanager
def _sqlalchemy(url: str) -> Iterator[Any]:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as outer, outer.begin() as transaction:
        with Session(outer, join_transaction_mode="create_savepoint") as session:
            yield session
        transaction.rollback()
    engine.dispose()


@contextmanager
def _sqlalchemy2(url: str) -> Iterator[Any]:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg2://"))
    with engine.connect() as connection:
        yield connection
        connection.rollback()
    engine.dispose()


KINDS = {"psycopg": _psycopg, "psycopg2": _psycopg2, "Session": _sqlalchemy, "Connection": _sqlalchemy2}


@pytest.fixture(params=KINDS)
def connection(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[Any]:
    with KINDS[request.param](postgres_url.partition("?")[0]) as connection:
        yield connection


def test_drain_on_a_connection_stays_in_its_thread_and_transaction(in_postgres: QueueForTests, connection: Any):
    handle, other = (kind.options(connection=connection, tags={"a": "ü"}).submit("x") for kind in (note, note_async))
    assert in_postgres.tasks() == []
    in_postgres.drain(connection=connection, registry=registry)
    assert ran == [("x", threading.get_ident(), 1)] * 2
    assert handle.result(1) == {"text": "x", "pair": [1, 2]}
    assert other.get().state == TaskState.COMPLETED
    assert [found.state for found in in_postgres.tasks("note", connection=connection)] == [TaskState.COMPLETED]
    assert in_postgres.tasks() == [], "nothing has left the transaction"


def test_failures_and_retries_on_a_connection(in_postgres: QueueForTests, connection: Any):
    failing = fails.options(connection=connection).submit("x")
    snoozed = snoozes.options(connection=connection).submit()
    for attempts in (1, 2):
        in_postgres.drain(connection=connection, registry=registry)
        assert failing.get().attempts == attempts
        in_postgres.advance(10)
    assert failing.get().state == TaskState.FAILED
    assert [each["error"].splitlines()[-1] for each in failing.get().history] == ['ValueError: no "x" \\ {here}'] * 2
    assert snoozed.get().state == TaskState.PENDING
    assert in_postgres.tasks() == []


def test_inline_on_a_connection(in_postgres: QueueForTests, connection: Any):
    with in_postgres.inline(registry=registry):
        assert note.options(connection=connection).submit("x").result(1) == {"text": "x", "pair": [1, 2]}
        assert fails.options(connection=connection).submit("y").get().waiting
    assert [(text, thread) for text, thread, _ in ran] == [(text, threading.get_ident()) for text in "xy"]
    assert in_postgres.tasks() == []


def test_a_handler_that_breaks_the_transaction_is_undone_and_the_test_goes_on(
    in_postgres: QueueForTests, connection: Any
):
    execute = _execute(connection)
    execute("CREATE TEMPORARY TABLE orders (id int PRIMARY KEY)")
    execute("INSERT INTO orders VALUES (1)")

    @task(registry=registry, name="order", max_retries=0)
    def order() -> None:
        execute("INSERT INTO orders VALUES (2)")
        execute("INSERT INTO orders VALUES (1)")

    try:
        handle = order.options(connection=connection).submit()
        in_postgres.drain(connection=connection, registry=registry)
        assert "duplicate key" in str(handle.get().error)
        assert handle.get().state == TaskState.FAILED
        assert execute("SELECT id FROM orders") == [(1,)]
    finally:
        registry.remove("order")


def _execute(connection: Any) -> Any:
    def execute(text: str) -> Any:
        if isinstance(connection, (Session, sa.Connection)):
            result: Any = connection.execute(sa.text(text))
            return [tuple(row) for row in result] if result.returns_rows else None
        with connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else None

    return execute


@pytest.fixture(params=["asyncpg", "psycopg", "AsyncSession", "AsyncConnection"])
async def async_connection(request: pytest.FixtureRequest, postgres_url: str) -> AsyncIterator[Any]:
    url = postgres_url.partition("?")[0]
    if request.param == "asyncpg":
        connection = await asyncpg.connect(url)
        transaction = connection.transaction()
        await transaction.start()
        yield connection
        await transaction.rollback()
        await connection.close()
    elif request.param == "psycopg":
        async with await psycopg.AsyncConnection.connect(url) as connection:
            yield connection
            await connection.rollback()
    else:
        engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
        kind = AsyncSession(engine) if request.param == "AsyncSession" else AsyncConnection(engine)
        async with kind as connection:
            yield connection
            await connection.rollback()
        await engine.dispose()


async def test_an_async_connection_runs_both_kinds_of_handlers(in_postgres: QueueForTests, async_connection: Any):
    bound = [kind.options(connection=async_connection) for kind in (note, note_async, fails)]
    handles = [await each.submit_async("x") for each in bound]
    await in_postgres.drain_async(connection=async_connection, registry=registry)
    assert [(await each.get_async()).state for each in handles] == ["completed", "completed", "failed"]
    with in_postgres.inline(registry=registry):
        assert await (await bound[1].submit_async("y")).result_async(1) == "y"
    assert {thread for _, thread, _ in ran} == {threading.get_ident()}
    assert len(await in_postgres.tasks_async("note", connection=async_connection)) == 1
    assert len(await in_postgres.tasks_async(connection=async_connection)) == 4
    assert in_postgres.tasks() == await in_postgres.tasks_async() == []
    with pytest.raises(Unsupported, match="drain_async"):
        in_postgres.drain(connection=async_connection, registry=registry)


def test_other_queues_cannot_be_drained_on_a_connection(sqlite_url: str):
    with fresh_queue(database_url=sqlite_url) as queue, pytest.raises(Unsupported, match="sqlite queue"):
        queue.drain(connection=object(), registry=registry)


# -- flows -------------------------------------------------------------------------------------------------------------


@task(registry=registry)
def length(text: str) -> int:
    ran.append(text)
    return len(text)


@task(registry=registry)
async def plus(number: int, more: int) -> int:
    return number + more


@task(registry=registry)
def told() -> list[Any]:
    return [(parent.name, parent.state, parent.value) for parent in current_task().parents()]


def a_flow(connection: Any = None) -> tuple[TaskHandle[list[Any]], TaskHandle[None]]:
    with flow("in a test", connection=connection):
        number = length.submit("four")
        total = plus.submit(number.output, more=1)
        broken = fails.options(max_retries=0).submit("x")
        cut_off = snoozes.options(after=[broken]).submit()
        return told.options(after=[total, broken], on="end").submit(), cut_off


A_FLOW = [["plus", "completed", 5], ["fails", "failed", None]]


def test_a_flow_is_drained_and_runs_inline(tasklib_queue: QueueForTests):
    last, cut_off = a_flow()
    assert ran == []
    tasklib_queue.drain(registry=registry)
    assert (last.result(), cut_off.get().state) == (A_FLOW, TaskState.CANCELLED)
    with tasklib_queue.inline(registry=registry):
        last, cut_off = a_flow()
        assert (last.result(), cut_off.get().state) == (A_FLOW, TaskState.CANCELLED)


async def test_a_flow_runs_inline_where_it_is_awaited(tasklib_queue: QueueForTests):
    with tasklib_queue.inline(registry=registry):
        async with flow():
            number = await length.submit_async("four")
            total = await plus.submit_async(number.output, more=1)
        assert await total.result_async() == 5


def test_a_flow_on_a_connection(in_postgres: QueueForTests, connection: Any):
    last, cut_off = a_flow(connection)
    in_postgres.drain(registry=registry, connection=connection)
    assert (last.result(), cut_off.get().state) == (A_FLOW, TaskState.CANCELLED)
    with in_postgres.inline(registry=registry):
        last, cut_off = a_flow(connection)
        assert (last.result(), cut_off.get().state) == (A_FLOW, TaskState.CANCELLED)
