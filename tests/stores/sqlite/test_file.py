"""What only the SQLite store does: its file, its schema, its room, its memory."""

import asyncio
import os
import stat
import threading
from pathlib import Path
from uuid import UUID, uuid4

import apsw
import pytest

from tasklib.core.errors import (
    InvalidConfig,
    SchemaMismatch,
    StoreFull,
    StoreRefused,
)
from tasklib.stores.sql.sqlite import SqliteStore, filesystem, forget_memory
from tasklib.stores.sql.sqlite import checkup as checkup_module
from tasklib.stores.sql.sqlite.connection import check_version
from tasklib.stores.values import Filter
from tests.conformance.builders import (
    WORK,
    apply,
    claim_one,
    completed,
    fetch,
    submit,
    submit_several,
)
from tests.stores.conftest import number_of


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


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
40 28 0:35 / /listener rw,relatime shared:20 - nfs4 server:/listener rw,vers=4.2
41 40 254:1 / /listener/anna/fast\\040disk rw,relatime - xfs /dev/vdb rw
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
        ("/listener/anna", "nfs4"),
        ("/listener/anna/fast disk/queue", "xfs"),
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


# -- room -------------------------------------------------------------------------------------------------------------


async def test_a_full_disk_is_told_and_passes(store: SqliteStore):
    """Fault 15, in small: no page left, and then some."""
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
    """Fault 16: the log beside the file does not grow for ever."""
    log = path.with_name(path.name + "-wal")
    await submit_several(store, 1000)
    before = log.stat().st_size
    await store.compact_stats()
    assert log.stat().st_size == before > 100_000
    monkeypatch.setattr(checkup_module, "WAL_KEPT_BYTES", 100_000)
    await store.compact_stats()
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


async def test_threads_end_with_the_store(sqlite_url: str):
    before = set(threading.enumerate())
    store = SqliteStore(sqlite_url)
    await store.open()
    ours = {thread for thread in set(threading.enumerate()) - before if thread.name.startswith("tasklib-")}
    assert {thread.name for thread in ours} >= {"tasklib-writer", "tasklib-reader"}
    await store.close()
    assert not any(thread.is_alive() for thread in ours)
