"""Steps on the caller's own connection, inside the caller's transaction, in the style of that connection's driver.

The kind of connection is told from the modules its type comes from, so that no driver is imported for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from tasklib.core.errors import SchemaMismatch, TaskConflict, Unsupported
from tasklib.stores.sql.postgres import failures
from tasklib.stores.sql.postgres.statements import Statements, message
from tasklib.stores.sql.steps import BEGIN, IN_DOUBT, Notify, Play, Query, Steps

ACCEPTED = (
    "an asyncpg connection, a psycopg connection or cursor (sync or async), a psycopg2 connection or cursor, "
    "a SQLAlchemy Session, Connection, AsyncSession or AsyncConnection, or a Django connection"
)

T = TypeVar("T")

_NO_QUEUE = {error.sqlstate for error in failures.SCHEMA}
_CONFLICTS = {error.sqlstate for error in failures.CONFLICTS}
_SERIALIZATION = "40001"
_PARAMETER = re.compile(r"\$(\d+)")


Rows: TypeAlias = Sequence[Sequence[Any]]
SyncExecute: TypeAlias = Callable[[str, dict[str, Any]], Rows]
AsyncExecute: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Rows]]


class _Style(NamedTuple):
    """How a driver's statements are written."""

    parameter: str
    percent: str = "%"
    native: bool = False
    """Whether it is asyncpg that takes the values: it wants them as what the statement's casts say."""


_ASYNCPG = _Style(r"$\1", native=True)
_NAMED = _Style(r"%(p\1)s", percent="%%")


class _Asked(NamedTuple):
    """A query as a driver takes it."""

    text: str
    parameters: dict[str, Any]
    read: Callable[[Rows], Any]


class _Player(Generic[T]):
    """Plays steps in one style."""

    def __init__(self, steps: Callable[[], Steps[T]], statements: Statements, offset: timedelta, style: _Style) -> None:
        self._play = Play(steps())
        self._statements = statements
        self._offset = offset
        self._style = style

    def play(self, execute: SyncExecute) -> T:
        while (asked := self._next()) is not None:
            with _told():
                rows = execute(asked.text, asked.parameters)
            self._play.send(asked.read(rows))
        return self._play.result

    async def play_async(self, execute: AsyncExecute) -> T:
        while (asked := self._next()) is not None:
            with _told():
                rows = await execute(asked.text, asked.parameters)
            self._play.send(asked.read(rows))
        return self._play.result

    def _next(self) -> _Asked | None:
        """What the database is to be asked. The transaction is the caller's, and so is any doubt."""
        while (query := self._play.query) is not None:
            if isinstance(query, Notify):
                query = message(query)
            if isinstance(query, Query) and query is not BEGIN and query is not IN_DOUBT:
                return self._rendered(query)
            self._play.send(None)
        return None

    def _rendered(self, query: Query) -> _Asked:
        statement, values = self._statements.bound(query, self._offset)
        text = _PARAMETER.sub(self._style.parameter, statement.text.rstrip(";").replace("%", self._style.percent))
        given = values if self._style.native else map(_plain, values)
        return _Asked(text, {f"p{n}": value for n, value in enumerate(given, 1)}, partial(statement.rows, query))


def play_on(
    connection: object, steps: Callable[[], Steps[T]], statements: Statements, offset: timedelta
) -> T | Awaitable[T]:
    """Sync connections are used at once, in this thread; for async ones the answer is to be awaited."""

    def player(style: _Style) -> _Player[T]:
        return _Player(steps, statements, offset, style)

    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(connection).__mro__}
    if kinds & {"asyncpg.Connection", "asyncpg.PoolConnectionProxy"}:
        return player(_ASYNCPG).play_async(_asyncpg(connection))
    if kinds & {"psycopg.AsyncConnection", "psycopg.AsyncCursor", "psycopg.AsyncServerCursor"}:
        return player(_NAMED).play_async(_psycopg_async(connection))
    if kinds & {"psycopg.Connection", "psycopg.Cursor", "psycopg.ServerCursor"}:
        return player(_NAMED).play(_psycopg(connection))
    if kinds & {"psycopg2.connection", "psycopg2.cursor"}:
        return player(_NAMED).play(_psycopg2(connection))
    if kinds & {"sqlalchemy.AsyncSession", "sqlalchemy.AsyncConnection", "sqlalchemy.async_scoped_session"}:
        return player(_sqlalchemy_style(connection)).play_async(_sqlalchemy_async(connection))
    if kinds & {"sqlalchemy.Session", "sqlalchemy.Connection", "sqlalchemy.scoped_session"}:
        return player(_sqlalchemy_style(connection)).play(_sqlalchemy(connection))
    if kinds & {"django.BaseDatabaseWrapper", "django.ConnectionProxy"}:
        return player(_NAMED).play(_django(connection))
    raise _refusal(connection)


