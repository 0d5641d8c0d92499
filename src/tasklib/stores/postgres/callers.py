"""Queries on the caller's own connection, inside the caller's transaction: submits, and all that a test needs there.

The kind of connection is told from the modules its type comes from, so that no driver is imported for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from tasklib.core.errors import SchemaMismatch, TaskConflict, Unsupported
from tasklib.stores.postgres import failures
from tasklib.stores.postgres.submits import Query

ACCEPTED = (
    "an asyncpg connection, a psycopg connection or cursor (sync or async), a psycopg2 connection or cursor, "
    "a SQLAlchemy Session, Connection, AsyncSession or AsyncConnection, or a Django connection"
)

Rows: TypeAlias = Sequence[Sequence[Any]]
SyncExecute: TypeAlias = Callable[[str, dict[str, Any]], Rows]
AsyncExecute: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Rows]]
T = TypeVar("T")
Steps: TypeAlias = Generator[Query, Rows, T]
"""What to ask, and what to make of the answers."""

_NO_QUEUE = {error.sqlstate for error in failures.SCHEMA}
_CONFLICTS = {error.sqlstate for error in failures.CONFLICTS}
_SERIALIZATION = "40001"
_PARAMETER = re.compile(r"\$(\d+)")


class _Style(NamedTuple):
    """How a driver's statements are written."""

    parameter: str
    native: bool = False
    """Whether it is asyncpg that takes the values: it wants them as what the statement's casts say."""


_ASYNCPG = _Style(r"$\1", native=True)
_NAMED = _Style(r"%(p\1)s")


def play(connection: object, steps: Steps[T], sql: dict[str, str]) -> T | Awaitable[T]:
    """Sync connections are used at once, in this thread; for async ones the answer is to be awaited."""
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(connection).__mro__}
    if kinds & {"asyncpg.Connection", "asyncpg.PoolConnectionProxy"}:
        return _drive_async(_asyncpg(connection), steps, sql, _ASYNCPG)
    if kinds & {"psycopg.AsyncConnection", "psycopg.AsyncCursor", "psycopg.AsyncServerCursor"}:
        return _drive_async(_psycopg_async(connection), steps, sql, _NAMED)
    if kinds & {"psycopg.Connection", "psycopg.Cursor", "psycopg.ServerCursor"}:
        return _drive(_psycopg(connection), steps, sql, _NAMED)
    if kinds & {"psycopg2.connection", "psycopg2.cursor"}:
        return _drive(_psycopg2(connection), steps, sql, _NAMED)
    if kinds & {"sqlalchemy.AsyncSession", "sqlalchemy.AsyncConnection", "sqlalchemy.async_scoped_session"}:
        return _drive_async(_sqlalchemy_async(connection), steps, sql, _sqlalchemy_style(connection))
    if kinds & {"sqlalchemy.Session", "sqlalchemy.Connection", "sqlalchemy.scoped_session"}:
        return _drive(_sqlalchemy(connection), steps, sql, _sqlalchemy_style(connection))
    if kinds & {"django.BaseDatabaseWrapper", "django.ConnectionProxy"}:
        return _drive(_django(connection), steps, sql, _NAMED)
    raise _refusal(connection)


def _refusal(connection: object, what: str = "") -> Unsupported:
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    return Unsupported(f"cannot submit on {what or kind}: the PostgreSQL store takes {ACCEPTED}")


def _drive(execute: SyncExecute, steps: Steps[T], sql: dict[str, str], style: _Style) -> T:
    query = next(steps)
    while True:
        try:
            rows = execute(*_rendered(query, sql, style))
        except Exception as error:
            told = _told(error)
            if told is error:
                raise
            raise told from error
        try:
            query = steps.send(rows)
        except StopIteration as end:
            result: T = end.value
            return result


async def _drive_async(execute: AsyncExecute, steps: Steps[T], sql: dict[str, str], style: _Style) -> T:
    query = next(steps)
    while True:
        try:
            rows = await execute(*_rendered(query, sql, style))
        except Exception as error:
            told = _told(error)
            if told is error:
                raise
            raise told from error
        try:
            query = steps.send(rows)
        except StopIteration as end:
            result: T = end.value
            return result


def _rendered(query: Query, sql: dict[str, str], style: _Style) -> tuple[str, dict[str, Any]]:
    text = sql[query.name].rstrip(";")
    values = query.parameters if style.native else map(_plain, query.parameters)
    return _PARAMETER.sub(style.parameter, text), {f"p{n}": value for n, value in enumerate(values, 1)}


