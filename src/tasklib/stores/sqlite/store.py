"""The SQLite store: the verbs of `base.Store` and `base.Admin`, each handed to the thread that owns the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from tasklib.core.decide import Change, Verdict
from tasklib.core.task import Claim, NewTask, Task
from tasklib.stores.sql import reads
from tasklib.stores.sql.store import SqlStore
from tasklib.stores.sqlite import (
    callers,
    checkup,
    claims,
    inserting,
    listing,
    schema,
    settling,
    wake,
)
from tasklib.stores.sqlite.address import parse
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.lanes import Lanes
from tasklib.stores.sqlite.rows import instant
from tasklib.stores.values import (
    Claimed,
    ClaimRequest,
    Count,
    Extension,
    Filter,
    Finding,
    Held,
    Inserted,
    Page,
    Traits,
)

_FIRST_WATCH_PAUSE = 1.0
_LONGEST_WATCH_PAUSE = 5.0
_CHECK_UP_SECONDS = 600.0
"""It reads the whole file."""


class SqliteStore(SqlStore, Lanes):
    """One file (`sqlite:///queue.db`) or a queue in memory (`memory://name`)."""

    def __init__(self, url: str, *, call_timeout: float = 30.0, clock_offset: float = 0.0) -> None:
        Lanes.__init__(self, parse(url), call_timeout, Clock(clock_offset))
        SqlStore.__init__(self, self)
        self._ear: wake.Ear | None = None

    @property
    def traits(self) -> Traits:
        in_file = self._address.path is not None
        return Traits("sqlite", callers_transaction=in_file, shared_between_processes=in_file)

    # -- life ---------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._check_process()
        await self._connect()
        try:
            found = await self._read(schema.version)
            if found != schema.CURRENT:
                await self._write(schema.prepare)
            if not await self._read(self._clock.read):
                await self._write(self._clock.agree)
        except BaseException:
            await self._disconnect()
            raise
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        if self._ear is not None:
            self._ear.close()
            self._ear = None
        await self._disconnect()

    async def lease_now(self) -> datetime:
        self._check_open()
        return instant(self._clock.steady())

    # -- submit -------------------------------------------------------------------------------------------------------

    async def insert(self, tasks: Sequence[NewTask], *, dated: bool = False) -> list[Inserted]:
        if not tasks:
            return []
        work = partial(inserting.insert, tasks=tasks, clock_offset=self.clock_offset)

        def ring(inserted: list[Inserted]) -> None:
            self._ring(inserting.names_due(tasks))

        return await self._change(work, atomic=inserting.is_one_statement(tasks), after=ring)

    def insert_here(self, tasks: Sequence[NewTask]) -> list[Inserted] | None:
        writer = self._writer
        if not self._is_open or writer is None or not inserting.is_one_statement(tasks):
            return None
        work = partial(inserting.insert, tasks=tasks, clock_offset=self.clock_offset)
        inserted = writer.try_here(work, self._timeout)
        if inserted is not None:
            self._ring(inserting.names_due(tasks))
        return inserted

    def insert_on(self, connection: object, tasks: Sequence[NewTask]) -> list[Inserted]:
        return callers.insert_on(self._address, connection, tasks, self.clock_offset, self._timeout, self._ring)

    # -- work ---------------------------------------------------------------------------------------------------------

    async def claim(self, request: ClaimRequest) -> Claimed:
        return await self._change(partial(claims.claim, request=request, clock=self._clock))

    async def take(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        clock = self._clock
        return await self._change(
            lambda connection: claims.take(connection, task_id, version, worker_id, lease_seconds, clock)
        )

    async def held(self, worker_id: str) -> list[Claim]:
        return await self._look(partial(claims.held, worker_id=worker_id))

    async def settle(self, changes: Sequence[Change]) -> list[Verdict]:
        if not changes:
            return []

        def ring(settled: settling.Settled) -> None:
            self._ring_with(wake.claimable(settled.claimable) + wake.finished(settled.finished))

        work = partial(settling.settle, changes=changes, clock_offset=self.clock_offset)
        return (await self._change(work, after=ring)).verdicts

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        if not leases:
            return []
        clock = self._clock
        return await self._change(
            lambda connection: settling.extend(connection, worker_id, leases, lease_seconds, clock)
        )

    async def tidy(self) -> None:
        await super().tidy()
        await self._on_writer(partial(checkup.shorten_wal, address=self._address))

    # -- look ---------------------------------------------------------------------------------------------------------

    async def page(
        self, where: Filter, *, limit: int, cursor: UUID | None = None, offset: int = 0, oldest_first: bool = False
    ) -> Page:
        clock_offset = self.clock_offset
        return await self._look_for_people(
            lambda connection: listing.page(connection, where, limit, cursor, offset, oldest_first, clock_offset)
        )

    async def count(self, where: Filter, cap: int) -> Count:
        work = partial(listing.count, where=where, cap=cap, clock_offset=self.clock_offset)
        return await self._look_for_people(work)

    # -- wake ---------------------------------------------------------------------------------------------------------

    def listen(self, wake: Callable[[str | None], None]) -> Callable[[], None]:
        self._check_open()
        ear = self._listening()
        ear.add(wake)

        def stop() -> None:
            ear.remove(wake)
            self._rest(ear)

        return stop

    async def watch(self, task_id: UUID) -> AsyncIterator[Task | None]:
        self._check_open()
        ear = self._listening()
        ended = asyncio.Event()
        ear.wait_for(str(task_id), ended)
        pause = _FIRST_WATCH_PAUSE
        try:
            while True:
                ended.clear()
                yield await self.write(lambda: reads.watch(task_id))
                try:
                    async with asyncio.timeout(pause):
                        await ended.wait()
                except TimeoutError:
                    pause = min(pause * 1.5, _LONGEST_WATCH_PAUSE)
        finally:
            ear.stop_waiting(str(task_id), ended)
            self._rest(ear)

    # -- admin --------------------------------------------------------------------------------------------------------

    async def schema_version(self) -> int | None:
        if self._is_missing():
            return None
        await self._connect()
        return await self._read(schema.version)

    async def migrate(self, *, plan: bool = False) -> list[str]:
        if plan:
            return [step.name for step in schema.pending(await self.schema_version())]
        await self._connect()
        return await self._write(schema.migrate)

    def migration_sql(self) -> list[tuple[str, str]]:
        return schema.scripts()

    async def check_up(self) -> list[Finding]:
        if self._is_missing():
            return [Finding("warning", "file", f"{self._address} does not exist yet", "the first use makes it")]
        await self._connect()
        work = partial(checkup.check_up, address=self._address, clock=self._clock)
        return await self._lane(self._reader).run(work, max(self._timeout, _CHECK_UP_SECONDS))

    # -- parts of verbs -----------------------------------------------------------------------------------------------

    def _ring(self, names: Sequence[str]) -> None:
        self._ring_with(wake.claimable(names))

    def _ring_with(self, messages: list[str]) -> None:
        self._bells.ring(messages)

    def _listening(self) -> wake.Ear:
        if self._ear is None:
            self._ear = wake.Ear(self._bells)
        return self._ear

    def _rest(self, ear: wake.Ear) -> None:
        if ear.idle:
            ear.close()
            if self._ear is ear:
                self._ear = None