def _refusal(connection: object, what: str = "") -> Unsupported:
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    return Unsupported(f"cannot submit on {what or kind}: the PostgreSQL store takes {ACCEPTED}")


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


@contextmanager
def _told() -> Iterator[None]:
    """What only tasklib can explain, in its words. Everything else is the driver's own, and comes as it is."""
    try:
        yield
    except Exception as error:
        causes = (error, getattr(error, "orig", None), error.__cause__)
        server = next((cause for cause in causes if _sqlstate(cause)), None)
        code, text = _sqlstate(server), str(server).partition("\n")[0]
        if code in _NO_QUEUE:
            raise SchemaMismatch(
                f"the queue's tables are not where this connection leads to ({text}): run `tasklib migrate`, or this "
                "connection is not the queue's"
            ) from error
        if code in _CONFLICTS:
            raise TaskConflict(f"PostgreSQL refused: {text}") from error
        if code == _SERIALIZATION:  # a snapshot that was taken before the other transaction's commit: its row is unseen
            error.add_note(
                "tasklib: another transaction took one of these idempotency keys after this one's snapshot was taken; "
                "run this transaction again"
            )
        raise


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
    return _on_cursors(partial(connection.cursor, row_factory=tuples))


def _psycopg_async(given: Any) -> AsyncExecute:
    connection = getattr(given, "connection", given)
    tuples = sys.modules["psycopg"].rows.tuple_row

    async def execute(text: str, parameters: dict[str, Any]) -> Rows:
        async with connection.cursor(row_factory=tuples) as cursor:
            await cursor.execute(text, parameters)
            return await cursor.fetchall() if cursor.description else []

    return execute


def _psycopg2(given: Any) -> SyncExecute:
    connection = getattr(given, "connection", given)
    return _on_cursors(partial(connection.cursor, cursor_factory=sys.modules["psycopg2"].extensions.cursor))


def _django(connection: Any) -> SyncExecute:
    if connection.vendor != "postgresql":
        raise _refusal(connection, f"a Django connection to {connection.vendor}")
    return _on_cursors(connection.cursor)


def _on_cursors(cursor_of: Callable[[], Any]) -> SyncExecute:
    def execute(text: str, parameters: dict[str, Any]) -> Rows:
        with cursor_of() as cursor:
            cursor.execute(text, parameters)
            return cursor.fetchall() if cursor.description else []

    return execute


def _sqlalchemy(connection: Any) -> SyncExecute:
    text_of = sys.modules["sqlalchemy"].text

    def execute(text: str, parameters: dict[str, Any]) -> Rows:
        result = connection.execute(text_of(text), parameters)
        return result.fetchall() if result.returns_rows else []

    return execute


def _sqlalchemy_async(connection: Any) -> AsyncExecute:
    text_of = sys.modules["sqlalchemy"].text

    async def execute(text: str, parameters: dict[str, Any]) -> Rows:
        result = await connection.execute(text_of(text), parameters)
        return result.fetchall() if result.returns_rows else []

    return execute


def _sqlalchemy_style(connection: Any) -> _Style:
    bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
    if bind.dialect.name != "postgresql":
        raise _refusal(connection, f"a SQLAlchemy connection to {bind.dialect.name}")
    # In parentheses: it takes a name that a cast follows for none.
    return _Style(r"(:p\1)", native=bind.dialect.driver == "asyncpg")
