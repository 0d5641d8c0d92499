"""The janitor: takes back what dead workers hold, releases what one of them left waiting, and throws away what nobody
keeps; and checks the alert rules. Every worker has one."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from tasklib.core.errors import TRANSIENT
from tasklib.core.task import TaskState
from tasklib.engine.alerts import CHECK_SECONDS, AlertWatch
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import UpkeepStore

log = logging.getLogger("tasklib.worker")

EXPIRE_BATCH = 500
PRUNE_BATCH = 1000
PRUNE_EVERY_SECONDS = 60.0
SUBMIT_SLACK_SECONDS = 30.0
"""What a submit may still take on its way to the database once its caller's deadline is over."""
COMPACT_EVERY_SECONDS = 300.0
SAMPLE_EVERY_SECONDS = 45.0
"""Kept once in a minute: so each minute has one, whatever the spread."""
STRANDED_EVERY_SECONDS = 60.0
STRANDED_BATCH = 1000


class Janitor:
    def __init__(self, engine: Engine, recovered: Callable[[], None], alerts: AlertWatch | None = None) -> None:
        self._engine = engine
        self._config = engine.config
        self._recovered = recovered
        self._alerts = alerts

    async def run(self) -> None:
        chores = [
            self._every(self._config.recovery_seconds, self.expire),
            self._every(COMPACT_EVERY_SECONDS, self._compact),
            self._every(SAMPLE_EVERY_SECONDS, self._sample),
            self._every(STRANDED_EVERY_SECONDS, self.release_stranded),
        ]
        if self._config.keep_completed_seconds is not None or self._config.keep_failed_seconds is not None:
            chores.append(self._every(PRUNE_EVERY_SECONDS, self.prune))
        if self._alerts is not None:
            chores.append(self._every(CHECK_SECONDS, self._alerts.check))
        async with asyncio.TaskGroup() as group:
            for chore in chores:
                group.create_task(chore)

    async def expire(self) -> None:
        while (count := await self._engine.expire(EXPIRE_BATCH)) > 0:
            log.warning("recovered %d tasks of workers that vanished", count)
            self._recovered()

    async def release_stranded(self) -> None:
        """What was linked to a task at the moment of its end, by a worker that died before it looked again."""
        while (count := await (await self._engine.store()).release_stranded(STRANDED_BATCH)) > 0:
            log.warning("released %d tasks whose parents had all ended", count)
            self._recovered()

    async def prune(self) -> int:
        """Retention, in batches, so that nobody waits long for a lock."""
        config, removed = self._config, 0
        finished = [TaskState.COMPLETED.value, TaskState.CANCELLED.value]
        for states, keep in (
            (finished, config.keep_completed_seconds),
            ([TaskState.FAILED.value], config.keep_failed_seconds),
        ):
            if keep is None:
                continue
            # A submit whose reply was lost is sent again until its deadline, and is to find its task.
            age = max(keep, config.call_timeout_seconds + SUBMIT_SLACK_SECONDS)
            while (count := await self._engine.prune(states, age, PRUNE_BATCH)) > 0:
                removed += count
                await asyncio.sleep(0)
        if removed:
            log.info("retention removed %d tasks", removed)
        return removed

    async def _compact(self) -> None:
        await (await self._upkeep()).compact_stats()

    async def _sample(self) -> None:
        await (await self._upkeep()).sample_backlog()

    async def _upkeep(self) -> UpkeepStore:
        return await self._engine.store()

    async def _every(self, seconds: float, chore: Callable[[], Awaitable[object]]) -> None:
        """Spread in time, so that a fleet's janitors do not come all at once."""
        await asyncio.sleep(random.uniform(0, min(seconds, 1.0)))
        while True:
            try:
                await chore()
            except TRANSIENT as error:
                log.warning("janitor: %s", error)
            await asyncio.sleep(seconds * random.uniform(0.8, 1.2))
