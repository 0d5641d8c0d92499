"""The engine behind a test's queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tasklib.api.sync import bridge, run_sync
from tasklib.core.durations import Seconds
from tasklib.core.registry import Registry
from tasklib.core.task import NewTask, Task, is_terminal
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.stores.values import Inserted
from tasklib.testing.inline import Inline, is_async, is_in_memory, play


@dataclass
class State:
    """What all engines of a test's queue share."""

    inline: Registry | None = None
    """Of the task types that run when they are submitted; None: tasks wait to be drained."""
    seen: dict[UUID, Task] = field(default_factory=dict)
    """Tasks that only a test's transaction can see, as they were when they last ran."""


class EngineForTests(Engine):
    """Keeps the test's own settings, takes submits on any connection where the queue is in memory, and runs what is
    submitted at once if it is told to."""

    def __init__(
        self, config: Config, *, clock_offset: float = 0.0, state: State | None = None, settings: Any = None
    ) -> None:
        super().__init__(config, clock_offset=clock_offset)
        self.state = state or State()
        self._settings: dict[str, Any] = settings or {}

    # -- settings -----------------------------------------------------------------------------------------------------

    def with_settings(self, config: Config) -> Engine:
        found = EngineForTests(self._here(config), clock_offset=self._clock_offset, state=self.state)
        self._alike.add(found)
        return found

    def adopt(self, config: Config) -> None:
        super().adopt(config)
        self.config = Config(**{**self.config.given, **self._settings})

    # -- submit -------------------------------------------------------------------------------------------------------

    async def insert(self, tasks: Sequence[NewTask], **options: Any) -> Sequence[Inserted]:
        inserted = await super().insert(tasks, **options)
        # Sync code comes this way in a thread that must not run its handlers; `insert_here` has seen to them.
        if not bridge.is_here:
            await self._run(tasks, inserted, None, waits=True)
        return inserted

    def insert_here(self, loop: asyncio.AbstractEventLoop, tasks: Sequence[NewTask]) -> Sequence[Inserted] | None:
        if self.state.inline is None:
            return super().insert_here(loop, tasks)
        inserted = run_sync(self.insert(tasks))
        play(self._run(tasks, inserted, None, waits=False))
        return inserted

    def insert_on(
        self, connection: object, tasks: Sequence[NewTask], *, dated: bool = False
    ) -> Sequence[Inserted] | Awaitable[Sequence[Inserted]]:
        """A queue in memory has no part in the transaction: the task is stored at once, and stays if that is undone."""
        stored: Sequence[Inserted] | Awaitable[Sequence[Inserted]]
        if not is_in_memory(self):
            stored = super().insert_on(connection, tasks, dated=dated)
        else:
            storing = self._store(tasks, dated)
            stored = storing if is_async(connection) else run_sync(storing)
        if isinstance(stored, Awaitable):
            return self._run_stored(tasks, stored, connection)
        play(self._run(tasks, stored, connection, waits=False))
        return stored

    async def _store(self, tasks: Sequence[NewTask], dated: bool) -> Sequence[Inserted]:
        return await super().insert(tasks, dated=dated)

    async def _run_stored(
        self, tasks: Sequence[NewTask], stored: Awaitable[Sequence[Inserted]], connection: object
    ) -> Sequence[Inserted]:
        inserted = await stored
        await self._run(tasks, inserted, connection, waits=True)
        return inserted

    async def _run(
        self, tasks: Sequence[NewTask], inserted: Sequence[Inserted], connection: object | None, *, waits: bool
    ) -> None:
        """What was just stored, if tasks run when they are submitted."""
        registry = self.state.inline
        if registry is not None:
            here = Inline(self, registry, connection, waits=waits, note=self.note)
            left = [(kept.id, task.name) for task, kept in zip(tasks, inserted, strict=True) if kept.created]
            before = 0
            while len(left) != before:  # what waited for another of them may be due once that has run
                before = len(left)
                left = [each for each in left if not await here.run(*each)]
            for kept in inserted:
                self.note(await here.seen(kept.id))

    # -- look ---------------------------------------------------------------------------------------------------------

    def note(self, tasks: Sequence[Task]) -> None:
        self.state.seen.update((task.id, task) for task in tasks)

    async def get(self, task_id: UUID) -> Task | None:
        return self.state.seen.get(task_id) or await super().get(task_id)

    async def wait(self, task_id: UUID, timeout: Seconds | None) -> Task:
        seen = self.state.seen.get(task_id)
        return seen if seen is not None and is_terminal(seen) else await super().wait(task_id, timeout)
