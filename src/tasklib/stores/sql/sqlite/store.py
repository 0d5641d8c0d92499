"""The SQLite store: the verbs of `protocol.Store` and `protocol.Admin`, each handed to the thread that owns the
connection."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from tasklib.core.task import NewTask
from tasklib.stores.listeners import Listeners
from tasklib.stores.sql import submit
from tasklib.stores.sql.sqlite import checkup, notify, schema
from tasklib.stores.sql.sqlite.address import parse
from tasklib.stores.sql.sqlite.clock import Clock
from tasklib.stores.sql.sqlite.driver import SqliteDriver
from tasklib.stores.sql.sqlite.rows import instant
from tasklib.stores.sql.store import SqlStore
from tasklib.stores.values import Finding, Inserted, Traits

_CHECK_UP_SECONDS = 600.0
"""It reads the whole file."""
_MIGRATION_SECONDS = 3600.0
"""It walks through every row."""


class SqliteStore(SqlStore, SqliteDriver):
    """One file (`sqlite:///queue.db`) or a queue in memory (`memory://name`)."""

    def __init__(self, url: str, *, call_timeout: float = 30.0, clock_offset: float = 0.0) -> None:
        SqliteDriver.__init__(self, parse(url), call_timeout, Clock(clock_offset))
        SqlStore.__init__(self, self)
        self._listeners = Listeners(self._attend)
        self._subscriber: notify.Subscriber | None = None

    @property
    def traits(self) -> Traits:
        in_file = self._address.path is not None
        return Traits("sqlite", shared_between_processes=in_file)

    # -- life ---------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._check_process()
        await self._connect()
        try:
            if not await self._read(schema.is_there):
                await self._write(schema.prepare)
            if not await self._read(self._clock.read):
                await self._write(self._clock.agree)
        except BaseException:
            await self._disconnect()
            raise
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        self._listeners.close()
        await self._disconnect()

    async def lease_now(self) -> datetime:
        self._check_open()
        return instant(self._clock.steady())

    # -- submit -------------------------------------------------------------------------------------------------------

    def insert_sync(self, tasks: Sequence[NewTask]) -> Sequence[Inserted] | None:
        writer = self._writer
        if not self._is_open or writer is None or not submit.is_one_statement(tasks):
            return None
        played = writer.try_here(self._played(lambda: submit.submit(tasks)), self._timeout)
        if played is None:
            return None
        self._notify(played)
        return played.result

    def insert_on(self, connection: object, tasks: Sequence[NewTask], *, dated: bool = False) -> Sequence[Inserted]:
        dated = dated and submit.is_one_statement(tasks)
        return self.play_on(connection, lambda: submit.submit(tasks, dated=dated))

    # -- operate ------------------------------------------------------------------------------------------------------

    async def compact_stats(self) -> None:
        await super().compact_stats()
        await self._on_writer(partial(checkup.shorten_wal, address=self._address))

    # -- admin --------------------------------------------------------------------------------------------------------

    async def schema_version(self) -> int | None:
        if self._is_missing():
            return None
        await self._connect()
        return await self._read(schema.version)

    async def migrate(self, *, plan: bool = False) -> list[str]:
        if plan and self._is_missing():
            return [name for name, _ in self.migration_sql()]
        await self._connect()
        if plan:
            return await self._read(schema.missing)
        patience = max(self._timeout, _MIGRATION_SECONDS)
        return await self._running(self._writer).run(schema.migrate, patience, writes=True)

    def migration_sql(self) -> list[tuple[str, str]]:
        return schema.MIGRATIONS.scripts()

    async def check_up(self) -> list[Finding]:
        if self._is_missing():
            return [Finding("warning", "file", f"{self._address} does not exist yet", "the first use makes it")]
        await self._connect()
        work = partial(checkup.check_up, address=self._address, clock=self._clock)
        return await self._running(self._reader).run(work, max(self._timeout, _CHECK_UP_SECONDS))

    # -- parts of verbs -----------------------------------------------------------------------------------------------

    def _woken(self) -> Listeners:
        self._check_open()
        return self._listeners

    def _attend(self) -> None:
        """A subscriber for as long as somebody listens or waits."""
        wanted = self._listeners.listening or self._listeners.waiting
        if wanted and self._subscriber is None:
            self._subscriber = notify.Subscriber(self._notifier, self._listeners)
        elif not wanted and self._subscriber is not None:
            self._subscriber.close()
            self._subscriber = None
