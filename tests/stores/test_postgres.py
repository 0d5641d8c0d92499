"""What only the PostgreSQL store does: schemas and their refusal, wake-ups, poolers, the pool, the check-up."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import asyncpg
import psycopg
import pytest

from tasklib.core.errors import SchemaMismatch, StoreBusy, StoreClosed, StoreRefused, StoreUnavailable
from tasklib.core.task import Claim, Task
from tasklib.stores.base import ControlChange, Filter
from tasklib.stores.postgres import PostgresStore
from tasklib.testing.suite.builders import (
    ANNA,
    apply,
    beat_of,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    look,
    new_task,
    submit,
    submit_several,
    within_deadline,
)
from tests.databases import new_database
from tests.servers import QUICK, PostgresServer
from tests.stores.proxy import Proxy
from tests.waiting import eventually_async

Execute = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def schema(postgres_url: str) -> str:
    return postgres_url.rpartition("schema=")[2]


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
    psql(f"UPDATE task_migrations SET version = {change}")
    another = PostgresStore(postgres_url)
    with pytest.raises(SchemaMismatch, match=words):
        await another.open()
    await another.close()


async def test_tables_that_vanish_are_a_mismatch(store: PostgresStore, psql: Execute):
    psql("ALTER TABLE tasks RENAME TO gone")
    with pytest.raises(SchemaMismatch, match="tasklib migrate"):
        await submit(store)


async def test_the_printed_migration_makes_the_same_tables(postgres_url: str, psql: Execute):
    store = PostgresStore(postgres_url)
    for name, text in store.migration_sql():
        version = int(name[:4])
        psql(text)
        psql(f"INSERT INTO task_migrations (version, name) VALUES ({version}, '{name}')")
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


async def end(watching: AsyncIterator[Task | None]) -> None:
    """A generator that is left alone is closed by the loop, later."""
    assert isinstance(watching, AsyncGenerator)
    await watching.aclose()


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


async def test_a_locked_table_is_waited_for_no_longer_than_the_deadline(
    store: PostgresStore, postgres_url: str, postgres_server: str, schema: str
):
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


async def test_a_pool_in_use_is_waited_for_no_longer_than_the_deadline(
    store: PostgresStore, postgres_url: str, postgres_server: str, schema: str
):
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
    monkeypatch.setattr("tasklib.stores.postgres.pool.IDLE_SECONDS", 0.2)
    store = PostgresStore(postgres_url)
    await store.open()
    await asyncio.gather(*(submit(store) for _ in range(5)))
    pool = store._calls.pool
    assert pool.connections > 1
    await eventually_async(lambda: pool.connections == 0)
    await submit(store)
    await store.close()


# -- wake-ups ---------------------------------------------------------------------------------------------------------


async def notifications(server: str, channel: str) -> tuple[asyncpg.Connection, list[str]]:
    heard: list[str] = []
    connection = await asyncpg.connect(server)
    await connection.add_listener(channel, lambda *event: heard.append(event[3]))
    return connection, heard


async def test_nobody_is_notified_unless_a_worker_listens(store: PostgresStore, postgres_server: str, schema: str):
    ear, heard = await notifications(postgres_server, f"tasklib_{schema}")

    async def submit_each_way() -> None:
        await submit(store, "one")
        await store.insert([new_task("many"), new_task("many")])
        await store.insert([new_task("several"), new_task("kinds")])
        await store.insert([new_task("keyed", key=str(new_task().id))])
        await store.insert([new_task("later", delay_seconds=3600)])
        await ear.execute("SELECT 1")

    await submit_each_way()
    assert heard == [], "no worker at all"
    await store.beat(beat_of(ANNA))
    await submit_each_way()
    assert heard == ["=one", "=many", "", "=keyed"]
    heard.clear()
    await store.farewell(ANNA)
    await submit_each_way()
    assert heard == [], "it said goodbye"
    await store.beat(beat_of(ANNA))
    store.clock_offset += 90
    await submit_each_way()
    assert heard == [], "it has been silent for too long"
    await ear.close()


async def test_completions_notify_only_those_who_wait(store: PostgresStore, postgres_server: str, schema: str):
    await store.beat(beat_of(ANNA))
    ear, heard = await notifications(postgres_server, f"tasklib_{schema}")
    done, ends = await notifications(postgres_server, f"tasklib_{schema}:done")
    await submit(store)
    awaited = await submit(store)
    await ear.execute("SELECT 1")
    heard.clear()
    watching = aiter(store.watch(awaited))
    assert (await anext(watching)) is not None
    await apply(store, *(completed(claimed) for claimed in await claim(store, 2)))
    await ear.execute("SELECT 1")
    await done.execute("SELECT 1")
    assert heard == []
    assert ends == [str(awaited)]
    await end(watching)
    await ear.close()
    await done.close()


async def test_what_is_given_back_wakes_the_others(store: PostgresStore, postgres_server: str, schema: str):
    await store.beat(beat_of(ANNA))
    await submit_several(store, 2)
    claims = await claim(store, 2)
    ear, heard = await notifications(postgres_server, f"tasklib_{schema}")
    await apply(store, failed(claims[0], delay=0), failed(claims[1], delay=3600))
    await ear.execute("SELECT 1")
    assert heard == ["=work"]
    await ear.close()


async def test_an_idle_listener_holds_one_connection_for_everything(store: PostgresStore):
    woken = asyncio.Event()
    stop = store.listen(lambda _: woken.set())
    await within_deadline(woken, "the first wake-up")
    pool = store._calls.pool
    await eventually_async(lambda: pool.connections <= 2)
    for _ in range(5):
        await look(store)
        await submit(store)
    assert pool.connections <= 2, (
        "the one that opened the store, until it is idle for long enough, and the listening one"
    )
    assert pool.home_if_free() is not None, "the calls went over it and gave it back"
    stop()


async def test_a_lost_listening_connection_is_made_anew(postgres_url: str):
    async with Proxy(postgres_url) as proxy:
        store = PostgresStore(proxy.url)
        await store.open()
        woken = asyncio.Event()
        store.listen(lambda _: woken.set())
        await within_deadline(woken, "the first wake-up")
        for _ in range(3):
            woken.clear()
            proxy.cut()
            await within_deadline(woken, "a wake-up after the line was cut")
            woken.clear()
            await store.control(ControlChange(paused=False))
            await within_deadline(woken, "a wake-up over the new line")
        await store.close()


async def test_a_restarted_server_is_found_again():
    with PostgresServer(settings=QUICK) as server:
        store = PostgresStore(server.dsn)
        await store.open()
        woken = asyncio.Event()
        store.listen(lambda _: woken.set())
        await within_deadline(woken, "the first wake-up")
        for mode in ("fast", "immediate"):
            await asyncio.to_thread(server.restart, mode)
            await submit(store)
            woken.clear()
            await store.control(ControlChange(paused=False))
            await within_deadline(woken, "a wake-up from the new server")
        await store.close()


# -- poolers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [True, False], ids=["told", "found out"])
async def test_behind_a_pooler_nothing_is_kept_in_the_session(postgres_url: str, postgres_server: str, told: bool):
    async with Proxy(postgres_url) as proxy:
        proxy.foreign_pids = True
        store = PostgresStore(f"{proxy.url}&pgbouncer=true" if told else proxy.url)
        await store.open()
        woken = asyncio.Event()
        store.listen(lambda _: woken.set())
        await store.beat(beat_of(ANNA))
        task_id = await submit(store, key="once")
        assert (await store.insert([new_task(key="once")]))[0].id == task_id
        await submit_several(store, 3)
        await store.control(ControlChange(name="work", concurrency=3))
        claims = await claim(store, 10)
        assert len(claims) == 3
        await apply(store, completed(claims[0]), failed(claims[1]))
        states = sorted(task.state for task in (await store.page(Filter(), limit=9)).tasks)
        assert states == ["completed", "failed", "pending", "running"]
        assert "pooler" in {finding.subject for finding in await store.check_up()}

        async def session(connection: asyncpg.Connection, _: float) -> tuple[object, ...]:
            settings = "SELECT current_setting('enable_seqscan'), (SELECT count(*) FROM pg_prepared_statements)"
            return tuple(await connection.fetchrow(settings)) + tuple(
                await connection.fetch("SELECT pg_listening_channels()")
            )

        assert await store._calls.run(session) == ("on", 0)
        assert not woken.is_set()
        ends = store.watch(claims[2].id)
        assert isinstance(await anext(ends), Task)
        await apply(store, completed(claims[2]))
        ended = await asyncio.wait_for(anext(ends), 20)
        assert ended is not None
        assert ended.state == "completed", "found by polling"
        await end(ends)
        await store.close()


# -- several hosts ----------------------------------------------------------------------------------------------------


async def test_a_host_that_does_not_answer_or_takes_no_writes_is_passed_over(postgres_url: str):
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
        with pytest.raises(StoreUnavailable, match="read-only"):
            await submit(store)
        assert {finding.level for finding in await store.check_up() if finding.subject == "writes"} == {"error"}
        await store.close()


# -- check-up ---------------------------------------------------------------------------------------------------------


async def test_a_check_up_names_what_is_wrong(store: PostgresStore, psql: Execute):
    await submit(store, "orphan")
    claimed = await claim_one(store, "orphan", lease=-1)
    await submit(store, "orphan")
    psql("DROP INDEX ix_tasks_ready")
    found = {finding.subject: finding for finding in await store.check_up()}
    assert found["claim"].level == "error"
    assert found["workers"].level == "warning"
    assert "'orphan'" in found["workers"].message
    assert found["leases"].level == "warning"
    assert claimed
    await store.beat(beat_of(ANNA, names=["orphan"]))
    found = {finding.subject: finding for finding in await store.check_up()}
    assert found["workers"].level == "ok"


def test_without_asyncpg_the_store_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith(("asyncpg", "tasklib.stores.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ImportError, match=r"pip install 'tasklib\[postgres\]'") as missing:
        __import__("tasklib.stores.postgres")
    assert type(missing.value).__name__ == "MissingExtra"
