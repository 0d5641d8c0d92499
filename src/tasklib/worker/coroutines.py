"""The lane for `async def` tasks: each runs as a task of the worker's own event loop."""

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
from tasklib.worker.flight import Flight, Flights, Stop
from tasklib.worker.slots import Slots
from tasklib.worker.threads import Report

log = logging.getLogger("tasklib.worker")


class CoroutineLane:
    def __init__(
        self, slots: Slots, flights: Flights, report: Report, max_result_bytes: int, around: Sequence[Middleware]
    ) -> None:
        self.waiting: deque[Flight] = deque()
        self._slots = slots
        self._flights = flights
        self._report = report
        self._limit = max_result_bytes
        self._around = around
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[Flight, asyncio.Task[None]] = {}

    def start(self) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._launch()
        else:
            self._loop.call_soon_threadsafe(self._launch)

    def interrupt(self, flight: Flight, reason: Stop) -> None:
        self._loop.call_soon_threadsafe(self._cancel, flight)

    def abandon(self, flight: Flight) -> None:
        log.error(
            "task %s (%s) does not end on %s: its coroutine is left behind and can record nothing more",
            flight.claim.id,
            flight.claim.name,
            flight.stop,
        )
        self._loop.call_soon_threadsafe(self._forget, flight)

    def flight_of(self, task: asyncio.Task[object]) -> Flight | None:
        """Whose coroutine a task of the event loop is; from any thread."""
        return next((flight for flight, own in list(self._tasks.items()) if own is task), None)

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def _launch(self) -> None:
        try:
            flight = self.waiting.popleft()
        except IndexError:
            if self._slots.finished(self):
                self._loop.call_soon(self._launch)
            return
        flight.started = time.monotonic()
        task_log.started(flight.claim)
        if flight.claim.timeout_seconds is not None:
            self._flights.timed.add(flight)
        self._tasks[flight] = self._loop.create_task(self._fly(flight))

    async def _fly(self, flight: Flight) -> None:
        running.set(flight.tell)
        claim = flight.claim
        if flight.stop is not None:
            outcome = runner.NEVER_STARTED
        else:
            outcome = await runner.call_async(flight.task_type, claim.kwargs, self._limit, self._around, claim.trace)
        flight.ended = time.monotonic()
        if flight.verdict.acquire(blocking=False):
            self._report(flight, outcome if flight.stop is None else runner.stopped(flight, outcome))
        self._forget(flight)

    def _forget(self, flight: Flight) -> None:
        self._flights.timed.discard(flight)
        if self._tasks.pop(flight, None) is not None and self._slots.finished(self):
            self._launch()

    def _cancel(self, flight: Flight) -> None:
        task = self._tasks.get(flight)
        if task is not None:
            task.cancel()
