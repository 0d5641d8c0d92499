"""Watches the worker's event loop from the heartbeat's thread: whoever blocks it keeps all other coroutines waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from tasklib.worker.in_flight import Execution

log = logging.getLogger("tasklib.worker")

BLOCKED_SECONDS = 1.0

RunningTask = asyncio.Task[object]


class LoopWatch:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, execution_of: Callable[[RunningTask], Execution | None]
    ) -> None:
        self._loop = loop
        self._execution_of = execution_of
        self._answered = True
        self._blocking: RunningTask | None = None
        self._since = 0.0
        self._told = False

    def look(self, now: float) -> None:
        """To be called often. A loop that has not answered since the last look is busy with the task it was busy with
        then, if it still is with that one."""
        if self._answered:
            self._answered, self._blocking, self._told = False, None, False
            with suppress(RuntimeError):  # the loop is closed: the worker has ended
                self._loop.call_soon_threadsafe(self._answer)
            return
        busy_with = asyncio.current_task(self._loop)
        if busy_with is not self._blocking:
            self._blocking, self._since = busy_with, now
        elif busy_with is not None and not self._told and now - self._since >= BLOCKED_SECONDS:
            self._told = True
            self._tell(busy_with)

    def _answer(self) -> None:
        self._answered = True

    def _tell(self, task: RunningTask) -> None:
        execution = self._execution_of(task)
        if execution is None:
            who = getattr(task.get_coro(), "__qualname__", task.get_name())
        else:
            who = f"task {execution.claim.id} ({execution.claim.name})"
        log.warning(
            "%s has blocked the event loop for longer than a second, and with it every other `async def` task here: "
            "await what takes long, or make it a `def` task, which runs in a thread",
            who,
        )
