"""Steps on the caller's own connection, so that what they write commits or rolls back with the caller's work."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import Event
from time import monotonic
from typing import Any, TypeAlias, TypeVar

import apsw

from tasklib.core.errors import StoreBusy, Unsupported
from tasklib.stores.sql.sqlite import schema
from tasklib.stores.sql.sqlite.address import Address
from tasklib.stores.sql.sqlite.connection import translated
from tasklib.stores.sql.sqlite.statements import Played
from tasklib.stores.sql.steps import Notify

T = TypeVar("T")

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

Work: TypeAlias = Callable[[apsw.Cursor], Played[T]]
Tell: TypeAlias = Callable[[Played[Any]], None]

_pending: weakref.WeakKeyDictionary[apsw.Connection, list[Notify]] = weakref.WeakKeyDictionary()
"""What is to be told when a caller's transaction commits."""


def play_on(address: Address, connection: object, work: Work[T], deadline: float, tell: Tell) -> T:
    callers = _checked(address, connection)
    alone = not callers.in_transaction
    try:
        played = _play_patiently(callers, work, deadline)
    except apsw.BusyError as error:
        if _is_stale(error):
            raise StoreBusy(
                f"{address} was changed since your transaction first read it, so it can no longer write: roll it back "
                "and try again; one that starts with BEGIN IMMEDIATE does not meet this"
            ) from error
        raise translated(error, address) from error
    except apsw.Error as error:
        raise translated(error, address) from error
    if alone:
        tell(played)
    else:
        _tell_at_commit(callers, played, tell)
    return played.result


def _play_patiently(connection: apsw.Connection, work: Work[T], deadline: float) -> Played[T]:
    """Waits for the lock of another process, which the caller's connection need not be prepared for."""
    while True:
        try:
            return _play(connection, work)
        except apsw.BusyError as error:
            if _is_stale(error) or monotonic() >= deadline:
                raise
            Event().wait(_PAUSE)


def _is_stale(error: apsw.BusyError) -> bool:
    """The transaction has read what others changed since: no waiting helps."""
    # Not in apsw's type stubs.
    return bool(getattr(error, "extendedresult", None) == apsw.SQLITE_BUSY_SNAPSHOT)


def _play(connection: apsw.Connection, work: Work[T]) -> Played[T]:
    """All or none: if it fails, the caller's transaction stays as it was."""
    cursor = apsw.Cursor(connection)
    cursor.row_trace = lambda _, row: row  # not the caller's, who may turn rows into something else
    schema.check(cursor)
    cursor.execute("SAVEPOINT tasklib")
    try:
        played = work(cursor)
        cursor.execute("RELEASE tasklib")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it altogether
            cursor.execute("ROLLBACK TO tasklib; RELEASE tasklib")
        raise
    return played


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


def _tell_at_commit(connection: apsw.Connection, played: Played[Any], tell: Tell) -> None:
    """Just before the caller's commit: whoever wakes has to wait for the write lock, and then sees the tasks."""
    waiting = _pending.get(connection)
    if waiting is None:
        waiting = _pending[connection] = []
        noted = waiting

        def committing() -> bool:
            if noted:
                tell(Played(None, [_together(noted)]))
                noted.clear()
            return False

        # Under an id of our own: the caller's hooks stay.
        connection.set_commit_hook(committing, id=_pending)
        connection.set_rollback_hook(noted.clear, id=_pending)
    waiting += played.notifications


def _together(notifications: Sequence[Notify]) -> Notify:
    return Notify(
        names=[name for each in notifications for name in each.names],
        finished=[task_id for each in notifications for task_id in each.finished],
        everybody=any(each.everybody for each in notifications),
    )
