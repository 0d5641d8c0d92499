"""The executor for `async def` tasks: each runs as a task of the worker's own event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence

from tasklib.engine import task_log
from tasklib.engine.current import running
from tasklib.engine.middleware import Middleware
from tasklib.worker import runner
from tasklib.worker.executors.slots import Slots
from tasklib.worker.executors.threads import Report
from tasklib.worker.in_flight import Execution, InFlight, Stop

log = logging.getLogger("tasklib.worker")


class CoroutineExecutor:
    def __init__(
        self, slots: Slots, in_flight: InFlight, report: Report, max_result_bytes: int, around: Sequence[Middleware]
    ) -> None:
        self.waiting: deque[Execution] = deque()
        self._slots = slots
        self._in_flight = in_flight
        self._report = report
        self._limit = max_result_bytes
        self._around = around
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[Execution, asyncio.Task[None]] = {}

    def start(self) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._launch()
        else:
            self._loop.call_soon_threadsafe(self._launch)

    def interrupt(self, execution: Execution, reason: Stop) -> None:
        self._loop.call_soon_threadsafe(self._cancel, execution)

    def abandon(self, execution: Execution) -> None:
        log.error(
            "task %s (%s) does not end on %s: its coroutine is left behind and can record nothing more",
            execution.claim.id,
            execution.claim.name,
            execution.stop,
        )
        self._loop.call_soon_threadsafe(self._forget, execution)

    def execution_of(self, task: asyncio.Task[object]) -> Execution | None:
        """Whose coroutine a task of the event loop is; from any thread."""
        return next((execution for execution, own in list(self._tasks.items()) if own is task), None)

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def _launch(self) -> None:
        try:
            execution = self.waiting.popleft()
        except IndexError:
            if self._slots.finished(self):
                self._loop.call_soon(self._launch)
            return
        execution.started = time.monotonic()
        task_log.started(execution.claim)
        if execution.claim.timeout_seconds is not None:
            self._in_flight.timed.add(execution)
        self._tasks[execution] = self._loop.create_task(self._run_one(execution))

    async def _run_one(self, execution: Execution) -> None:
        running.set(execution.tell)
        claim = execution.claim
        if execution.stop is not None:
            outcome = runner.NEVER_STARTED
        else:
            given = (execution.task_type, claim.kwargs, self._limit, self._around, claim.trace, execution.sources)
            outcome = await runner.call_async(*given)
        execution.ended = time.monotonic()
        if execution.settled_once.acquire(blocking=False):
            self._report(execution, outcome if execution.stop is None else runner.stopped(execution, outcome))
        self._forget(execution)

    def _forget(self, execution: Execution) -> None:
        self._in_flight.timed.discard(execution)
        if self._tasks.pop(execution, None) is not None and self._slots.finished(self):
            self._launch()

    def _cancel(self, execution: Execution) -> None:
        task = self._tasks.get(execution)
        if task is not None:
            task.cancel()
