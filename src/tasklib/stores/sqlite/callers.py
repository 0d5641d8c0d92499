"""Submitting on the caller's own connection, so that the task commits or rolls back with the caller's work."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import Event
from time import monotonic

import apsw

from tasklib.core.errors import StoreBusy, Unsupported
from tasklib.core.task import NewTask
from tasklib.stores.sqlite import schema
from tasklib.stores.sqlite.address import Address
from tasklib.stores.sqlite.connection import translated
from tasklib.stores.sqlite.inserting import insert, names_due
from tasklib.stores.values import Inserted

_SECOND_LIBRARY = "two SQLite libraries in one process on one file undo each other's locks and can damage it"
_INSTEAD = "open the file with apsw.Connection and pass that"
_ELSEWHERE = (
    "this queue is in SQLite, and a connection to PostgreSQL leads elsewhere, while one to SQLite is on sqlite3: "
    f"{_SECOND_LIBRARY}; {_INSTEAD}, or keep the queue in PostgreSQL"
)
_OTHERS = {
    "sqlite3": f"a sqlite3 connection cannot be used: {_SECOND_LIBRARY}; {_INSTEAD}",
    "aiosqlite": f"an aiosqlite connection cannot be used: {_SECOND_LIBRARY}; {_INSTEAD}",
    "sqlalchemy": f"a SQLAlchemy connection or session cannot be used: {_ELSEWHERE}",
    "django": f"a Django connection cannot be used: {_ELSEWHERE}",
    "psycopg": "a psycopg connection cannot be used: this queue is in SQLite, not in PostgreSQL",
    "psycopg2": "a psycopg2 connection cannot be used: this queue is in SQLite, not in PostgreSQL",
    "asyncpg": "an asyncpg connection cannot be used: this queue is in SQLite, not in PostgreSQL",
}

_PAUSE = 0.002

_pending: weakref.WeakKeyDictionary[apsw.Connection, set[str]] = weakref.WeakKeyDictionary()
"""Names to ring for when a caller's transaction commits."""


def insert_on(
    address: Address,
    connection: object,
    tasks: Sequence[NewTask],
    clock_offset: float,
    timeout: float,
    ring: Callable[[Sequence[str]], None],
) -> list[Inserted]:
    callers = _checked(address, connection)
    alone = not callers.in_transaction
    try:
        inserted = _insert_patiently(callers, tasks, clock_offset, monotonic() + timeout)
    except apsw.BusyError as error:
        if _is_stale(error):
            raise StoreBusy(
                f"{address} was changed since your transaction first read it, so it can no longer write: roll it back "
                "and try again; one that starts with BEGIN IMMEDIATE does not meet this"
            ) from error
        raise translated(error, address) from error
    except apsw.Error as error:
        raise translated(error, address) from error
    due = names_due([task for task, outcome in zip(tasks, inserted, strict=True) if outcome.created])
    if due:
        if alone:
            ring(due)
        else:
            _ring_at_commit(callers, due, ring)
    return inserted


def _insert_patiently(
    connection: apsw.Connection, tasks: Sequence[NewTask], clock_offset: float, deadline: float
) -> list[Inserted]:
    """Waits for the lock of another process, which the caller's connection need not be prepared for."""
    while True:
        try:
            return _insert_all(connection, tasks, clock_offset)
        except apsw.BusyError as error:
            if _is_stale(error) or monotonic() >= deadline:
                raise
            Event().wait(_PAUSE)


def _is_stale(error: apsw.BusyError) -> bool:
    """The transaction has read what others changed since: no waiting helps."""
    # Not in apsw's type stubs.
    return bool(getattr(error, "extendedresult", None) == apsw.SQLITE_BUSY_SNAPSHOT)


def _insert_all(connection: apsw.Connection, tasks: Sequence[NewTask], clock_offset: float) -> list[Inserted]:
    """All or none: if it fails, the caller's transaction stays as it was."""
    cursor = apsw.Cursor(connection)
    cursor.row_trace = lambda _, row: row  # not the caller's, who may turn rows into something else
    schema.check(schema.version(cursor))
    cursor.execute("SAVEPOINT tasklib_insert")
    try:
        inserted = insert(cursor, tasks, clock_offset)
        cursor.execute("RELEASE tasklib_insert")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it altogether
            cursor.execute("ROLLBACK TO tasklib_insert; RELEASE tasklib_insert")
        raise
    return inserted


def _checked(address: Address, connection: object) -> apsw.Connection:
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    if address.path is None:
        raise Unsupported(
            f"a {kind} cannot be used: a queue in memory has no part in a transaction; use sqlite:/// or PostgreSQL, "
            "and in tests the fixture tasklib_queue, which takes any connection"
        )
    if not isinstance(connection, apsw.Connection):
        module = type(connection).__module__.partition(".")[0]
        raise Unsupported(_OTHERS.get(module, f"a {kind} cannot be used: {_INSTEAD}"))
    if connection.is_async:
        raise Unsupported("an apsw connection in async mode cannot be used: open the file with apsw.Connection")
    theirs = connection.db_filename("main")
    try:
        same = bool(theirs) and address.path.samefile(theirs)
    except OSError:
        same = False
    if not same:
        raise Unsupported(f"the connection is open on {theirs or 'a database in memory'}, the queue is in {address}")
    return connection


def _ring_at_commit(connection: apsw.Connection, names: Sequence[str], ring: Callable[[Sequence[str]], None]) -> None:
    """Rings just before the caller's commit: whoever wakes has to wait for the write lock, and then sees the tasks."""
    waiting = _pending.get(connection)
    if waiting is None:
        waiting = _pending[connection] = set()
        noted = waiting

        def committing() -> bool:
            if noted:
                ring(sorted(noted))
                noted.clear()
            return False

        # Under an id of our own: the caller's hooks stay.
        connection.set_commit_hook(committing, id=_pending)
        connection.set_rollback_hook(noted.clear, id=_pending)
    waiting.update(names)