def _plain(value: Any) -> Any:
    """As every driver takes it. The statements cast what is text here."""
    match value:
        case list() | tuple():
            return f"{{{','.join(map(_element, value))}}}"
        case timedelta():
            return f"{value.total_seconds()} seconds"
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
        case _:
            return value


def _element(value: Any) -> str:
    """One of an array, in PostgreSQL's own notation."""
    if value is None:
        return "NULL"
    escaped = str(_plain(value)).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _told(error: Exception) -> Exception:
    """What only tasklib can explain, in its words. Everything else is the driver's own, and comes back as it is."""
    server = next((cause for cause in (error, getattr(error, "orig", None), error.__cause__) if _sqlstate(cause)), None)
    code, text = _sqlstate(server), str(server).partition("\n")[0]
    if code in _NO_QUEUE:
        return SchemaMismatch(
            f"the queue's tables are not where this connection leads to ({text}): run `tasklib migrate`, or this "
            "connection is not the queue's"
        )
    if code in _CONFLICTS:
        return TaskConflict(f"PostgreSQL refused: {text}")
    if code == _SERIALIZATION:  # a snapshot that was taken before the other transaction's commit cannot see its row
        error.add_note(
            "tasklib: another transaction took one of these idempotency keys after this one's snapshot was taken; "
            "run this transaction again"
        )
    return error


def _sqlstate(error: object) -> str | None:
    """psycopg2 has another name for it."""
    code: str | None = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return code


def _asyncpg(connection: Any) -> AsyncExecute:
    async def execute(text: str, parameters: dict[str, Any]) -> Rows:
        rows: Rows = await connection.fetch(text, *parameters.values())
        return rows

    return execute


def _psycopg(given: Any) -> SyncExecute:
    connection = getattr(given, "connection", given)  # a cursor leads to its connection
    tuples = sys.modules["psycopg"].rows.tuple_row  # whatever shape the caller's own rows have

    def execute(text: str, parameters: dict[str, Any]) -> Rows:
        with connection.cursor(row_factory=tuples) as cursor:
            rows: Rows = cursor.execute(text, parameters).fetchall()
            return rows

    return execute


def _psycopg_async(given: Any) -> AsyncExecute:
    connection = getattr(given, "connection", given)
    tuples = sys.modules["psycopg"].rows.tuple_row

    async def execute(text: str, parameters: dict[str, Any]) -> Rows:
        async with connection.cursor(row_factory=tuples) as cursor:
            await cursor.execute(text, parameters)
            rows: Rows = await cursor.fetchall()
            return rows

    return execute


def _psycopg2(given: Any) -> SyncExecute:
    connection = getattr(given, "connection", given)
    plain = sys.modules["psycopg2"].extensions.cursor

    def execute(text: str, parameters: dict[str, Any]) -> Rows:
        with connection.cursor(cursor_factory=plain) as cursor:
            cursor.execute(text, parameters)
            rows: Rows = cursor.fetchall()
            return rows

    return execute


def _sqlalchemy(connection: Any) -> SyncExecute:
    text_of = sys.modules["sqlalchemy"].text

    def execute(text: str, parameters: dict[str, Any]) -> Rows:
        rows: Rows = connection.execute(text_of(text), parameters).fetchall()
        return rows

    return execute


def _sqlalchemy_async(connection: Any) -> AsyncExecute:
    text_of = sys.modules["sqlalchemy"].text

    async def execute(text: str, parameters: dict[str, Any]) -> Rows:
        rows: Rows = (await connection.execute(text_of(text), parameters)).fetchall()
        return rows

    return execute


def _sqlalchemy_style(connection: Any) -> _Style:
    bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
    if bind.dialect.name != "postgresql":
        raise _refusal(connection, f"a SQLAlchemy connection to {bind.dialect.name}")
    # In parentheses: it takes a name that a cast follows for none.
    return _Style(r"(:p\1)", native=bind.dialect.driver == "asyncpg")


def _django(connection: Any) -> SyncExecute:
    if connection.vendor != "postgresql":
        raise _refusal(connection, f"a Django connection to {connection.vendor}")

    def execute(text: str, parameters: dict[str, Any]) -> Rows:
        with connection.cursor() as cursor:
            cursor.execute(text, parameters)
            rows: Rows = cursor.fetchall()
            return rows

    return execute
