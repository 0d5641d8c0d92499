"""The verbs of the SQL store: a table of their steps, and in full those that do more than hand them to the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from tasklib.core.decide import Change, WriteResult
from tasklib.core.errors import TaskConflict
from tasklib.core.published import PublishedType
from tasklib.core.schedules import ScheduleWrite
from tasklib.core.task import NewTask, Task
from tasklib.stores.listeners import Listeners
from tasklib.stores.sql import access, lists, reads, release, sampling, submit, task_types, upkeep
from tasklib.stores.sql import alerts as alert_steps
from tasklib.stores.sql import claim as claim_steps
from tasklib.stores.sql import controls as control_steps
from tasklib.stores.sql import flows as flow_steps
from tasklib.stores.sql import restore as restore_steps
from tasklib.stores.sql import schedules as schedule_steps
from tasklib.stores.sql import settle as settle_steps
from tasklib.stores.sql import workers as worker_steps
from tasklib.stores.sql.steps import READING_SECONDS, Driver, Steps
from tasklib.stores.values import (
    ALL_AUDIT,
    Audit,
    AuditEntry,
    AuditFilter,
    Claimed,
    ClaimRequest,
    Drain,
    Extension,
    Held,
    Hint,
    Inserted,
    Traits,
    WorkerHeartbeat,
)

P = ParamSpec("P")
T = TypeVar("T")


def _read(steps: Callable[P, Steps[T]]) -> Callable[Concatenate[SqlStore, P], Coroutine[Any, Any, T]]:
    async def verb(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._driver.read(partial(steps, *args, **kwargs))

    return verb


def _list(steps: Callable[P, Steps[T]]) -> Callable[Concatenate[SqlStore, P], Coroutine[Any, Any, T]]:
    """Lists and figures for people."""

    async def verb(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._driver.read(partial(steps, *args, **kwargs), seconds=READING_SECONDS)

    return verb


def _write(steps: Callable[P, Steps[T]]) -> Callable[Concatenate[SqlStore, P], Coroutine[Any, Any, T]]:
    async def verb(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._driver.write(partial(steps, *args, **kwargs))

    return verb


class SqlStore(ABC):
    """What the stores of all SQL engines have in common. What a verb promises stands in `protocol.py`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._claimer = claim_steps.Claimer()
        self._pruner = upkeep.Pruner(driver)
        self._looked_at_all = False

    @property
    @abstractmethod
    def traits(self) -> Traits: ...

    @abstractmethod
    def _woken(self) -> Listeners:
        """Raises StoreClosed."""

    now = _read(reads.now)
    get = _read(reads.get)
    get_by_key = _read(reads.get_by_key)
    page = _list(lists.page)
    page_ended = _list(lists.page_ended)
    page_longest = _list(lists.page_longest)
    count = _list(lists.count)
    stats = _list(reads.stats)
    series = _list(reads.series)
    backlog_history = _list(reads.backlog_history)
    latest_failures = _list(reads.latest_failures)
    versions = _list(sampling.versions)

    claim_by_id = _write(claim_steps.claim_by_id)
    claims_of_worker = _read(claim_steps.claims_of_worker)
    lost_leases = _read(worker_steps.lost_leases)
    request_cancel = _write(upkeep.request_cancel)
    delete = _write(upkeep.delete)
    compact_stats = _write(upkeep.compact_stats)
    kept_links = _read(restore_steps.kept_links)
    restore = _write(restore_steps.restore)

    parents = _read(flow_steps.parents)
    after_of = _read(flow_steps.after_of)
    feeds = _read(flow_steps.feeds)
    flows = _list(flow_steps.flows)
    flow_graph = _list(flow_steps.flow_graph)

    schedules = _read(schedule_steps.schedules)
    due_schedules = _read(schedule_steps.due_schedules)
    delete_schedule = _write(schedule_steps.delete_schedule)

    request_drain = _write(worker_steps.request_drain)
    deregister_worker = _write(worker_steps.deregister_worker)
    workers = _read(worker_steps.workers)
    published = _read(task_types.published)
    controls = _read(control_steps.controls)
    control = _write(control_steps.change_control)
    alerts = _read(alert_steps.alerts)
    put_alert = _write(alert_steps.put_alert)
    add_token = _write(access.add_token)
    tokens = _read(access.tokens)
    revoke_token = _write(access.revoke_token)

    def listen(self, wake: Callable[[Hint], None]) -> Callable[[], None]:
        return self._woken().listen(wake)

    def watch(self, task_id: UUID) -> AsyncIterator[Task | None]:
        return self._woken().watch(task_id, lambda: self._driver.write(lambda: reads.watch(task_id)))

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
            return await self._driver.write(lambda: submit.submit(tasks, dated=dated), atomic=atomic)
        except TaskConflict:
            found = await self._driver.read(lambda: submit.find_submitted(tasks))
            if found is None:
                raise
            return found

    def insert_on(
        self, connection: object, tasks: Sequence[NewTask], *, dated: bool = False
    ) -> Sequence[Inserted] | Awaitable[Sequence[Inserted]]:
        dated = dated and submit.is_one_statement(tasks)
        return self._driver.play_on(connection, lambda: submit.submit(tasks, dated=dated))

    async def claim(self, request: ClaimRequest) -> Claimed:
        if request.slots + request.prefetch <= 0 or not claim_steps.names_of(request):
            return Claimed([], None)
        return await self._driver.write(lambda: self._claimer.claim(request), repeat=False)

    async def settle(self, changes: Sequence[Change], *, audit: Audit[UUID] | None = None) -> list[WriteResult]:
        return await self._driver.write(lambda: settle_steps.settle(changes, audit)) if changes else []

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        if not leases:
            return []
        return await self._driver.write(lambda: settle_steps.extend(worker_id, leases, lease_seconds))

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

    async def heartbeat(self, worker: WorkerHeartbeat) -> Drain | None:
        listening = worker.listening and self.traits.wakes  # where nobody can hear, nobody is to be told
        return await self._driver.write(lambda: worker_steps.heartbeat(worker, listening=listening))

    async def publish(self, types: Sequence[PublishedType]) -> None:
        if types:
            await self._driver.write(lambda: task_types.publish(types))

    async def list_audit(
        self, where: AuditFilter = ALL_AUDIT, *, limit: int = 100, cursor: str | None = None
    ) -> list[AuditEntry]:
        # By number, unless it is of one task: those have to be sorted, which is what such a read avoids.
        seconds = READING_SECONDS if where.task_id is None else None
        return await self._driver.read(lambda: access.list_audit(where, limit, cursor), seconds=seconds)

    async def release_stranded(self, limit: int) -> int:
        # The first look is at all of them: whoever was there before may have died long ago.
        ids = await self._driver.read(lambda: flow_steps.stranded(limit, all_ages=not self._looked_at_all))
        self._looked_at_all = len(ids) < limit or self._looked_at_all
        return await self._driver.write(lambda: release.recount(ids)) if ids else 0

    async def write_schedules(
        self, writes: Sequence[ScheduleWrite], *, audit: Sequence[AuditEntry] = (), wait: bool = True
    ) -> list[Sequence[Inserted] | None]:
        if not writes:
            return []
        return await self._driver.write(lambda: schedule_steps.write_schedules(writes, audit, wait=wait))

    async def keep_schedules(self, names: Sequence[str]) -> None:
        if names:
            await self._driver.write(lambda: schedule_steps.keep_schedules(names))
