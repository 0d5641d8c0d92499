"""Opening SQLite as the queue needs it, and its errors in tasklib's words."""

from __future__ import annotations

import os

import apsw

from tasklib.core.errors import (
    SchemaMismatch,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
    TaskConflict,
    TaskLibError,
)
from tasklib.stores.sql.sqlite import filesystem, filters
from tasklib.stores.sql.sqlite.address import Address

OLDEST_SAFE = (3, 51, 3)
"""Older versions can lose committed rows in WAL mode with several processes (the WAL-reset bug)."""

WAL_PAGES = 4000
"""Pages in the WAL before a commit moves them into the file: 16 MB."""
WAL_KEPT_BYTES = 64 * 1024 * 1024
"""What the WAL is cut back to after it has grown beyond."""

_MISSING = ("no such table", "no such column", "has no column named")
_CACHE_KIB = 16 * 1024
_STATEMENTS_KEPT = 400
"""Prepared ones. apsw forgets what was not among the latest, and the statement of a batch is dear to prepare."""


def connect(address: Address, *, create: bool = True) -> apsw.Connection:
    """A connection for one thread. Raises apsw's own errors; BusyError means: try again. `create`: make the file if
    there is none."""
    check_version(apsw.sqlite_lib_version())
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    if address.path is None:
        connection = apsw.Connection(
            address.filename, flags=flags | apsw.SQLITE_OPEN_CREATE, statementcachesize=_STATEMENTS_KEPT
        )
    else:
        filesystem.prepare(address.path, create=create)
        connection = apsw.Connection(
            str(address.path), flags=flags & ~apsw.SQLITE_OPEN_URI, statementcachesize=_STATEMENTS_KEPT
        )
    try:
        connection.pragma("temp_store", "memory")
        connection.create_scalar_function("same_json", filters.same_json, 2, deterministic=True)
        connection.create_scalar_function("contains_letters", filters.contains_letters, 2, deterministic=True)
        connection.create_scalar_function("holds_values", filters.holds_values, 2, deterministic=True)
        connection.create_scalar_function("holds_word", filters.holds_word, 8, deterministic=True)
        connection.pragma("cache_size", -_CACHE_KIB)
        if address.path is not None:
            if connection.pragma("journal_mode", "wal") != "wal":
                raise StoreRefused(f"cannot open {address}: SQLite cannot use its write-ahead log there")
            connection.pragma("synchronous", address.synchronous)
            connection.pragma("journal_size_limit", WAL_KEPT_BYTES)
            connection.wal_autocheckpoint(WAL_PAGES)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def check_version(version: str) -> None:
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_SAFE:
        needed = ".".join(map(str, OLDEST_SAFE))
        raise StoreRefused(
            f"SQLite {version} can lose committed rows when several processes use one file; {needed} or newer is "
            "needed: pip install --upgrade apsw"
        )


def translated(error: apsw.Error, address: Address) -> TaskLibError:
    """apsw's error as one of ours, with a line that says what to do."""
    text = str(error)
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.InterruptError() | apsw.ProtocolError():
            return StoreBusy(f"{address} did not answer in time: {text}")
        case apsw.FullError():
            return StoreFull(f"no room left for {address}: {text}")
        case apsw.NotADBError():
            return StoreRefused(f"{address} is not a SQLite database")
        case apsw.CorruptError():
            return StoreRefused(f"{address} is damaged ({text}); restore it from a backup")
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.ReadOnlyError() | apsw.AuthError():
            return StoreRefused(f"cannot open {address}: {text}")
        case apsw.IOError():
            return _disk_trouble(text, address)
        case apsw.NoMemError():
            return StoreUnavailable(f"{address}: out of memory")
        case apsw.ConstraintError() if text.startswith("UNIQUE"):  # it names the index, or its columns
            return TaskConflict(f"{address} refused: {text}")
        case apsw.SQLError() if any(missing in text for missing in _MISSING):
            return SchemaMismatch(f"{address}: {text}; somebody changed the schema of the queue")
        case _:
            return StoreError(f"{address}: {text}")


def _disk_trouble(text: str, address: Address) -> TaskLibError:
    # A full disk shows as a failed write where SQLite maps memory or meets a quota.
    if address.path is not None and hasattr(os, "statvfs"):
        try:
            space = os.statvfs(address.path.parent)
            if space.f_bavail * space.f_frsize < 1024 * 1024:
                return StoreFull(f"no room left for {address}: {text}")
        except OSError:
            pass
    return StoreUnavailable(f"{address}: {text}")
