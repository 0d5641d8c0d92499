"""What only the PostgreSQL store does: schemas and their refusal, wake-ups, poolers, the pool."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, NoReturn, TypeVar

import asyncpg
import psycopg
import pytest

from tasklib.core.errors import SchemaMismatch, StoreBusy, StoreClosed, StoreRefused, StoreUnavailable
from tasklib.core.task import Claim, NewTask
from tasklib.core.unique import Unique
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.values import ControlChange, Filter, Inserted
from tests.conformance.builders import (
    WORK,
    alike_tasks,
    apply,
    claim,
    completed,
    fetch,
    look,
    new_task,
    submit,
    submit_several,
)
from tests.databases import new_database
from tests.servers import QUICK, PostgresServer
from tests.waiting import eventually_async

T = TypeVar("T")
Execute = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def psql(postgres_server: str, schema: str) -> Execute:
    """As a person would: a connection of one's own, inside the schema."""

    def execute(sql: str) -> list[tuple[object, ...]]:
        with psycopg.connect(postgres_server, autocommit=True, options=f"-c search_path={schema}") as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    return execute


# -- schemas ----------------------------------------------------------------------------------------------------------


async def test_a_schema_that_is_asked_for_is_made(postgres_server: str):
    with new_database(postgres_server) as url:
        stores = [PostgresStore(f"{url}?schema=jobs") for _ in range(4)]
        await asyncio.gather(*(store.open() for store in stores))
        task_id = await submit(stores[0])
        assert (await fetch(stores[3], task_id)).state == "pending"
        for store in stores:
            await store.close()


async def test_without_one_it_is_public_and_another_schema_is_another_queue(postgres_server: str):
    with new_database(postgres_server) as url:
        plain, other = PostgresStore(url), PostgresStore(f"{url}?schema=Other_Queue")
        await plain.open()
        await other.open()
        await submit(plain)
        assert await claim(other, 5) == []
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT count(*) FROM public.tasks").fetchone() == (1,)
            assert connection.execute('SELECT count(*) FROM "Other_Queue".tasks').fetchone() == (0,)
        await plain.close()
        await other.close()


async def test_a_foreign_table_is_refused(postgres_url: str, psql: Execute):
    psql("CREATE TABLE tasks (id int)")
    store = PostgresStore(postgres_url)
    for attempt in (store.open, store.migrate, store.schema_version):
        with pytest.raises(SchemaMismatch, match=r"not tasklib's.*schema="):
            await attempt()
    assert [finding.level for finding in await store.check_up() if finding.subject == "schema"] == ["error"]
    await store.close()


@pytest.mark.parametrize(("change", "words"), [("version + 7", "newer"), ("version - 1", "tasklib migrate")])
async def test_another_version_is_refused(
    store: PostgresStore, postgres_url: str, psql: Execute, change: str, words: str
):
    """Fault 21, a newer schema: refused in one line that says what to do."""
    psql(f"UPDATE task_migrations SET version = {change}")
    another = PostgresStore(postgres_url)
    with pytest.raises(SchemaMismatch, match=words):
        await another.open()
    await another.close()


async def test_tables_that_vanish_are_a_mismatch(store: PostgresStore, psql: Execute):
    psql("ALTER TABLE tasks RENAME TO gone")
    with pytest.raises(SchemaMismatch, match="tasklib migrate"):
        await submit(store)


async def test_a_table_that_changes_is_asked_anew(store: PostgresStore, psql: Execute):
    """A statement that was prepared before is refused by the server from then on."""
    await store.insert([new_task(key="first")])
    psql("ALTER TABLE tasks ALTER idempotency_key TYPE text")
    task = new_task(key="second")
    assert await store.insert([task]) == [Inserted(task.id, True)]


async def test_the_printed_migration_makes_the_same_tables(postgres_url: str, psql: Execute):
    store = PostgresStore(postgres_url)
    for _, text in store.migration_sql():
        psql(text)
    await store.open()
    assert await store.migrate(plan=True) == []
    assert (await fetch(store, await submit(store))).state == "pending"
    await store.close()


