"""The PostgreSQL store: its life, and each verb handed to the module that knows it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from uuid import UUID

from tasklib.core.decide import Change, Verdict
from tasklib.core.errors import StoreClosed
from tasklib.core.task import Claim, NewTask, Task
from tasklib.stores.postgres import (
    callers,
    checkup,
    listing,
    looks,
    schema,
    settles,
    submits,
)
from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.claims import Claims
from tasklib.stores.postgres.connect import parse
from tasklib.stores.postgres.inside import Inside
from tasklib.stores.postgres.wake import Wakes
from tasklib.stores.sql import reads
from tasklib.stores.sql.store import SqlStore
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

_TRAITS = Traits(engine="postgresql", callers_transaction=True)
_POOLED = Traits(engine="postgresql", callers_transaction=True, wakes=False)
_FIRST_POLL = 1.0
_LONGEST_POLL = 5.0


class PostgresStore(SqlStore):
    """`Store` and `Admin` on PostgreSQL. An instance belongs to the event loop it was opened in."""

    def __init__(self, url: str, *, pool_size: int = 10, call_timeout: float = 30.0, clock_offset: float = 0.0) -> None:
        self._calls = Calls(parse(url), pool_size, call_timeout, clock_offset)
        super().__init__(self._calls)
        self._claims = Claims(self._calls)
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
            await schema.ensure(self._calls)
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

    # -- submit -------------------------------------------------------------------------------------------------------

    async def insert(self, tasks: Sequence[NewTask], *, dated: bool = False) -> Sequence[Inserted]:
        return await submits.insert(self._calls, tasks, dated=dated)

    def insert_here(self, tasks: Sequence[NewTask]) -> list[Inserted] | None:
        return None  # every call is a conversation with a server, and the loop holds it

    def insert_on(self, connection: object, tasks: Sequence[NewTask]) -> list[Inserted] | Awaitable[list[Inserted]]:
        return callers.play(connection, submits.inserting(tasks, self._calls.clock_offset), self._calls.sql)

    def inside(self, connection: object) -> Inside:
        """The queue as the caller's transaction sees it. The store need not be open."""
        return Inside(connection, self._calls.sql, self._calls.clock_offset)

    # -- work ---------------------------------------------------------------------------------------------------------

    async def claim(self, request: ClaimRequest) -> Claimed:
        return await self._claims.claim(request)

    async def take(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        return await self._claims.take(task_id, version, worker_id, lease_seconds)

    async def held(self, worker_id: str) -> list[Claim]:
        return [Claim._make(row) for row in await looks.fetch(self._calls, "held", worker_id)]

    async def settle(self, changes: Sequence[Change]) -> list[Verdict]:
        return await settles.settle(self._calls, changes)

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        return await settles.extend(self._calls, worker_id, leases, lease_seconds)

    # -- look ---------------------------------------------------------------------------------------------------------

    async def page(
        self, where: Filter, *, limit: int, cursor: UUID | None = None, offset: int = 0, oldest_first: bool = False
    ) -> Page:
        return await listing.page(
            self._calls, where, limit=limit, cursor=cursor, offset=offset, oldest_first=oldest_first
        )

    async def count(self, where: Filter, cap: int) -> Count:
        return await listing.count(self._calls, where, cap)

    # -- wake ---------------------------------------------------------------------------------------------------------

    def listen(self, wake: Callable[[str | None], None]) -> Callable[[], None]:
        return self._woken().listen(wake)

    async def watch(self, task_id: UUID) -> AsyncIterator[Task | None]:
        wakes = self._woken()
        ended, stop = wakes.await_end(task_id)
        try:
            # First listen, then mark and read: an end in between is heard.
            await wakes.attentive(timeout=1.0)
            poll = _FIRST_POLL
            while True:
                ended.clear()
                yield await self._calls.write(lambda: reads.watch(task_id))
                try:
                    async with asyncio.timeout(poll * random.uniform(0.8, 1.0)):
                        await ended.wait()
                except TimeoutError:
                    poll = min(poll * 1.5, _LONGEST_POLL)
        finally:
            stop()

    # -- administration -----------------------------------------------------------------------------------------------

    async def schema_version(self) -> int | None:
        self._start()
        return await schema.read_version(self._calls)

    async def migrate(self, *, plan: bool = False) -> list[str]:
        self._start()
        return await schema.migrate(self._calls, plan=plan)

    def migration_sql(self) -> list[tuple[str, str]]:
        return schema.scripts(self._calls.target)

    async def check_up(self) -> list[Finding]:
        self._start()
        return await checkup.findings(self._calls)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Administration works on a store that could not be opened: its schema may be what is wrong."""
        if self._closed:
            raise StoreClosed("the store is closed")
        if self._wakes is None:
            self._calls.start()
            self._wakes = Wakes(self._calls)

    def _woken(self) -> Wakes:
        if self._wakes is None or self._closed:
            raise StoreClosed("the store is not open, or was closed")
        return self._wakes
