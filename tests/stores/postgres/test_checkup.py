"""What the check-up finds in PostgreSQL beside what it finds in every store: sessions in the way, above all."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tasklib.stores.sql.postgres import PostgresStore, blocking_sessions, checkup
from tasklib.stores.values import Finding
from tests.conformance.builders import apply, claim, completed, submit, submit_several
from tests.databases import new_database
from tests.stores.proxy import Proxy
from tests.waiting import eventually_async

Connect = Callable[[str], psycopg.Connection]


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url, call_timeout=5.0)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def connect(postgres_server: str, schema: str) -> Iterator[Connect]:
    """A session of somebody else's with this application_name, in the schema."""
    with ExitStack() as stack:

        def connect(name: str) -> psycopg.Connection:
            options = f"-c search_path={schema}"
            return stack.enter_context(psycopg.connect(postgres_server, options=options, application_name=name))

        yield connect


async def findings(store: PostgresStore, subject: str) -> list[Finding]:
    found = await store.check_up()
    assert all(finding.advice for finding in found if finding.level != "ok")
    return [finding for finding in found if finding.subject == subject]


def pid_of(connection: psycopg.Connection) -> int:
    return connection.info.backend_pid


# -- locks ------------------------------------------------------------------------------------------------------------


async def test_whoever_locks_the_table_is_named_and_nobody_waits_for_the_answer(store: PostgresStore, connect: Connect):
    [well] = await findings(store, "locks")
    assert well.level == "ok"
    report = connect("nightly report")
    report.execute("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")
    [since] = report.execute("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')").fetchone() or ()
    async with asyncio.timeout(4):
        [lock] = await findings(store, "locks")
    assert lock.level == "error"
    assert f"pid {pid_of(report)}, nightly report, user " in lock.message
    assert f"idle in transaction, since {since} UTC" in lock.message
    assert "AccessExclusiveLock on tasks" in lock.message
    assert f"pg_terminate_backend({pid_of(report)})" in lock.advice
    report.rollback()
    assert (await findings(store, "locks"))[0].level == "ok"


async def test_a_lock_that_lets_others_read_is_named_and_the_rest_is_looked_at(store: PostgresStore, connect: Connect):
    connect("index builder").execute("LOCK TABLE tasks IN SHARE MODE")
    found = {finding.subject: finding for finding in await store.check_up()}
    assert found["locks"].level == "error"
    assert "ShareLock on tasks" in found["locks"].message
    assert found["schema"].level == "ok"
    assert "claim" not in found, "it cannot be explained now"


async def test_whoever_holds_a_row_is_named_when_somebody_waits_for_it(store: PostgresStore, connect: Connect):
    await submit(store)
    [held] = await claim(store)
    person = connect("psql of a person")
    person.execute("UPDATE tasks SET priority = 5")
    assert (await findings(store, "locks"))[0].level == "ok", "it is in nobody's way"
    settling = asyncio.create_task(apply(store, completed(held)))

    async def named() -> Finding | None:
        [lock] = await findings(store, "locks")
        return lock if lock.level != "ok" else None

    lock = await eventually_async(named)
    assert lock is not None
    assert lock.level == "warning"
    assert f"pid {pid_of(person)}, psql of a person" in lock.message
    assert "holds locks on rows; 1 sessions wait for it" in lock.message
    person.rollback()
    await settling


async def test_the_one_at_the_front_is_named_not_those_who_wait_behind(store: PostgresStore, connect: Connect):
    reader, upgrade = connect("forgotten reader"), connect("upgrade")
    reader.execute("SELECT count(*) FROM tasks")
    altering = asyncio.create_task(asyncio.to_thread(upgrade.execute, "LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE"))

    async def waits() -> bool:
        query = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s"
        return reader.execute(query, [pid_of(upgrade)]).fetchone() == ("Lock",)

    await eventually_async(waits)
    async with asyncio.timeout(4):
        [lock] = await findings(store, "locks")
    assert lock.level == "error", "whoever comes now waits behind the upgrade"
    assert f"pid {pid_of(reader)}, forgotten reader" in lock.message
    reader.rollback()
    await altering
    upgrade.rollback()