async def test_rows_made_by_hand_need_no_id(store: PostgresStore, psql: Execute):
    psql("INSERT INTO tasks (name) VALUES ('work')")
    [claimed] = await claim(store, 5)
    assert claimed.id.version == 7
    later = await submit(store)
    assert claimed.id.int >> 80 <= later.int >> 80, "in order of time among ours"


async def test_emptying_the_table_empties_the_counts(store: PostgresStore, psql: Execute):
    await apply(store, *(completed(claimed) for claimed in await claim_all(store, 3)))
    assert (await store.stats())["work"].completed == 3
    psql("TRUNCATE tasks")
    assert await store.stats() == {}


async def claim_all(store: PostgresStore, number: int) -> list[Claim]:
    await submit_several(store, number)
    return await claim(store, number)


# -- errors -----------------------------------------------------------------------------------------------------------


async def test_what_lasts_is_refused_at_once(postgres_server: str):
    nowhere = postgres_server.rpartition("/")[0] + "/no_such_database"
    store = PostgresStore(nowhere)
    with pytest.raises(StoreRefused, match="no_such_database"):
        await asyncio.wait_for(store.open(), 10)
    await store.close()


async def test_what_may_pass_is_tried_until_the_deadline():
    store = PostgresStore("postgresql://127.0.0.1:1/app", call_timeout=0.5)
    with pytest.raises(StoreUnavailable, match=r"tried for 0\.5 s"):
        await store.open()
    await store.close()


async def test_when_time_runs_out_what_was_in_the_way_is_told(monkeypatch: pytest.MonkeyPatch):
    """On a busy machine the last try may have no time left to be refused like those before it."""
    errors: Iterator[Exception] = chain([ConnectionRefusedError("nobody is there")], repeat(TimeoutError()))

    async def refuse(*_: object, **__: object) -> NoReturn:
        raise next(errors)

    monkeypatch.setattr(asyncpg, "connect", refuse)
    store = PostgresStore("postgresql://127.0.0.1:1/app", call_timeout=30)
    with pytest.raises(StoreUnavailable, match="nobody is there"):
        await store.open()
    await store.close()


@pytest.mark.parametrize("alike", [True, False])
async def test_a_batch_whose_reply_was_lost_brings_nothing_back_that_was_deleted_meanwhile(
    store: PostgresStore, psql: Execute, alike: bool
):
    """It was stored whole or not at all: if one of it is there, all of it was."""
    tasks: Sequence[NewTask] = alike_tasks(3) if alike else [new_task() for _ in range(3)]
    await store.insert(tasks)
    psql(f"DELETE FROM tasks WHERE id = '{tasks[1].id}'")
    again = await store.insert(tasks)  # as is done when nobody answered
    assert [(each.id, each.created) for each in again] == [(task.id, True) for task in tasks]
    assert [found and found.id for found in await store.get([task.id for task in tasks])] == [
        tasks[0].id,
        None,
        tasks[2].id,
    ]


async def test_a_locked_table_is_waited_for_no_longer_than_the_deadline(
    store: PostgresStore, postgres_url: str, postgres_server: str, schema: str
):
    """Fault 14, the table locked: calls end at their deadline and say why."""
    impatient = PostgresStore(postgres_url, call_timeout=0.5)
    await impatient.open()
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"LOCK TABLE {schema}.tasks".encode())
        with pytest.raises(StoreBusy):
            await submit(impatient)
        with pytest.raises(StoreBusy):
            await claim(impatient)
        connection.rollback()
        await submit(impatient)  # and then all is well
    await impatient.close()


@pytest.mark.parametrize("way", ["claim", "promotion", "limit"])
async def test_a_row_in_other_hands_holds_up_no_claim(
    store: PostgresStore, postgres_url: str, postgres_server: str, schema: str, way: str
):
    """A person's open transaction, or another worker's: what it holds is passed over, and nobody waits for it."""
    held, free = [await submit(store, delay_seconds=60 if way == "promotion" else None) for _ in range(2)]
    if way == "limit":
        await store.control(ControlChange(name=WORK, operator_rate=100))
    impatient = PostgresStore(postgres_url, call_timeout=5)
    await impatient.open()
    impatient.clock_offset += 61
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"SELECT FROM {schema}.tasks WHERE id = '{held}' FOR UPDATE".encode())
        assert [claimed.id for claimed in await claim(impatient, 2)] == [free]
        connection.rollback()
        assert [claimed.id for claimed in await claim(impatient, 2)] == [held]
    await impatient.close()


