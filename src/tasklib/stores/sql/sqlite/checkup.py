"""The check-up behind `tasklib doctor`, and the length of the write-ahead log."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from tasklib.stores.sql import doctor
from tasklib.stores.sql.sqlite import filesystem, lock_owners, schema
from tasklib.stores.sql.sqlite.address import Address
from tasklib.stores.sql.sqlite.batches import SQL
from tasklib.stores.sql.sqlite.claiming import PICKED
from tasklib.stores.sql.sqlite.clock import Clock
from tasklib.stores.sql.sqlite.connection import WAL_KEPT_BYTES
from tasklib.stores.sql.sqlite.rows import seconds
from tasklib.stores.sql.sqlite.statements import play, prepare
from tasklib.stores.sql.steps import Query
from tasklib.stores.values import Finding

PATIENCE_MS = 3000
"""How long the check-up waits for its turn to write. In a queue that works it is a matter of milliseconds."""
_CLOCK_SET_BACK = 2.0


def check_up(connection: apsw.Connection, address: Address, clock: Clock) -> list[Finding]:
    findings = [Finding("ok", "sqlite", f"SQLite {apsw.sqlite_lib_version()}")]
    findings.append(play(connection, doctor.tables(schema.MIGRATIONS), clock).result)
    if address.path is not None:
        findings += _file(connection, address.path)
        findings += _locks(connection, address.path)
    if any(finding.subject in ("schema", "integrity") and finding.level != "ok" for finding in findings):
        return findings  # there is nothing more to look at, or nothing that can be believed
    findings.append(_claim_plan(connection))
    return [*findings, *_queue(connection, clock)]


def plan_of_claim(connection: apsw.Connection) -> str:
    """How SQLite would look for the next task of one name."""
    statement = prepare(Query("pick", PICKED), 0)
    cursor = connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", [None] * len(statement.parameters))
    return "; ".join(str(row[3]) for row in cursor)


def shorten_wal(connection: apsw.Connection, address: Address) -> None:
    """Cuts a write-ahead log that has grown long. Readers in the way are no trouble: the next time will do."""
    if address.path is None or _size(_wal(address.path)) <= WAL_KEPT_BYTES:
        return
    with suppress(apsw.BusyError, apsw.LockedError):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _file(connection: apsw.Connection, path: Path) -> Iterator[Finding]:
    network = filesystem.network_type(path.parent)
    if network:
        yield Finding("error", "file system", f"{path} is on a network file system ({network})", "use a local disk")
    else:
        yield Finding("ok", "file system", f"{path} is on a local file system")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield Finding("warning", "file mode", f"others may open {path} (mode {mode:04o})", f"chmod 600 {path}")
    journal = connection.pragma("journal_mode")
    if journal == "wal":
        yield Finding("ok", "journal", "write-ahead log")
    else:
        yield Finding("error", "journal", f"journal mode is {journal}", "set it back: PRAGMA journal_mode=wal")
    size = _size(_wal(path))
    if size > WAL_KEPT_BYTES:
        reading = _list(lock_owners.readers(path))
        advice = f"somebody keeps an old read transaction open ({reading}); end it, and the next clean-up cuts the log"
        yield Finding("warning", "log size", f"the write-ahead log has {size:,} bytes", advice)
    else:
        yield Finding("ok", "log size", f"the write-ahead log has {size:,} bytes")
    try:
        problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    except apsw.CorruptError as error:  # too damaged to be checked
        problems = [str(error)]
    if problems == ["ok"]:
        yield Finding("ok", "integrity", "quick check passed")
    else:
        yield Finding("error", "integrity", "; ".join(problems), "restore the file from a backup")


def _claim_plan(connection: apsw.Connection) -> Finding:
    try:
        plan = plan_of_claim(connection)
    except apsw.SQLError as error:  # the statement names its index
        plan = str(error)
    if "USING COVERING INDEX ix_tasks_ready" in plan or "USING INDEX ix_tasks_ready" in plan:
        return Finding("ok", "claim", "a claim uses ix_tasks_ready")
    advice = "create the index again: tasklib migrate --sql shows how"
    return Finding("error", "claim", f"a claim does not use ix_tasks_ready: {plan}", advice)


def _locks(connection: apsw.Connection, path: Path) -> Iterator[Finding]:
    """All writers take turns, so one that does not end its transaction stops every other."""
    connection.set_busy_timeout(PATIENCE_MS)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except apsw.BusyError:
        message = (
            f"nobody could write for {PATIENCE_MS / 1000:g} s: {_list(lock_owners.writers(path))} has the write lock"
        )
        yield Finding("error", "locks", message, "let that process end its transaction, or end the process")
    else:
        yield Finding("ok", "locks", "nobody keeps others from writing")
    finally:
        connection.set_busy_timeout(0)  # its thread waits for locks


def _list(processes: list[str]) -> str:
    return ", ".join(processes) or "a process that this system does not name"


def _queue(connection: apsw.Connection, clock: Clock) -> Iterator[Finding]:
    clock.read(connection)  # the check-up does without opening the store
    ahead = connection.execute(SQL["newest_ahead"], {"offset": seconds(clock.offset)}).get or 0.0
    if ahead > _CLOCK_SET_BACK:
        message = f"the newest task is from {ahead:.0f} s in the future: this machine's clock was set back"
        yield Finding("warning", "clock", message, "the clock decides when tasks are due; set it right")
    else:
        yield Finding("ok", "clock", "this machine's clock decides, and no task is from its future")
    yield from play(connection, doctor.queue(), clock).result


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
