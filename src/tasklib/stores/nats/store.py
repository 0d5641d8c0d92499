"""The NATS store: its life, and each verb handed to the module that knows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from uuid import UUID

from tasklib.core.alert_state import Alert
from tasklib.core.decide import Change, WriteResult
from tasklib.core.errors import StoreClosed
from tasklib.core.flows import After, Feeds, FlowSummary, FlowTask, Parent
from tasklib.core.published import PublishedType
from tasklib.core.schedules import Schedule, ScheduleWrite
from tasklib.core.task import Claim, NewTask, Task
from tasklib.stores.nats import access, alerts, checkup, operate, schema
from tasklib.stores.nats import restore as restoring
from tasklib.stores.nats.address import parse
from tasklib.stores.nats.cache import TaskCache
from tasklib.stores.nats.claim import Claims
from tasklib.stores.nats.claim_cache import ClaimCache
from tasklib.stores.nats.clock import Clock
from tasklib.stores.nats.connection import Connection
from tasklib.stores.nats.counts import Counts
from tasklib.stores.nats.flow_reads import FlowReads
from tasklib.stores.nats.kv import KeyValueStore
from tasklib.stores.nats.prune import Prunes
from tasklib.stores.nats.reads import Reads
from tasklib.stores.nats.schedules import Schedules
from tasklib.stores.nats.settle import Settles
from tasklib.stores.nats.submit import Submits
from tasklib.stores.values import (
    ALL_AUDIT,
    NO_LINKS,
    Age,
    Audit,
    AuditEntry,
    AuditFilter,
    Claimed,
    ClaimRequest,
    ControlChange,
    Controls,
    Count,
    Drain,
    DueSchedules,
    EndedCursor,
    EndedPage,
    Extension,
    Failure,
    Filter,
    Finding,
    Held,
    Hint,
    Inserted,
    KeptLinks,
    NameStats,
    Page,
    Point,
    Token,
    Traits,
    VersionStart,
    WorkerHeartbeat,
    WorkerInfo,
)

_TRAITS = Traits(engine="nats", joins_transactions=False, keeps_links=False, cheap_batches=False)


class NatsStore:
    """`Store` and `Admin` on a JetStream KV bucket. An instance belongs to the event loop it was opened in."""

    def __init__(self, url: str, *, call_timeout: float = 30.0, clock_offset: float = 0.0) -> None:
        self._clock = Clock(clock_offset)
        self._connection = Connection(parse(url), call_timeout)
        self._kv = KeyValueStore(self._connection, self._clock)
        self._cache = TaskCache(self._kv)
        self._counts = Counts(self._kv)
        held = ClaimCache()
        self._cache.moved = held.moved
        self._claims = Claims(self._kv, self._cache, held)
        self._settles = Settles(self._kv, self._counts, held)
        self._submits = Submits(self._kv)
        self._schedules = Schedules(self._kv)
        self._deletes = operate.Deletes(self._kv)
        self._prunes = Prunes(self._kv, self._deletes)
        self._workers = operate.Workers(self._kv, self._cache)
        self._reads = Reads(self._kv, self._cache)
        self._flows = FlowReads(self._kv, self._cache)
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
        await self._connection.start()
        try:
            await schema.prepare(self._kv)
        except BaseException:
            await self._connection.stop(forever=False)
            raise
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        await self._submits.close()
        await self._counts.close()
        await self._cache.close()
        await self._connection.stop()

    async def now(self) -> datetime:
        self._check_open()
        return self._clock.now()

    async def lease_now(self) -> datetime:
        self._check_open()
        return self._clock.earliest()

    # -- flows --------------------------------------------------------------------------------------------------------

    async def parents(self, ids: Sequence[UUID]) -> list[Parent]:
        self._check_open()
        return await self._flows.parents(ids)

    async def after_of(self, task_id: UUID) -> After | None:
        self._check_open()
        return await self._flows.after_of(task_id)

    async def feeds(self, task_id: UUID, limit: int) -> Feeds:
        self._check_open()
        return await self._flows.feeds(task_id, limit)

    async def flows(self, limit: int, cursor: UUID | None = None) -> list[FlowSummary]:
        self._check_open()
        return await self._flows.flows(limit, cursor)

    async def flow_graph(self, flow_id: UUID, limit: int) -> list[FlowTask]:
        self._check_open()
        return await self._flows.flow_graph(flow_id, limit)

    async def release_stranded(self, limit: int) -> int:
        self._check_open()
        return await self._settles.release_stranded((await self._flows.blocked())[-limit:])

    # -- submit -------------------------------------------------------------------------------------------------------

    async def insert(
        self,
        tasks: Sequence[NewTask],
        *,
        dated: bool = False,
        copy_of: UUID | None = None,
        audit: Audit[UUID] | None = None,
    ) -> list[Inserted]:
        self._check_open()
        return await self._submits.insert(tasks, copy_of, audit)

    def insert_on(self, connection: object, tasks: Sequence[NewTask], *, dated: bool = False) -> list[Inserted]:
        kind = type(connection)
        raise _TRAITS.unsupported(
            f"join the transaction of {kind.__module__}.{kind.__qualname__}",
            "submit after it has committed, with an idempotency key",
        )

    async def kept_links(self, tasks: Sequence[Task]) -> KeptLinks:
        return NO_LINKS

    async def restore(self, tasks: Sequence[Task], links: KeptLinks = NO_LINKS) -> list[WriteResult]:
        self._check_open()
        return await restoring.restore(self._kv, tasks)

    # -- work ---------------------------------------------------------------------------------------------------------

    async def claim(self, request: ClaimRequest) -> Claimed:
        self._check_open()
        return await self._claims.claim(request)

    async def claim_by_id(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        self._check_open()
        return await self._claims.claim_by_id(task_id, version, worker_id, lease_seconds)

    async def claims_of_worker(self, worker_id: str) -> list[Claim]:
        self._check_open()
        return await self._claims.claims_of_worker(worker_id)

    async def settle(self, changes: Sequence[Change], *, audit: Audit[UUID] | None = None) -> list[WriteResult]:
        self._check_open()
        return await self._settles.settle(changes, audit)

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        self._check_open()
        return await self._settles.extend(worker_id, leases, lease_seconds)

    async def heartbeat(self, worker: WorkerHeartbeat) -> Drain | None:
        self._check_open()
        return await self._workers.heartbeat(worker)

    async def request_drain(self, worker_id: str, by: str, *, audit: Sequence[AuditEntry] = ()) -> bool:
        self._check_open()
        return await self._workers.request_drain(worker_id, by, audit)

    async def deregister_worker(self, worker_id: str) -> None:
        self._check_open()
        await self._workers.deregister_worker(worker_id)

    async def lost_leases(self, dead_after_seconds: float, limit: int) -> list[Task]:
        self._check_open()
        return await self._workers.lost_leases(dead_after_seconds, limit)

    # -- task types ---------------------------------------------------------------------------------------------------

    async def publish(self, types: Sequence[PublishedType]) -> None:
        self._check_open()
        await operate.publish(self._kv, types)

    async def published(self) -> list[PublishedType]:
        self._check_open()
        return await operate.published(self._kv)

    # -- operate ------------------------------------------------------------------------------------------------------

    async def request_cancel(self, ids: Sequence[UUID], *, audit: Audit[UUID] | None = None) -> list[UUID]:
        self._check_open()
        return await self._settles.request_cancel(ids, audit)

    async def delete(
        self, guards: Sequence[tuple[UUID, int]], *, audit: Audit[UUID] | None = None
    ) -> list[WriteResult]:
        self._check_open()
        return await self._deletes.delete(guards, audit)

    async def prune(
        self,
        states: Sequence[str],
        older_than_seconds: float,
        limit: int,
        *,
        dry_run: bool = False,
        audit: Audit[str] | None = None,
    ) -> int:
        self._check_open()
        return await self._prunes.prune(states, older_than_seconds, limit, dry_run=dry_run, audit=audit)

    async def sample_backlog(self) -> None:
        self._check_open()
        await self._counts.sample_backlog(self._reads.waiting, self._workers.all)

    async def compact_stats(self) -> None:
        self._check_open()
        await self._counts.compact_stats()
        await self._workers.forget()

    # -- look ---------------------------------------------------------------------------------------------------------

    async def get(self, ids: Sequence[UUID]) -> list[Task | None]:
        self._check_open()
        return await self._reads.get(ids)

    async def get_by_key(self, key: str) -> Task | None:
        self._check_open()
        return await self._reads.get_by_key(key)

    async def page(
        self, where: Filter, *, limit: int, cursor: UUID | None = None, offset: int = 0, oldest_first: bool = False
    ) -> Page:
        self._check_open()
        return await self._reads.page(where, limit=limit, cursor=cursor, offset=offset, oldest_first=oldest_first)

    async def page_ended(
        self, where: Filter, *, limit: int, cursor: EndedCursor | None = None, offset: int = 0
    ) -> EndedPage:
        self._check_open()
        return await self._reads.page_ended(where, limit=limit, cursor=cursor, offset=offset)

    async def page_longest(self, where: Filter, *, limit: int, offset: int = 0) -> Page:
        self._check_open()
        return await self._reads.page_longest(where, limit=limit, offset=offset)

    async def count(self, where: Filter, cap: int) -> Count:
        self._check_open()
        return await self._reads.count(where, cap)

    async def stats(self) -> dict[str, NameStats]:
        self._check_open()
        return await self._reads.stats()

    async def series(
        self, since_seconds: float, step_seconds: int = 60, *, until_seconds: float = 0.0, name: str | None = None
    ) -> Sequence[Point]:
        self._check_open()
        return await self._counts.series(since_seconds, step_seconds, until_seconds, name)

    async def backlog_history(
        self, since_seconds: float, step_seconds: int = 60, *, until_seconds: float = 0.0, name: str | None = None
    ) -> Sequence[Age]:
        self._check_open()
        return await self._counts.backlog_history(since_seconds, step_seconds, until_seconds, name)

    async def latest_failures(self, name: str | None, limit: int) -> Sequence[Failure]:
        self._check_open()
        return await self._reads.latest_failures(name, limit)

    async def versions(self) -> Sequence[VersionStart]:
        self._check_open()
        return await self._counts.versions()

    async def workers(self) -> list[WorkerInfo]:
        self._check_open()
        return await self._workers.all()

    # -- control ------------------------------------------------------------------------------------------------------

    async def controls(self) -> dict[str, Controls]:
        self._check_open()
        return await operate.controls(self._kv)

    async def control(self, change: ControlChange, *, audit: Sequence[AuditEntry] = ()) -> Controls:
        self._check_open()
        return await operate.control(self._kv, change, audit)

    # -- alerts -------------------------------------------------------------------------------------------------------

    async def alerts(self) -> list[Alert]:
        self._check_open()
        return await alerts.alerts(self._kv)

    async def put_alert(self, alert: Alert) -> bool:
        self._check_open()
        return await alerts.put_alert(self._kv, alert)

    # -- schedules ----------------------------------------------------------------------------------------------------

    async def schedules(self, names: Sequence[str] | None = None) -> list[Schedule]:
        self._check_open()
        return await self._schedules.all(names)

    async def due_schedules(self, limit: int) -> DueSchedules:
        self._check_open()
        return await self._schedules.due(limit)

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, audit: Sequence[AuditEntry] = (), wait: bool = True
    ) -> list[Sequence[Inserted] | None]:
        self._check_open()
        return await self._schedules.write(writes, audit)

    async def delete_schedule(self, name: str, version: int, *, audit: Sequence[AuditEntry] = ()) -> bool:
        self._check_open()
        return await self._schedules.delete(name, version, audit)

    async def keep_schedules(self, names: Sequence[str]) -> None:
        self._check_open()
        await self._schedules.keep(names)

    # -- tokens and audit -------------------------------------------------------------------------------------------

    async def add_token(self, token: Token, *, audit: Sequence[AuditEntry] = ()) -> None:
        self._check_open()
        await access.add_token(self._kv, token, audit)

    async def tokens(self) -> list[Token]:
        self._check_open()
        return await access.tokens(self._kv)

    async def revoke_token(self, token_id: str, *, audit: Sequence[AuditEntry] = ()) -> bool:
        self._check_open()
        return await access.revoke_token(self._kv, token_id, audit)

    async def list_audit(
        self, where: AuditFilter = ALL_AUDIT, *, limit: int = 100, cursor: str | None = None
    ) -> list[AuditEntry]:
        self._check_open()
        return await access.list_audit(self._kv, where, limit, cursor)

    # -- wake ---------------------------------------------------------------------------------------------------------

    def listen(self, wake: Callable[[Hint], None]) -> Callable[[], None]:
        self._check_open()
        return self._cache.listeners.listen(wake)

    def watch(self, task_id: UUID) -> AsyncIterator[Task | None]:
        async def look() -> Task | None:
            [found] = await self.get([task_id])
            return found

        self._check_open()
        return self._cache.listeners.watch(task_id, look)

    # -- administration -----------------------------------------------------------------------------------------------

    async def schema_version(self) -> int | None:
        await self._connection.start()
        found = await schema.version(self._kv)
        return found or None

    async def migrate(self, *, plan: bool = False) -> list[str]:
        await self._connection.start()
        if plan:
            return schema.behind(await schema.version(self._kv))
        return await schema.migrate(self._kv)

    def migration_sql(self) -> list[tuple[str, str]]:
        return list(schema.STEPS)

    async def check_up(self) -> list[Finding]:
        await self._connection.start()
        return await checkup.findings(self._kv, self._cache, self._reads, self._workers)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreClosed("the store is not open, or was closed")