async def test_a_limited_type_is_next_when_all_before_it_is_in_other_hands(
    store: PostgresStore, postgres_server: str, schema: str
):
    """They looked as if they would fill the slots. And a worker gets no more of a type than it wants."""
    free, held, narrow = [await submit_several(store, 3, name) for name in ("free", "held", "narrow")]
    await store.control(ControlChange(name="narrow", concurrency=2))
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"SELECT FROM {schema}.tasks WHERE name = 'held' FOR UPDATE".encode())
        claims = await claim(store, 5, names=["free", "held", "narrow"], per_name={"free": 2})
        assert [claimed.id for claimed in claims] == [*free[:2], *narrow[:2]]
        connection.rollback()
    assert [claimed.id for claimed in await claim(store, 4, names=["held"])] == held


async def test_what_is_locked_for_a_moment_is_looked_at_again_at_once_then_less_and_less_often(
    store: PostgresStore, postgres_server: str, schema: str
):
    """Who waits for a task just submitted marks it so, and a claim that comes in that moment must not rest for long."""
    held = await submit(store)
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"SELECT FROM {schema}.tasks FOR UPDATE".encode())
        pauses = [(await look(store)).next_due_in for _ in range(12)]
        assert pauses[:4] == [0.001, 0.002, 0.004, 0.008]
        assert pauses[-2:] == [0.5, 0.5]
        connection.rollback()
    assert [claimed.id for claimed in await claim(store, 1)] == [held]


async def test_a_full_limit_is_looked_at_less_often_than_a_lock(store: PostgresStore):
    await store.control(ControlChange(name=WORK, concurrency=1))
    await submit_several(store, 2)
    assert len(await claim(store, 1)) == 1
    assert [(await look(store)).next_due_in for _ in range(3)] == [0.02, 0.04, 0.08]


async def in_the_way(
    postgres_server: str, schema: str, psql: Execute, statements: list[str], call: Coroutine[Any, Any, T]
) -> T:
    """What a call comes to that meets another transaction, which commits once the call waits for it."""
    waiting = f"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}%'"
    with psycopg.connect(postgres_server, options=f"-c search_path={schema}") as other:
        for statement in statements:
            other.execute(statement.encode())
        running = asyncio.create_task(call)
        await eventually_async(lambda: running.done() or psql(waiting))
        other.commit()
    return await running


async def test_a_task_that_was_taken_meanwhile_is_not_taken_again(
    store: PostgresStore, postgres_server: str, schema: str, psql: Execute
):
    """Both saw it waiting: the second finds, when it is its turn, that the version has moved on."""
    task_id = await submit(store)
    taken = "UPDATE tasks SET state = 'running', worker_id = 'first', ready = false, version = version + 1"
    assert await in_the_way(postgres_server, schema, psql, [taken], store.claim_by_id(task_id, 0, "second", 60)) is None
    task = await fetch(store, task_id)
    assert (task.worker_id, task.version) == ("first", 1)


async def test_a_holder_that_is_about_to_start_is_waited_for(
    store: PostgresStore, postgres_server: str, schema: str, psql: Execute
):
    """A task that joined it would miss what changed since it started."""
    rule = Unique("k", until="started")
    await store.insert([new_task(unique=rule)])
    started = "UPDATE tasks SET state = 'running', worker_id = 'first', ready = false, unique_key = NULL"
    tasks = [new_task(unique=rule), new_task()]
    made = await in_the_way(postgres_server, schema, psql, [started], store.insert(tasks))
    assert [each.created for each in made] == [True, True]


async def test_a_rate_is_read_after_whoever_has_it(
    store: PostgresStore, postgres_server: str, schema: str, psql: Execute
):
    await submit_several(store, 5)
    await store.control(ControlChange(name=WORK, operator_rate=0.01))
    used = "UPDATE task_controls SET tokens = 0, refilled_at = clock_timestamp()"
    assert await in_the_way(postgres_server, schema, psql, [used], claim(store, 5)) == []


