"""The verbs of the SQL store, each handed to its steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from tasklib.core.decide import Verdict
from tasklib.core.limits import ControlChange, Controls
from tasklib.core.task import Task
from tasklib.stores.sql import access, controls, reads, restore, upkeep, workers
from tasklib.stores.sql.steps import READING_SECONDS, Driver
from tasklib.stores.values import Age, AuditEntry, NameStats, Point, Token, Traits, WorkerBeat, WorkerInfo


class SqlStore(ABC):
    """What the stores of all SQL engines have in common."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._pruner = upkeep.Pruner(driver)

    @property
    @abstractmethod
    def traits(self) -> Traits: ...

    # -- reads --------------------------------------------------------------------------------------------------------

    async def now(self) -> datetime:
        return await self._driver.read(reads.now)

    async def get(self, ids: Sequence[UUID]) -> list[Task | None]:
        return await self._driver.read(lambda: reads.get(ids))

    async def get_by_key(self, key: str) -> Task | None:
        return await self._driver.read(lambda: reads.get_by_key(key))

    async def stats(self) -> dict[str, NameStats]:
        return await self._driver.read(reads.stats, seconds=READING_SECONDS)

    async def series(self, since_seconds: float, step_seconds: int = 60) -> Sequence[Point]:
        return await self._driver.read(lambda: reads.series(since_seconds, step_seconds), seconds=READING_SECONDS)

    async def ages(self, since_seconds: float, step_seconds: int = 60) -> Sequence[Age]:
        steps = partial(reads.backlog_history, since_seconds, step_seconds)
        return await self._driver.read(steps, seconds=READING_SECONDS)

    # -- workers ------------------------------------------------------------------------------------------------------

    async def beat(self, worker: WorkerBeat) -> None:
        listening = worker.listening and self.traits.wakes  # where nobody can hear, nobody is to be told
        await self._driver.write(lambda: workers.heartbeat(worker, listening=listening))

    async def farewell(self, worker_id: str) -> None:
        await self._driver.write(lambda: workers.deregister_worker(worker_id))

    async def workers(self) -> list[WorkerInfo]:
        return await self._driver.read(workers.workers)

    async def lost_leases(self, dead_after_seconds: float, limit: int) -> list[Task]:
        return await self._driver.read(lambda: workers.lost_leases(dead_after_seconds, limit))

    # -- operate ------------------------------------------------------------------------------------------------------

    async def request_cancel(self, ids: Sequence[UUID]) -> list[UUID]:
        return await self._driver.write(lambda: upkeep.request_cancel(ids))

    async def delete(self, guards: Sequence[tuple[UUID, int]]) -> list[Verdict]:
        return await self._driver.write(lambda: upkeep.delete(guards))

    async def prune(
        self, states: Sequence[str], older_than_seconds: float, limit: int, *, dry_run: bool = False
    ) -> int:
        if dry_run:
            return await self._pruner.count(states, older_than_seconds)
        return await self._pruner.prune(states, older_than_seconds, limit)

    async def sample(self) -> None:
        await self._driver.write(upkeep.sample_backlog)

    async def tidy(self) -> None:
        await self._driver.write(upkeep.compact_stats)

    async def restore(self, tasks: Sequence[Task]) -> list[Verdict]:
        return await self._driver.write(lambda: restore.restore(tasks))

    # -- controls -----------------------------------------------------------------------------------------------------

    async def controls(self) -> dict[str, Controls]:
        return await self._driver.read(controls.controls)

    async def control(self, change: ControlChange) -> Controls:
        return await self._driver.write(lambda: controls.change_control(change))

    # -- tokens and audit -------------------------------------------------------------------------------------------

    async def add_token(self, token: Token) -> None:
        await self._driver.write(lambda: access.add_token(token))

    async def tokens(self) -> list[Token]:
        return await self._driver.read(access.tokens)

    async def revoke_token(self, token_id: str) -> bool:
        return await self._driver.write(lambda: access.revoke_token(token_id))

    async def note(self, entries: Sequence[AuditEntry]) -> None:
        await self._driver.write(lambda: access.add_audit(entries))

    async def noted(self, *, task_id: UUID | None = None, limit: int = 100) -> list[AuditEntry]:
        return await self._driver.read(lambda: access.list_audit(task_id, limit))
