"""The check-up behind `tasklib doctor`, and the length of the write-ahead log."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from tasklib.core.errors import SchemaMismatch
from tasklib.stores.base import Finding
from tasklib.stores.sqlite import filesystem, schema
from tasklib.stores.sqlite.address import Address
from tasklib.stores.sqlite.batches import SQL, values_of
from tasklib.stores.sqlite.connection import WAL_KEPT_BYTES
from tasklib.stores.sqlite.rows import seconds

_NAMES_SHOWN = 10


def check_up(connection: apsw.Connection, address: Address, clock_offset: float) -> list[Finding]:
    findings = [Finding("ok", "sqlite", f"SQLite {apsw.sqlite_lib_version()}")]
    findings += _schema(connection)
    if address.path is not None:
        findings += _file(connection, address.path)
    if any(finding.subject == "schema" and finding.level != "ok" for finding in findings):
        return findings  # there is nothing more to look at
    return [*findings, *_claim_plan(connection), *_backlog(connection, clock_offset)]


def plan_of_claim(connection: apsw.Connection) -> str:
    """How SQLite would look for the next task of one name."""
    cursor = connection.execute("EXPLAIN QUERY PLAN " + SQL["pick"], {"name": "", "n": 1, "now": ""})
    return "; ".join(str(row[3]) for row in cursor)


def shorten_wal(connection: apsw.Connection, address: Address) -> None:
    """Cuts a write-ahead log that has grown long. Readers in the way are no trouble: the next time will do."""
    if address.path is None or _size(_wal(address.path)) <= WAL_KEPT_BYTES:
        return
    with suppress(apsw.BusyError, apsw.LockedError):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _schema(connection: apsw.Connection) -> Iterator[Finding]:
    try:
        found = schema.version(connection)
        if found is None:
            yield Finding(
                "warning", "schema", "there are no tables yet", "the first use makes them, or: tasklib migrate"
            )
            return
        schema.check(found)
    except SchemaMismatch as error:
        yield Finding("error", "schema", str(error), "run `tasklib migrate`")
    else:
        yield Finding("ok", "schema", f"version {found}")


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
        advice = "somebody keeps an old read transaction open; end it, and the next clean-up cuts the log"
        yield Finding("warning", "log size", f"the write-ahead log has {size:,} bytes", advice)
    else:
        yield Finding("ok", "log size", f"the write-ahead log has {size:,} bytes")
    problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    if problems == ["ok"]:
        yield Finding("ok", "integrity", "quick check passed")
    else:
        yield Finding("error", "integrity", "; ".join(problems), "restore the file from a backup")


def _claim_plan(connection: apsw.Connection) -> Iterator[Finding]:
    plan = plan_of_claim(connection)
    if "USING COVERING INDEX ix_tasks_ready" in plan or "USING INDEX ix_tasks_ready" in plan:
        yield Finding("ok", "claim", "a claim uses ix_tasks_ready")
    else:
        yield Finding("error", "claim", f"a claim does not use ix_tasks_ready: {plan}", "create the index again")


def _backlog(connection: apsw.Connection, clock_offset: float) -> Iterator[Finding]:
    offset = {"offset": seconds(clock_offset)}
    names: list[str] = values_of(connection, SQL["unattended"], offset)
    if names:
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
        yield Finding("warning", "backlog", f"no live worker handles: {shown}", "start a worker that has these tasks")
    expiring = connection.execute(SQL["expiring"], offset).get
    if expiring:
        message = f"{expiring} running tasks have leases that end within 10 seconds, or ended"
        yield Finding("warning", "leases", message, "are their workers alive?")


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
