"""The PostgreSQL store: its life, and each verb handed to the module that knows it."""

from __future__ import annotations

from datetime import datetime

from tasklib.core.errors import StoreClosed
from tasklib.stores.listeners import Listeners
from tasklib.stores.sql.postgres import checkup
from tasklib.stores.sql.postgres.driver import PostgresDriver
from tasklib.stores.sql.postgres.inside import Inside
from tasklib.stores.sql.postgres.notify import Wakes
from tasklib.stores.sql.postgres.schema import Schema
from tasklib.stores.sql.postgres.url import parse
from tasklib.stores.sql.store import SqlStore
from tasklib.stores.values import Finding, Traits

_TRAITS = Traits(engine="postgresql")
_POOLED = Traits(engine="postgresql", wakes=False)


class PostgresStore(SqlStore):
    """`Store` and `Admin` on PostgreSQL. An instance belongs to the event loop it was opened in."""

    def __init__(self, url: str, *, pool_size: int = 10, call_timeout: float = 30.0, clock_offset: float = 0.0) -> None:
        self._calls = PostgresDriver(parse(url), pool_size, call_timeout, clock_offset)
        super().__init__(self._calls)
        self._schema = Schema(self._calls)
        self._wakes: Wakes | None = None
        self._closed = False

    @property
    def traits(self) -> Traits:
        return _POOLED if self._calls.target.pgbouncer else _TRAITS

    @property
    def clock_offset(self) -> float:
        return self._calls.clock_offset

    @clock_offset.setter
    def clock_offset(self, seconds: float) -> None:
        self._calls.clock_offset = seconds

    # -- life ---------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._start()
        try:
            await self._schema.ensure()
        except BaseException:
            self._wakes = None
            await self._calls.stop()
            raise

    async def close(self) -> None:
        self._closed = True
        if self._wakes is not None:
            await self._wakes.close()
        await self._calls.stop()

    async def lease_now(self) -> datetime:
        return await self.now()

    def inside(self, connection: object) -> Inside:
        """The queue as the caller's transaction sees it. The store need not be open."""
        return Inside(connection, self._calls)

    # -- administration -----------------------------------------------------------------------------------------------

    async def schema_version(self) -> int | None:
        self._start()
        return await self._calls.read(self._schema.migrations.version)

    async def migrate(self, *, plan: bool = False) -> list[str]:
        self._start()
        return await (self._calls.read(self._schema.migrations.missing) if plan else self._schema.migrate())

    def migration_sql(self) -> list[tuple[str, str]]:
        return self._schema.migrations.scripts()

    async def check_up(self) -> list[Finding]:
        self._start()
        return await checkup.findings(self._calls, self._schema.migrations)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Administration works on a store that could not be opened: its schema may be what is wrong."""
        if self._closed:
            raise StoreClosed("the store is closed")
        if self._wakes is None:
            self._calls.start()
            self._wakes = Wakes(self._calls)

    def _woken(self) -> Listeners:
        if self._wakes is None or self._closed:
            raise StoreClosed("the store is not open, or was closed")
        return self._wakes.listeners
