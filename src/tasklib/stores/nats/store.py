"""The NATS store: its life, and each verb handed to the module that knows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from uuid import UUID

from tasklib.core.decide import Change, Verdict
from tasklib.core.errors import StoreClosed, Unsupported
from tasklib.core.published import PublishedType
from tasklib.core.task import Claim, NewTask, Task
from tasklib.stores.nats import checkup, ledger, operates, restores, schema
from tasklib.stores.nats.address import parse
from tasklib.stores.nats.bucket import Bucket
from tasklib.stores.nats.claims import Claims
from tasklib.stores.nats.clock import Clock
from tasklib.stores.nats.counts import Counts
from tasklib.stores.nats.held import HeldRecords
from tasklib.stores.nats.link import Link
from tasklib.stores.nats.looks import Looks
from tasklib.stores.nats.mirror import Mirror
from tasklib.stores.nats.prunes import Prunes
from tasklib.stores.nats.settles import Settles
from tasklib.stores.nats.submits import Submits
from tasklib.stores.values import (
    Age,
    AuditEntry,
    Claimed,
    ClaimRequest,
    ControlChange,
    Controls,
    Count,
    Extension,
    Filter,
    Finding,
    Held,
    Hint,
    Inserted,
    NameStats,
    Page,
    Point,
    Token,
    Traits,
    WorkerBeat,
    WorkerInfo,
)

_TRAITS = Traits(engine="nats")


class NatsStore:
    """`Store` and `Admin` on a JetStream KV bucket. An instance belongs to the event loop it was opened in."""

    def __init__(self, url: str, *, call_timeout: float = 30.0, clock_offset: float = 0.0) -> None:
        self._clock = Clock(clock_offset)
        self._link = Link(parse(url), call_timeout)
        self._bucket = Bucket(self._link, self._clock)
        self._mirror = Mirror(self._bucket)
        self._counts = Counts(self._bucket)
        held = HeldRecords()
        self._mirror.moved = held.moved
        self._claims = Claims(self._bucket, self._mirror, held)
        self._settles = Settles(self._bucket, self._counts, held)
        self._submits = Submits(self._bucket)
        self._deletes = operates.Deletes(self._bucket)
        self._prunes = Prunes(self._bucket, self._deletes)
        self._workers = operates.Workers(self._bucket, self._mirror)
        self._looks = Looks(self._bucket, self._mirror)
        self._is_open = False

    @property
    def traits(self) -> Traits:
        return _TRAITS

    @property
    def clock_offset(self) -> float:
        return self._clock.offset

    @clock_offset.setter
    def clock_offset(self, seconds: float) -> None:
        self._clock.offset = seconds

    # -- life ---------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        await self._link.start()
        try:
            await schema.prepare(self._bucket)
        except BaseException:
            await self._link.stop(forever=False)
            raise
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        await self._submits.close()
        await self._counts.close()
        await self._mirror.close()
        await self._link.stop()

    async def now(self) -> datetime:
        self._check_open()
        return self._clock.now()

    async def lease_now(self) -> datetime:
        self._check_open()
        return self._clock.earliest()

    # -- submit -------------------------------------------------------------------------------------------------------

    async def insert(self, tasks: Sequence[NewTask]) -> list[Inserted]:
        self._check_open()
        return await self._submits.insert(tasks)

    def insert_on(self, connection: object, tasks: Sequence[NewTask]) -> list[Inserted]:
        kind = type(connection)
        raise Unsupported(
            f"a submit on the caller's own connection ({kind.__module__}.{kind.__qualname__}): NATS cannot join a "
            "database transaction; submit after it has committed, with an idempotency key"
        )

    async def restore(self, tasks: Sequence[Task]) -> list[Verdict]:
        self._check_open()
        return await restores.restore(self._bucket, tasks)

    # -- work ---------------------------------------------------------------------------------------------------------

    async def claim(self, request: ClaimRequest) -> Claimed:
        self._check_open()
        return await self._claims.claim(request)

    async def take(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        self._check_open()
        return await self._claims.take(task_id, version, worker_id, lease_seconds)

    async def held(self, worker_id: str) -> list[Claim]:
        self._check_open()
        return await self._claims.held(worker_id)

    async def settle(self, changes: Sequence[Change]) -> list[Verdict]:
        self._check_open()
        return await self._settles.settle(changes)

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        self._check_open()
        return await self._settles.extend(worker_id, leases, lease_seconds)

    async def beat(self, worker: WorkerBeat) -> None:
        self._check_open()
        await self._workers.beat(worker)

    async def farewell(self, worker_id: str) -> None:
        self._check_open()
        await self._workers.farewell(worker_id)

    async def lost_leases(self, dead_after_seconds: float, limit: int) -> list[Task]:
        self._check_open()
        return await self._workers.lost_leases(dead_after_seconds, limit)

    # -- task types ---------------------------------------------------------------------------------------------------

    async def publish(self, types: Sequence[PublishedType]) -> None:
        self._check_open()
        await operates.publish(self._bucket, types)

    async def published(self) -> list[PublishedType]:
        self._check_open()
        return await operates.published(self._bucket)

    # -- operate ------------------------------------------------------------------------------------------------------

    async def request_cancel(self, ids: Sequence[UUID]) -> list[UUID]:
        self._check_open()
        return await self._settles.request_cancel(ids)

    async def delete(self, guards: Sequence[tuple[UUID, int]]) -> list[Verdict]:
        self._check_open()
        return await self._deletes.delete(guards)

    async def prune(
        self, states: Sequence[str], older_than_seconds: float, limit: int, *, dry_run: bool = False
    ) -> int:
        self._check_open()
        return await self._prunes.prune(states, older_than_seconds, limit, dry_run=dry_run)

    async def sample(self) -> None:
        self._check_open()
        await self._counts.sample(self._looks.ages)

    async def tidy(self) -> None:
        self._check_open()
        await self._counts.tidy()
        await self._workers.forget()

    # -- look ---------------------------------------------------------------------------------------------------------

    async def get(self, ids: Sequence[UUID]) -> list[Task | None]:
        self._check_open()
        return await self._looks.get(ids)

    async def get_by_key(self, key: str) -> Task | None:
        self._check_open()
        return await self._looks.get_by_key(key)

    async def page(
        self, where: Filter, *, limit: int, cursor: UUID | None = None, offset: int = 0, oldest_first: bool = False
    ) -> Page:
        self._check_open()
        return await self._looks.page(where, limit=limit, cursor=cursor, offset=offset, oldest_first=oldest_first)

    async def count(self, where: Filter, cap: int) -> Count:
        self._check_open()
        return await self._looks.count(where, cap)

    async def stats(self) -> dict[str, NameStats]:
        self._check_open()
        return await self._looks.stats()

    async def series(self, since_seconds: float, step_seconds: int = 60) -> Sequence[Point]:
        self._check_open()
        return await self._counts.series(since_seconds, step_seconds)

    async def ages(self, since_seconds: float, step_seconds: int = 60) -> Sequence[Age]:
        self._check_open()
        return await self._counts.ages(since_seconds, step_seconds)

    async def workers(self) -> list[WorkerInfo]:
        self._check_open()
        return await self._workers.all()

    # -- control ------------------------------------------------------------------------------------------------------

    async def controls(self) -> dict[str, Controls]:
        self._check_open()
        return await operates.controls(self._bucket)

    async def control(self, change: ControlChange) -> Controls:
        self._check_open()
        return await operates.control(self._bucket, change)

    # -- tokens and audit -------------------------------------------------------------------------------------------

    async def add_token(self, token: Token) -> None:
        self._check_open()
        await ledger.add_token(self._bucket, token)

    async def tokens(self) -> list[Token]:
        self._check_open()
        return await ledger.tokens(self._bucket)

    async def revoke_token(self, token_id: str) -> bool:
        self._check_open()
        return await ledger.revoke_token(self._bucket, token_id)

    async def note(self, entries: Sequence[AuditEntry]) -> None:
        self._check_open()
        await ledger.note(self._bucket, entries)

    async def noted(self, *, task_id: UUID | None = None, limit: int = 100) -> list[AuditEntry]:
        self._check_open()
        return await ledger.noted(self._bucket, task_id, limit)

    # -- wake ---------------------------------------------------------------------------------------------------------

    def listen(self, wake: Callable[[Hint], None]) -> Callable[[], None]:
        self._check_open()
        return self._mirror.listeners.listen(wake)

    def watch(self, task_id: UUID) -> AsyncIterator[Task | None]:
        async def look() -> Task | None:
            [found] = await self.get([task_id])
            return found

        self._check_open()
        return self._mirror.listeners.watch(task_id, look)

    # -- administration -----------------------------------------------------------------------------------------------

    async def schema_version(self) -> int | None:
        await self._link.start()
        found = await schema.version(self._bucket)
        return found or None

    async def migrate(self, *, plan: bool = False) -> list[str]:
        await self._link.start()
        if plan:
            found = await schema.version(self._bucket)
            return [] if found else [name for name, _ in schema.STEPS]
        return await schema.migrate(self._bucket)

    def migration_sql(self) -> list[tuple[str, str]]:
        return list(schema.STEPS)

    async def check_up(self) -> list[Finding]:
        await self._link.start()
        return await checkup.findings(self._bucket, self._mirror, self._looks, self._workers)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreClosed("the store is not open, or was closed")