# -- transactions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "idle"), [(0, 3600), (3600, 0)], ids=["old", "idle"])
async def test_old_and_idle_transactions_are_named(
    postgres_server: str, monkeypatch: pytest.MonkeyPatch, old: int, idle: int
):
    with new_database(postgres_server) as url:  # of its own: other tests have transactions, too
        store = PostgresStore(url)
        await store.open()
        with psycopg.connect(url, application_name="analyst") as analyst:
            analyst.execute("SELECT 1")
            assert [finding.level for finding in await findings(store, "old transaction")] == ["ok"]
            monkeypatch.setattr(blocking_sessions, "OLD_TRANSACTION", timedelta(seconds=old))
            monkeypatch.setattr(blocking_sessions, "IDLE_TRANSACTION", timedelta(seconds=idle))
            [found] = await findings(store, "old transaction")
            assert found.level == "warning"
            assert f"pid {pid_of(analyst)}, analyst, user " in found.message
            assert "idle in transaction, since 20" in found.message
            assert "idle_in_transaction_session_timeout" in found.advice
            analyst.rollback()
            assert [finding.level for finding in await findings(store, "old transaction")] == ["ok"]
        await store.close()


# -- the rest ---------------------------------------------------------------------------------------------------------


async def test_a_claim_that_has_lost_its_index(store: PostgresStore, connect: Connect):
    assert (await findings(store, "claim"))[0].level == "ok"
    person = connect("psql")
    person.execute("DROP INDEX ix_tasks_ready")
    person.commit()
    assert (await findings(store, "claim"))[0].level == "error"


@pytest.mark.parametrize("number", [0, 500])
async def test_a_pooler_is_noticed_and_spoils_nothing_else(postgres_url: str, number: int):
    direct = PostgresStore(postgres_url)
    await direct.open()
    await submit_several(direct, number)
    assert [finding.level for finding in await findings(direct, "pooler")] == ["ok"]
    await direct.close()
    async with Proxy(postgres_url) as proxy:
        proxy.foreign_pids = True
        pooled = PostgresStore(proxy.url)
        found = {finding.subject: finding for finding in await pooled.check_up()}
        await pooled.close()
    assert found["pooler"].level == "warning"
    assert "workers poll" in found["pooler"].message
    assert found["claim"].level == "ok"


async def test_dead_rows_are_counted(store: PostgresStore, connect: Connect):
    person = connect("psql")
    person.autocommit = True
    await submit_several(store, 3)  # few: of a full page whoever reads it next would clear them away
    person.execute("ALTER TABLE tasks SET (autovacuum_enabled = off)")
    person.execute("UPDATE tasks SET tags = '{}'")
    person.close()  # a session hands in its statistics when it ends, or after ten seconds

    async def counted() -> bool:
        return (await findings(store, "dead rows"))[0].message.startswith("3 dead rows beside 3 live ones")

    await eventually_async(counted, timeout=30)


def test_many_dead_rows_are_a_warning():
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert checkup.dead_rows(10, 100_001, None).level == "warning"
    assert checkup.dead_rows(10, 100_000, None).level == "ok"
    assert checkup.dead_rows(100_001, 100_001, moment).level == "ok"
    assert checkup.dead_rows(1, 1, moment).message.endswith("last vacuum: 2026-01-31 12:00:00 UTC")


async def test_connections_are_counted(store: PostgresStore):
    [found] = await findings(store, "connections")
    assert found.level == "ok"
    assert blocking_sessions.crowd(89, 100, "web").level == "ok"
    crowded = blocking_sessions.crowd(90, 100, "web")
    assert (crowded.level, "by web" in crowded.message) == ("warning", True)
