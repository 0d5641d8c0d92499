"""The verbs of the SQL store, each handed to its steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from tasklib.core.alerts import Alert
from tasklib.core.decide import Change, WriteResult
from tasklib.core.errors import TaskConflict
from tasklib.core.limits import ControlChange, Controls
from tasklib.core.published import PublishedType
from tasklib.core.schedules import Schedule, ScheduleWrite
from tasklib.core.task import Claim, NewTask, Task
from tasklib.stores.listeners import Listeners
from tasklib.stores.sql import (
    access,
    alerts,
    claim,
    controls,
    lists,
    reads,
    restore,
    sampling,
    schedules,
    settle,
    submit,
    task_types,
    upkeep,
    workers,
)
from tasklib.stores.sql.steps import READING_SECONDS, Driver
from tasklib.stores.values import (
    ALL_AUDIT,
    Age,
    Audit,
    AuditEntry,
    AuditFilter,
    Claimed,
    ClaimRequest,
    Count,
    Drain,
    DueSchedules,
    EndedCursor,
    EndedPage,
    Extension,
    Failure,
    Filter,
    Held,
    Hint,
    Inserted,
    NameStats,
    Page,
    Point,
    Token,
    Traits,
    VersionStart,
    WorkerHeartbeat,
    WorkerInfo,
)


class SqlStore(ABC):
    """What the stores of all SQL engines have in common."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._claimer = claim.Claimer()
        self._pruner = upkeep.Pruner(driver)

    @property
    @abstractmethod
    def traits(self) -> Traits: ...

    @abstractmethod
    def _woken(self) -> Listeners:
        """Raises StoreClosed."""

    # -- wake ---------------------------------------------------------------------------------------------------------

    def listen(self, wake: Callable[[Hint], None]) -> Callable[[], None]:
        return self._woken().listen(wake)

    def watch(self, task_id: UUID) -> AsyncIterator[Task | None]:
        return self._woken().watch(task_id, lambda: self._driver.write(lambda: reads.watch(task_id)))

    # -- work ---------------------------------------------------------------------------------------------------------

    async def claim(self, request: ClaimRequest) -> Claimed:
        if request.slots + request.prefetch <= 0 or not claim.names_of(request):
            return Claimed([], None)
        return await self._driver.write(lambda: self._claimer.claim(request), repeat=False)

    async def claim_by_id(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        return await self._driver.write(lambda: claim.claim_by_id(task_id, version, worker_id, lease_seconds))

    async def claims_of_worker(self, worker_id: str) -> list[Claim]:
        return await self._driver.read(lambda: claim.claims_of_worker(worker_id))

    async def settle(self, changes: Sequence[Change], *, audit: Audit[UUID] | None = None) -> list[WriteResult]:
        return await self._driver.write(lambda: settle.settle(changes, audit)) if changes else []

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        return await self._driver.write(lambda: settle.extend(worker_id, leases, lease_seconds)) if leases else []

    # -- submit -------------------------------------------------------------------------------------------------------

    async def insert(
        self,
        tasks: Sequence[NewTask],
        *,
        dated: bool = False,
        copy_of: UUID | None = None,
        audit: Audit[UUID] | None = None,
    ) -> Sequence[Inserted]:
        atomic = submit.is_one_statement(tasks)
        try:
            if copy_of is not None or audit is not None:
                return await self._driver.write(lambda: submit.submit_told(tasks, copy_of, audit))
            return await self._driver.write(lambda: submit.submit(tasks, dated=dated and atomic), atomic=atomic)
        except TaskConflict:
            found = await self._driver.read(lambda: submit.find_submitted(tasks))
            if found is None:
                raise
            return found

    def insert_on(
        self, connection: object, tasks: Sequence[NewTask]
    ) -> Sequence[Inserted] | Awaitable[Sequence[Inserted]]:
        return self._driver.play_on(connection, lambda: submit.submit(tasks))

    # -- reads --------------------------------------------------------------------------------------------------------

    async def now(self) -> datetime:
        return await self._driver.read(reads.now)

    async def get(self, ids: Sequence[UUID]) -> list[Task | None]:
        return await self._driver.read(lambda: reads.get(ids))

    async def get_by_key(self, key: str) -> Task | None:
        return await self._driver.read(lambda: reads.get_by_key(key))

    async def stats(self) -> dict[str, NameStats]:
        return await self._driver.read(reads.stats, seconds=READING_SECONDS)

    async def series(
        self, since_seconds: float, step_seconds: int = 60, *, until_seconds: float = 0.0, name: str | None = None
    ) -> Sequence[Point]:
        steps = partial(reads.series, since_seconds, step_seconds, until_seconds, name)
        return await self._driver.read(steps, seconds=READING_SECONDS)

    async def backlog_history(
        self, since_seconds: float, step_seconds: int = 60, *, until_seconds: float = 0.0, name: str | None = None
    ) -> Sequence[Age]:
        steps = partial(reads.backlog_history, since_seconds, step_seconds, until_seconds, name)
        return await self._driver.read(steps, seconds=READING_SECONDS)

    async def latest_failures(self, name: str | None, limit: int) -> Sequence[Failure]:
        return await self._driver.read(lambda: reads.latest_failures(name, limit), seconds=READING_SECONDS)

    async def versions(self) -> Sequence[VersionStart]:
        return await self._driver.read(sampling.versions, seconds=READING_SECONDS)

    async def page(
        self, where: Filter, *, limit: int, cursor: UUID | None = None, offset: int = 0, oldest_first: bool = False
    ) -> Page:
        steps = partial(lists.page, where, limit=limit, cursor=cursor, offset=offset, oldest_first=oldest_first)
        return await self._driver.read(steps, seconds=READING_SECONDS)

    async def page_ended(
        self, where: Filter, *, limit: int, cursor: EndedCursor | None = None, offset: int = 0
    ) -> EndedPage:
        steps = partial(lists.page_ended, where, limit=limit, cursor=cursor, offset=offset)
        return await self._driver.read(steps, seconds=READING_SECONDS)

    async def page_longest(self, where: Filter, *, limit: int, offset: int = 0) -> Page:
        steps = partial(lists.page_longest, where, limit=limit, offset=offset)
        return await self._driver.read(steps, seconds=READING_SECONDS)

    async def count(self, where: Filter, cap: int) -> Count:
        return await self._driver.read(lambda: lists.count(where, cap), seconds=READING_SECONDS)

    # -- workers ------------------------------------------------------------------------------------------------------

    async def heartbeat(self, worker: WorkerHeartbeat) -> Drain | None:
        listening = worker.listening and self.traits.wakes  # where nobody can hear, nobody is to be told
        return await self._driver.write(lambda: workers.heartbeat(worker, listening=listening))

    async def request_drain(self, worker_id: str, by: str, *, audit: Sequence[AuditEntry] = ()) -> bool:
        return await self._driver.write(lambda: workers.request_drain(worker_id, by, audit))

    async def deregister_worker(self, worker_id: str) -> None:
        await self._driver.write(lambda: workers.deregister_worker(worker_id))

    async def workers(self) -> list[WorkerInfo]:
        return await self._driver.read(workers.workers)

    async def lost_leases(self, dead_after_seconds: float, limit: int) -> list[Task]:
        return await self._driver.read(lambda: workers.lost_leases(dead_after_seconds, limit))

    # -- task types ---------------------------------------------------------------------------------------------------

    async def publish(self, types: Sequence[PublishedType]) -> None:
        if types:
            await self._driver.write(lambda: task_types.publish(types))

    async def published(self) -> list[PublishedType]:
        return await self._driver.read(task_types.published)

    # -- operate ------------------------------------------------------------------------------------------------------

    async def request_cancel(self, ids: Sequence[UUID], *, audit: Audit[UUID] | None = None) -> list[UUID]:
        return await self._driver.write(lambda: upkeep.request_cancel(ids, audit))

    async def delete(
        self, guards: Sequence[tuple[UUID, int]], *, audit: Audit[UUID] | None = None
    ) -> list[WriteResult]:
        return await self._driver.write(lambda: upkeep.delete(guards, audit))

    async def prune(
        self,
        states: Sequence[str],
        older_than_seconds: float,
        limit: int,
        *,
        dry_run: bool = False,
        audit: Audit[str] | None = None,
    ) -> int:
        if dry_run:
            return await self._pruner.count(states, older_than_seconds)
        return await self._pruner.prune(states, older_than_seconds, limit, audit)

    async def sample_backlog(self) -> None:
        cells = await self._driver.read(sampling.look)
        if cells:
            await self._driver.write(lambda: sampling.keep(cells))

    async def compact_stats(self) -> None:
        await self._driver.write(upkeep.compact_stats)

    async def restore(self, tasks: Sequence[Task]) -> list[WriteResult]:
        return await self._driver.write(lambda: restore.restore(tasks))

    # -- controls -----------------------------------------------------------------------------------------------------

    async def controls(self) -> dict[str, Controls]:
        return await self._driver.read(controls.controls)

    async def control(self, change: ControlChange, *, audit: Sequence[AuditEntry] = ()) -> Controls:
        return await self._driver.write(lambda: controls.change_control(change, audit))

    # -- alerts -------------------------------------------------------------------------------------------------------

    async def alerts(self) -> list[Alert]:
        return await self._driver.read(alerts.alerts)

    async def put_alert(self, alert: Alert) -> bool:
        return await self._driver.write(lambda: alerts.put_alert(alert))

    # -- schedules ----------------------------------------------------------------------------------------------------

    async def schedules(self, names: Sequence[str] | None = None) -> list[Schedule]:
        return await self._driver.read(lambda: schedules.schedules(names))

    async def due_schedules(self, limit: int) -> DueSchedules:
        return await self._driver.read(lambda: schedules.due_schedules(limit))

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, audit: Sequence[AuditEntry] = (), wait: bool = True
    ) -> list[Sequence[Inserted] | None]:
        return await self._driver.write(lambda: schedules.write_schedules(writes, audit, wait=wait)) if writes else []

    async def delete_schedule(self, name: str, version: int, *, audit: Sequence[AuditEntry] = ()) -> bool:
        return await self._driver.write(lambda: schedules.delete_schedule(name, version, audit))

    async def keep_schedules(self, names: Sequence[str]) -> None:
        if names:
            await self._driver.write(lambda: schedules.keep_schedules(names))

    # -- tokens and audit -------------------------------------------------------------------------------------------

    async def add_token(self, token: Token, *, audit: Sequence[AuditEntry] = ()) -> None:
        await self._driver.write(lambda: access.add_token(token, audit))

    async def tokens(self) -> list[Token]:
        return await self._driver.read(access.tokens)

    async def revoke_token(self, token_id: str, *, audit: Sequence[AuditEntry] = ()) -> bool:
        return await self._driver.write(lambda: access.revoke_token(token_id, audit))

    async def list_audit(
        self, where: AuditFilter = ALL_AUDIT, *, limit: int = 100, cursor: str | None = None
    ) -> list[AuditEntry]:
        # By number, unless it is of one task: those have to be sorted, which is what such a read avoids.
        seconds = READING_SECONDS if where.task_id is None else None
        return await self._driver.read(lambda: access.list_audit(where, limit, cursor), seconds=seconds)
