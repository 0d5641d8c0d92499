"""The migrations of a PostgreSQL schema: one transaction under an advisory lock."""

from __future__ import annotations

import asyncio

import asyncpg

from tasklib.core.errors import StoreBusy
from tasklib.stores.sql.migrate import Migrations
from tasklib.stores.sql.postgres.driver import PostgresDriver
from tasklib.stores.sql.steps import BEGIN, Query, Script, Steps

PATIENCE_SECONDS = 60.0
"""So long a migration tries to get at tables that others have locked."""
_PAUSE_SECONDS = 1.0


class Schema:
    def __init__(self, calls: PostgresDriver) -> None:
        self._calls = calls
        self.migrations = Migrations(
            "postgres",
            calls.target.quoted_schema,
            where=f"schema {calls.target.schema}",
            elsewhere="put tasklib's into a schema of its own with ?schema=NAME in the database URL",
        )

    async def ensure(self) -> None:
        """Gives an empty database its tables; refuses what it cannot work with."""
        if not await self._calls.read(self.migrations.check):
            await self.migrate()

    async def migrate(self) -> list[str]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_SECONDS
        while True:
            try:
                return await self._calls.write(self._migrating)
            except StoreBusy as error:
                if not isinstance(error.__cause__, asyncpg.LockNotAvailableError):
                    raise
                if loop.time() >= deadline:
                    raise StoreBusy(
                        "the tables are in use by a transaction that does not end, so nothing was migrated; "
                        "tasklib doctor names the oldest: end it, and migrate again"
                    ) from error
            await asyncio.sleep(_PAUSE_SECONDS)

    def _migrating(self) -> Steps[list[str]]:
        yield BEGIN
        # However long it takes. The lock makes a second one wait, and then find nothing to do.
        yield Script("SET LOCAL statement_timeout = 0")
        yield Query("migration_lock")
        # Looked up first: even IF NOT EXISTS needs a privilege that users of an existing schema may not have.
        if self._calls.target.creates_schema and not (yield Query("has_schema")):
            yield Query("create_schema")
        # Everybody who comes after a statement that waits for a table waits behind it: so it waits for a moment only,
        # and is tried again.
        yield Script("SET LOCAL lock_timeout = '1s'")
        return (yield from self.migrations.migrate())