@pytest.mark.parametrize("way", ["claim", "take"])
async def test_what_runs_is_counted_after_whoever_has_the_limit(
    store: PostgresStore, postgres_server: str, schema: str, psql: Execute, way: str
):
    first, second = await submit_several(store, 2)
    await store.control(ControlChange(name=WORK, concurrency=1))
    filled = [
        "SELECT FROM task_controls FOR UPDATE",
        f"UPDATE tasks SET state = 'running', ready = false, version = version + 1 WHERE id = '{first}'",
    ]
    call: Coroutine[Any, Any, Any] = claim(store, 5) if way == "claim" else store.claim_by_id(second, 0, "w", 60)
    assert not await in_the_way(postgres_server, schema, psql, filled, call)


async def test_a_pool_in_use_is_waited_for_no_longer_than_the_deadline(
    store: PostgresStore, postgres_url: str, postgres_server: str, schema: str
):
    """Fault 14, the pool exhausted: the same for those who wait for a connection."""
    narrow = PostgresStore(postgres_url, pool_size=1, call_timeout=2.0)
    await narrow.open()
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"LOCK TABLE {schema}.tasks".encode())
        results = await asyncio.gather(*(submit(narrow) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [StoreBusy] * 3
    await narrow.close()


async def test_closing_ends_what_is_under_way(store: PostgresStore, postgres_server: str, schema: str):
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"LOCK TABLE {schema}.tasks".encode())
        waiting = asyncio.ensure_future(submit(store))
        await eventually_async(lambda: store._calls.pool.connections == 1)
        await store.close()
        with pytest.raises(StoreClosed):
            await waiting


async def test_a_cancelled_call_leaves_the_pool_whole(
    store: PostgresStore, postgres_url: str, postgres_server: str, schema: str
):
    narrow = PostgresStore(postgres_url, pool_size=1)
    await narrow.open()
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"LOCK TABLE {schema}.tasks".encode())
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(submit(narrow), 0.1)
    await submit(narrow)
    page = await narrow.page(Filter(), limit=10)
    assert len(page.tasks) == 1, "the statements of those who gave up were cancelled"
    await narrow.close()


async def test_idle_connections_are_closed(postgres_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasklib.stores.sql.postgres.pool.IDLE_SECONDS", 0.2)
    store = PostgresStore(postgres_url)
    await store.open()
    await asyncio.gather(*(submit(store) for _ in range(5)))
    pool = store._calls.pool
    assert pool.connections > 1
    await eventually_async(lambda: pool.connections == 0)
    await submit(store)
    await store.close()


# -- several hosts ----------------------------------------------------------------------------------------------------


async def test_a_host_that_does_not_answer_or_takes_no_writes_is_passed_over(postgres_url: str):
    """Fault 13: of several hosts the one that takes writes is used."""
    with PostgresServer(settings=QUICK | {"default_transaction_read_only": "on"}) as read_only:
        user, _, rest = postgres_url.removeprefix("postgresql://").partition("@")
        store = PostgresStore(f"postgresql://{user}@127.0.0.1:1,127.0.0.1:{read_only.port},{rest}")
        await store.open()
        await submit(store)
        await store.close()


async def test_a_server_that_takes_no_writes_is_not_written_to():
    with PostgresServer(settings=QUICK) as server:
        store = PostgresStore(server.dsn, call_timeout=1.0)
        await store.open()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            connection.execute("SELECT pg_reload_conf()")
            await eventually_async(
                lambda: connection.execute("SHOW default_transaction_read_only").fetchone() == ("on",)
            )
        # Each session reads the settings anew in its own time.
        assert "read-only" in await eventually_async(lambda: _refusal(store), timeout=30)
        assert {finding.level for finding in await store.check_up() if finding.subject == "writes"} == {"error"}
        await store.close()


async def _refusal(store: PostgresStore) -> str:
    try:
        await submit(store)
    except StoreUnavailable as error:
        return str(error)
    return ""


def test_without_asyncpg_the_store_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith(("asyncpg", "tasklib.stores.sql.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ImportError, match=r"pip install 'tasklib-queue\[postgres\]'") as missing:
        __import__("tasklib.stores.sql.postgres")
    assert type(missing.value).__name__ == "MissingExtra"
