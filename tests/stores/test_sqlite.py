"""What only the SQLite store does: its file, its locks, its caller's connections, its errors."""

import asyncio
import contextlib
import os
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import apsw
import psycopg
import pytest
import sqlalchemy
import sqlalchemy.orm

from tasklib.core.decide import Verdict
from tasklib.core.errors import (
    InvalidConfig,
    SchemaMismatch,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreFull,
    StoreRefused,
    Unsupported,
)
from tasklib.core.task import NewTask
from tasklib.stores.base import Filter
from tasklib.stores.sqlite import SqliteStore, filesystem, forget_memory
from tasklib.stores.sqlite import checkup as checkup_module
from tasklib.stores.sqlite.connection import check_version
from tasklib.testing.suite.builders import (
    ANNA,
    WORK,
    apply,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    lease_of,
    new_task,
    submit,
    submit_several,
    within_deadline,
)


@pytest.fixture
def path(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture
async def store(sqlite_url: str) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(sqlite_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def connection(store: SqliteStore, path: Path) -> Iterator[apsw.Connection]:
    """A caller's own."""
    connection = apsw.Connection(str(path))
    yield connection
    connection.close()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def number_of(store: SqliteStore) -> int:
    return (await store.count(Filter(), 1_000_000)).value


# -- the file ---------------------------------------------------------------------------------------------------------


async def test_only_the_owner_may_read_the_file(sqlite_url: str, path: Path):
    before = os.umask(0)
    try:
        store = SqliteStore(sqlite_url)
        await store.open()
        stop = store.listen(lambda name: None)
        await submit(store)
    finally:
        os.umask(before)
    assert {mode_of(path.with_name(path.name + end)) for end in ("", "-wal", "-shm")} == {0o600}
    directory = path.with_name(path.name + "-wake")
    assert mode_of(directory) == 0o700
    assert [mode_of(fifo) for fifo in directory.iterdir()] == [0o600]
    stop()
    assert list(directory.iterdir()) == []
    await store.close()


async def test_a_file_that_is_there_keeps_its_mode_and_the_check_up_says_so(sqlite_url: str, path: Path):
    path.touch()
    path.chmod(0o644)
    store = SqliteStore(sqlite_url)
    await store.open()
    assert mode_of(path) == 0o644
    assert "file mode" in {finding.subject for finding in await store.check_up() if finding.level == "warning"}
    await store.close()


async def test_a_missing_directory_is_named(tmp_path: Path):
    with pytest.raises(StoreRefused, match=f"no directory {tmp_path}/nowhere"):
        await SqliteStore(f"sqlite:///{tmp_path}/nowhere/tasks.db").open()
    assert list(tmp_path.iterdir()) == []


async def test_a_directory_is_no_file(tmp_path: Path):
    with pytest.raises(StoreRefused, match="is a directory"):
        await SqliteStore(f"sqlite:///{tmp_path}").open()


async def test_a_file_of_another_kind_is_refused(sqlite_url: str, path: Path):
    path.write_text("Dear diary, today I was not a database. " * 100)
    with pytest.raises(StoreRefused, match="is not a SQLite database"):
        await SqliteStore(sqlite_url).open()


async def test_a_relative_path_means_the_directory_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("sqlite:///here.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    await store.open()
    await store.close()
    assert (tmp_path / "here.db").exists()


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("sqlite:///x.db?cache=shared", "cache"),
        ("sqlite:///x.db?synchronous=off", "synchronous"),
        ("sqlite://", "database_url"),
        ("sqlite:///", "database_url"),
        ("sqlite:///:memory:", "database_url"),
        ("sqlite://host/x.db", "database_url"),
        ("sqlite:///x.db/", "database_url"),
        ("memory://name/more", "database_url"),
        ("memory://?synchronous=full", "database_url"),
        ("mysql://host/db", "database_url"),
    ],
)
def test_urls_that_are_refused(url: str, field: str):
    with pytest.raises(InvalidConfig) as caught:
        SqliteStore(url)
    assert caught.value.field == field


@pytest.mark.parametrize(("option", "level"), [("", 2), ("?synchronous=full", 2), ("?synchronous=normal", 1)])
async def test_commits_are_on_disk_unless_asked_otherwise(sqlite_url: str, option: str, level: int):
    store = SqliteStore(sqlite_url + option)
    await store.open()
    assert await store._on_writer(lambda connection: connection.pragma("synchronous")) == level
    await store.close()


@pytest.mark.parametrize("version", ["3.51.2", "3.50.9", "3.7.0", "2.8.17"])
def test_versions_that_can_lose_rows_are_refused(version: str):
    with pytest.raises(StoreRefused, match="can lose committed rows"):
        check_version(version)


def test_newer_versions_are_fine():
    for version in ("3.51.3", "3.52.0", "3.100.0", "4.0.0"):
        check_version(version)


# -- network file systems ---------------------------------------------------------------------------------------------

MOUNTINFO = """\
22 28 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw
28 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 28 0:35 / /home rw,relatime shared:20 - nfs4 server:/home rw,vers=4.2
41 40 254:1 / /home/anna/fast\\040disk rw,relatime - xfs /dev/vdb rw
42 28 0:36 / /srv/share rw - cifs //server/share rw
43 28 0:37 / /mnt/over rw - ext4 /dev/vdc rw
44 28 0:38 / /mnt/over rw - fuse.sshfs host: rw
"""

MOUNT_COMMAND = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
//anna@server/share on /Volumes/share (smbfs, nodev, nosuid, mounted by anna)
server:/export on /Volumes/my data (nfs, asynchronous)
"""


@pytest.mark.parametrize(
    ("directory", "kind"),
    [
        ("/var/lib/app", "ext4"),
        ("/home/anna", "nfs4"),
        ("/home/anna/fast disk/queue", "xfs"),
        ("/homework", "ext4"),
        ("/srv/share", "cifs"),
        ("/mnt/over/deep", "fuse.sshfs"),
    ],
)
def test_the_innermost_mount_counts(directory: str, kind: str):
    assert filesystem.mount_type(directory, filesystem.read_mountinfo(MOUNTINFO)) == kind


def test_mounts_as_macos_prints_them():
    mounts = filesystem.read_mount_command(MOUNT_COMMAND)
    assert mounts == [("/", "apfs"), ("/Volumes/share", "smbfs"), ("/Volumes/my data", "nfs")]


async def test_a_network_file_system_is_refused(sqlite_url: str, path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(filesystem, "_mounts", lambda: [("/", "nfs4")])
    with pytest.raises(StoreRefused, match=r"network file system \(nfs4\)"):
        await SqliteStore(sqlite_url).open()
    assert not path.exists()


# -- the schema -------------------------------------------------------------------------------------------------------


def run_sql(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    try:
        connection.execute(sql).fetchall()
    finally:
        connection.close()


async def test_a_table_of_somebody_else_is_left_alone(sqlite_url: str, path: Path):
    run_sql(path, "CREATE TABLE tasks (id INTEGER, title TEXT)")
    with pytest.raises(SchemaMismatch, match="not tasklib's"):
        await SqliteStore(sqlite_url).open()
    run_sql(path, "INSERT INTO tasks VALUES (1, 'still mine')")


async def test_other_tables_in_the_file_are_welcome(sqlite_url: str, path: Path):
    run_sql(path, "CREATE TABLE orders (id INTEGER)")
    store = SqliteStore(sqlite_url)
    await store.open()
    await submit(store)
    await store.close()


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ("UPDATE task_migrations SET version = version + 99", "upgrade tasklib"),
        ("DELETE FROM task_migrations", "tasklib migrate"),
    ],
)
async def test_another_version_of_the_schema_is_refused(sqlite_url: str, path: Path, change: str, advice: str):
    store = SqliteStore(sqlite_url)
    await store.open()
    await store.close()
    run_sql(path, change)
    with pytest.raises(SchemaMismatch, match=advice):
        await SqliteStore(sqlite_url).open()


async def test_times_and_ids_edited_by_hand_must_have_their_form(store: SqliteStore, connection: apsw.Connection):
    task_id = await submit(store)
    for edit in (
        "UPDATE tasks SET scheduled_at = datetime('now')",
        "UPDATE tasks SET next_retry_at = '2026-01-31 12:00:00'",
        "UPDATE tasks SET locked_until = '2026-01-31T12:00:00Z'",
        "UPDATE tasks SET id = upper(id)",
        "UPDATE tasks SET kwargs = '{not json'",
    ):
        with pytest.raises(apsw.ConstraintError):
            connection.execute(edit)
    connection.execute("UPDATE tasks SET scheduled_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour')")
    assert (await fetch(store, task_id)).scheduled_at > (await store.now())


async def test_rows_deleted_by_hand_leave_the_totals(store: SqliteStore, connection: apsw.Connection):
    for _ in range(3):
        await submit(store)
        await apply(store, completed(await claim_one(store)))
    await submit(store)
    connection.execute("DELETE FROM tasks WHERE rowid IN (SELECT max(rowid) FROM tasks WHERE state = 'completed')")
    figures = (await store.stats())[WORK]
    assert (figures.completed, figures.pending) == (2, 1)


# -- the caller's connection ------------------------------------------------------------------------------------------


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
    heard: list[str | None] = []
    event = asyncio.Event()

    def wake(name: str | None) -> None:
        heard.append(name)
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
    yield "sqlite3", sqlite3.connect(":memory:")
    engine = sqlalchemy.create_engine("sqlite://")
    yield "SQLAlchemy", engine.connect()
    yield "SQLAlchemy", sqlalchemy.orm.Session(engine)
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
        with contextlib.suppress(AttributeError):
            connection.close()  # type: ignore[attr-defined]


# -- locks ------------------------------------------------------------------------------------------------------------


async def test_a_call_waits_for_the_lock_of_another(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN IMMEDIATE")
    call = asyncio.create_task(submit(store))
    assert await store.stats() == {}, "a reader waited for a writer"
    assert not call.done()
    connection.execute("COMMIT")
    assert (await fetch(store, await call)).name == WORK


async def test_a_lock_that_stays_is_an_error_of_ours(sqlite_url: str, store: SqliteStore, connection: apsw.Connection):
    impatient = SqliteStore(sqlite_url, call_timeout=0.5)
    await impatient.open()
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match=r"locked by another process|too many calls were waiting"):
        await submit(impatient)
    connection.execute("ROLLBACK")
    assert await number_of(store) == 0
    await submit(store)
    await impatient.close()


async def test_a_call_that_was_given_up_writes_nothing(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(submit(store))
    given_up = asyncio.create_task(submit(store, "given up"))
    await store.now()
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    connection.execute("COMMIT")
    await waiting
    await submit(store)
    assert set(await store.stats()) == {WORK}


async def test_closing_ends_a_wait_for_a_lock(sqlite_url: str, store: SqliteStore, connection: apsw.Connection):
    other = SqliteStore(sqlite_url)
    await other.open()
    connection.execute("BEGIN IMMEDIATE")
    call = asyncio.create_task(submit(other))
    await other.now()
    await other.close()
    with pytest.raises(StoreClosed):
        await call
    connection.execute("ROLLBACK")


async def test_calls_at_once_share_a_commit(store: SqliteStore, connection: apsw.Connection):
    commits: list[int] = []

    def committing() -> bool:
        commits.append(1)
        return False

    await store._on_writer(lambda writer: writer.set_commit_hook(committing, id="test"))
    connection.execute("BEGIN IMMEDIATE")
    calls = [asyncio.create_task(submit(store)) for _ in range(100)]
    await store.now()
    connection.execute("COMMIT")
    await asyncio.gather(*calls)
    assert await number_of(store) == 100
    assert len(commits) < 20, "many waited at once, and yet each had a commit of its own"


async def test_one_bad_call_spoils_no_other(store: SqliteStore, connection: apsw.Connection):
    connection.execute("BEGIN IMMEDIATE")
    good = [asyncio.create_task(submit(store)) for _ in range(5)]
    bad = asyncio.create_task(store.insert([NewTask(id=uuid4(), name=WORK, kwargs="{not json")]))
    more = [asyncio.create_task(submit(store)) for _ in range(5)]
    await store.now()
    connection.execute("COMMIT")
    with pytest.raises(StoreError, match="kwargs is JSON"):
        await bad
    assert len(set(await asyncio.gather(*good, *more))) == 10
    assert await number_of(store) == 10


# -- guards -----------------------------------------------------------------------------------------------------------


async def test_in_one_batch_each_completion_has_its_own_guard(store: SqliteStore):
    await submit_several(store, 3)
    held, older, stranger = await claim(store, 3)
    changes = [
        completed(held, "held"),
        completed(older, "older")._replace(version=older.version - 1),
        completed(stranger, "stranger")._replace(worker_id="somebody else"),
    ]
    assert await store.settle(changes) == [Verdict.APPLIED, Verdict.LOST, Verdict.LOST]
    states = [(await fetch(store, claimed.id)).state for claimed in (held, older, stranger)]
    assert states == ["completed", "running", "running"]


async def test_in_one_batch_each_change_has_its_own_guard(store: SqliteStore):
    await submit_several(store, 4)
    held, older, stranger, extended = await claim(store, 4)
    elsewhere = (await fetch(store, extended.id)).locked_until
    assert elsewhere is not None
    changes = [
        failed(held, "held"),
        failed(older, "older")._replace(version=older.version - 1),
        failed(stranger, "stranger")._replace(worker_id="somebody else"),
        failed(extended, "extended")._replace(locked_until=elsewhere - timedelta(seconds=1)),
    ]
    assert await store.settle(changes) == [Verdict.APPLIED, Verdict.LOST, Verdict.LOST, Verdict.LOST]
    errors = [(await fetch(store, claimed.id)).error for claimed in (held, older, stranger, extended)]
    assert errors == ["held", None, None, None]


async def test_in_one_batch_each_lease_has_its_own_guard(store: SqliteStore):
    await submit_several(store, 2)
    held, older = await claim(store, 2)
    before = (await fetch(store, older.id)).locked_until
    leases = [lease_of(held), lease_of(older)._replace(version=older.version - 1)]
    assert [extension.held for extension in await store.extend(ANNA, leases, 7200)] == [True, False]
    assert (await fetch(store, older.id)).locked_until == before


# -- room -------------------------------------------------------------------------------------------------------------


async def test_a_full_disk_is_told_and_passes(store: SqliteStore):
    kept = await submit_several(store, 10)

    async def allow(pages: int) -> None:
        await store._on_writer(lambda connection: connection.pragma("max_page_count", pages))

    async def fill() -> None:
        for _ in range(100):
            kept.extend(await submit_several(store, 50))

    await allow(1)  # as many as there are
    with pytest.raises(StoreFull, match="no room left"):
        await fill()
    await allow(1_000_000)
    kept += await submit_several(store, 50)
    assert {task.id for task in (await store.page(Filter(), limit=10_000)).tasks} == set(kept)
    assert await store._on_writer(lambda connection: connection.pragma("integrity_check")) == "ok"


async def test_a_long_log_is_cut(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch):
    log = path.with_name(path.name + "-wal")
    await submit_several(store, 1000)
    before = log.stat().st_size
    await store.tidy()
    assert log.stat().st_size == before > 100_000
    monkeypatch.setattr(checkup_module, "WAL_KEPT_BYTES", 100_000)
    await store.tidy()
    assert log.stat().st_size == 0


async def test_tasks_with_ids_made_by_hand_are_pruned_too(store: SqliteStore):
    """Pruning walks the ids by the time that is in them; in these there is none."""
    ids = [UUID(int=number << 124 | number) for number in range(16)] + [uuid4() for _ in range(20)]
    for task_id in ids:
        await submit(store, id=task_id)
        await apply(store, completed(await claim_one(store)))
    store.clock_offset = 400 * 86400.0
    assert await store.prune(["completed"], 86400.0, 1000) == len(ids)


# -- memory -----------------------------------------------------------------------------------------------------------


def test_a_queue_in_memory_outlives_its_loops(memory_url: str):
    async def submit_there() -> UUID:
        store = SqliteStore(memory_url)
        await store.open()
        task_id = await submit(store)
        await store.close()
        return task_id

    async def is_there(task_id: UUID) -> bool:
        store = SqliteStore(memory_url)
        await store.open()
        found = await store.get([task_id])
        await store.close()
        return found != [None]

    task_id = asyncio.run(submit_there())
    assert asyncio.run(is_there(task_id))
    forget_memory(memory_url.removeprefix("memory://"))
    assert not asyncio.run(is_there(task_id))
    forget_memory(memory_url.removeprefix("memory://"))


async def test_queues_in_memory_are_apart(memory_url: str):
    one, other = SqliteStore(memory_url), SqliteStore(memory_url + "-other")
    await one.open()
    await other.open()
    await submit(one)
    assert (await number_of(one), await number_of(other)) == (1, 0)
    await one.close()
    await other.close()


# -- check-up ---------------------------------------------------------------------------------------------------------


async def test_a_healthy_file_has_nothing_to_hide(store: SqliteStore):
    findings = await store.check_up()
    assert {finding.level for finding in findings} == {"ok"}
    assert {"sqlite", "schema", "file system", "journal", "log size", "integrity", "claim"} <= {
        finding.subject for finding in findings
    }


async def test_the_check_up_names_what_nobody_handles(store: SqliteStore):
    await submit(store, "orphan")
    [finding] = [finding for finding in await store.check_up() if finding.subject == "backlog"]
    assert (finding.level, "orphan" in finding.message) == ("warning", True)


async def test_the_check_up_sees_damage(store: SqliteStore, path: Path, sqlite_url: str):
    await submit_several(store, 500)
    await store.close()
    data = bytearray(path.read_bytes())
    data[8 * 4096 : 9 * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    damaged = SqliteStore(sqlite_url)
    findings = await damaged.check_up()
    assert [finding.subject for finding in findings if finding.level == "error"] == ["integrity"]
    await damaged.close()


async def test_threads_end_with_the_store(sqlite_url: str):
    store = SqliteStore(sqlite_url)
    await store.open()
    assert "tasklib-writer" in {thread.name for thread in threading.enumerate()}
    await store.close()
    ours = {"tasklib-writer", "tasklib-reader"}
    assert not ours & {thread.name for thread in threading.enumerate()}
