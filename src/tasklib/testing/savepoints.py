"""A savepoint on a test's connection, by the means of whatever made the connection."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any


class Undo(Exception):
    """Leaves `savepoint` and takes back what was done in it."""


@asynccontextmanager
async def savepoint(connection: Any) -> AsyncIterator[None]:
    """What was done inside is undone where the block raises; then the connection can be used on, whatever went wrong.
    On a sync connection nothing is waited for."""
    kinds = {kind.__module__.partition(".")[0] for kind in type(connection).__mro__}
    if "sqlalchemy" in kinds:
        # Not as a context manager: that would forbid the handler its own commit.
        nested = await answered(connection.begin_nested())
        try:
            yield
        except BaseException:
            if nested.is_active:
                await answered(nested.rollback())
            raise
        if nested.is_active:
            await answered(nested.commit())
    elif "django" in kinds:
        with sys.modules["django.db.transaction"].atomic(using=connection.alias):
            yield
    elif kinds & {"psycopg", "psycopg2", "asyncpg"}:
        execute = _executing(connection)
        await answered(execute("SAVEPOINT tasklib_run"))
        try:
            yield
        except BaseException:
            await answered(execute("ROLLBACK TO SAVEPOINT tasklib_run"))
            raise
        finally:
            await answered(execute("RELEASE SAVEPOINT tasklib_run"))
    else:
        yield


async def answered(answer: Any) -> Any:
    """What a connection gives, be it a sync one or an async one."""
    return await answer if isinstance(answer, Awaitable) else answer


def _executing(given: Any) -> Callable[[str], Any]:
    connection = getattr(given, "connection", given)  # a cursor leads to its connection
    if hasattr(connection, "execute"):
        execute: Callable[[str], Any] = connection.execute
        return execute

    def by_cursor(text: str) -> None:  # psycopg2
        with connection.cursor() as cursor:
            cursor.execute(text)

    return by_cursor
