"""What the check-up finds in a SQLite file, beside what it finds in every store."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from tasklib.stores.sql.sqlite import SqliteStore, checkup, lock_owners
from tasklib.stores.values import Finding
from tests.conformance.builders import submit, submit_several

HOLD = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute(sys.argv[2])
connection.execute("SELECT count(*) FROM tasks").fetchall()
print("held", flush=True)
sys.stdin.read()
"""


async def findings(store: SqliteStore) -> dict[str, Finding]:
    found = await store.check_up()
    assert all(finding.advice for finding in found if finding.level != "ok")
    return {finding.subject: finding for finding in found}


@contextmanager
def holding(path: Path, begin: str) -> Iterator[int]:
    """Another process in a transaction; its number."""
    command = [sys.executable, "-c", HOLD, str(path), begin]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.communicate()


async def test_a_healthy_file_has_nothing_to_hide(store: SqliteStore):
    found = await findings(store)
    assert {finding.level for finding in found.values()} == {"ok"}
    assert {"sqlite", "schema", "file system", "journal", "log size", "integrity", "locks", "claim"} <= set(found)


async def test_whoever_does_not_end_a_write_is_named(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checkup, "PATIENCE_MS", 50)
    with holding(path, "BEGIN IMMEDIATE") as pid:
        found = await findings(store)
        assert found["locks"].level == "error"
        if sys.platform == "linux":
            assert f"pid {pid} (" in found["locks"].message
        assert found["workers"].level == "ok", "the rest is looked at"
    assert (await findings(store))["locks"].level == "ok"
    await submit(store)


async def test_whoever_keeps_the_log_from_being_cut_is_named(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(checkup, "WAL_KEPT_BYTES", 1000)
    with holding(path, "BEGIN") as pid:
        await submit_several(store, 10)
        found = (await findings(store))["log size"]
    assert found.level == "warning"
    if sys.platform == "linux":
        assert f"pid {pid} (" in found.advice


async def test_where_the_kernel_does_not_tell_nobody_is_named(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(checkup, "PATIENCE_MS", 50)
    monkeypatch.setattr(lock_owners, "_LOCKS", path / "no such file")
    with holding(path, "BEGIN IMMEDIATE"):
        found = (await findings(store))["locks"]
    assert found.level == "error"
    assert "a process that this system does not name" in found.message


async def test_a_clock_that_was_set_back(store: SqliteStore):
    store.clock_offset = 3600.0
    await submit(store)
    assert (await findings(store))["clock"].level == "ok"
    store.clock_offset = 0.0
    found = (await findings(store))["clock"]
    assert found.level == "warning"
    assert "from 36" in found.message or "from 35" in found.message


async def test_a_claim_that_has_lost_its_index(store: SqliteStore, path: Path):
    connection = apsw.Connection(str(path))
    connection.execute("DROP INDEX ix_tasks_ready")
    connection.close()
    found = await findings(store)
    assert found["claim"].level == "error"
    assert found["workers"].level == "ok", "the rest is looked at"


async def test_damage_is_seen(store: SqliteStore, path: Path, sqlite_url: str):
    await submit_several(store, 500)
    await store.close()
    data = bytearray(path.read_bytes())
    data[8 * 4096 : 9 * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    damaged = SqliteStore(sqlite_url)
    assert [subject for subject, found in (await findings(damaged)).items() if found.level == "error"] == ["integrity"]
    await damaged.close()
