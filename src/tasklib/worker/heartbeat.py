"""The heartbeat: extends leases, says that the worker lives, and stops what must stop.

It has its own thread, its own event loop and its own connection, so that neither a handler that blocks the worker's
loop nor a busy pool can stop it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from uuid import UUID

from tasklib.core.options import DEFAULT_QUEUE
from tasklib.core.outcome import Failed
from tasklib.engine import task_log
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.stores.base import Store
from tasklib.stores.values import Held, WorkerBeat
from tasklib.worker import runner
from tasklib.worker.flight import Flight, Flights, Stop
from tasklib.worker.outage import Outage
from tasklib.worker.slots import Lane, Slots
from tasklib.worker.threads import Report
from tasklib.worker.watch import LoopWatch

log = logging.getLogger("tasklib.worker")

TICK_SECONDS = 0.05
STOP_PATIENCE_SECONDS = 0.5
"""How long a handler may take to end after it was told to."""


class Heartbeat:
    def __init__(
        self,
        engine: Engine,
        worker_id: str,
        serves: Callable[[], Mapping[str, str]],
        slots: Slots,
        flights: Flights,
        lane_of: Callable[[Flight], Lane],
        report: Report,
        watch: LoopWatch,
    ) -> None:
        self._engine = engine
        self._config: Config = engine.config
        self._worker_id = worker_id
        self._serves = serves
        """Task types, and the queue of each."""
        self._slots = slots
        self._flights = flights
        self._lane_of = lane_of
        self._report = report
        self._watch = watch
        self._outage = Outage(f"{engine.config.shown_url} (heartbeat)")
        self._hostname = socket.gethostname()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()
        self._ended = False
        self._called = asyncio.Event()
        """There are suspects, or it is the end."""
        self._suspects: set[Flight] = set()
        """Those that may have been asked to stop."""
        self._stopping: set[Flight] = set()
        self._confirmed = time.monotonic()
        """When the last beat that arrived was sent."""
        self._thread = threading.Thread(target=self._main, name="tasklib-heartbeat", daemon=True)
        self._opened = False
        self.listening = True
        """False while the worker is too busy to want wake-ups."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; does not wait for longer than a moment."""
        self._ended = True
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._finish)
            self._thread.join(2.0)

    def _finish(self) -> None:
        self._end.set()
        self._called.set()

    def about(self) -> WorkerBeat:
        serves = self._serves()
        return WorkerBeat(
            id=self._worker_id,
            hostname=self._hostname,
            pid=os.getpid(),
            names=tuple(serves),
            queues={name: queue for name, queue in serves.items() if queue != DEFAULT_QUEUE},
            concurrency=self._slots.size,
            running=self._slots.running,
            listening=self.listening,
        )

    def look_at(self, ids: Collection[UUID]) -> None:
        """These tasks may have been asked to stop, or any if none is named: those of them that are in flight here are
        looked at in the store. From any thread."""
        flights = [flight for task_id in ids if (flight := self._flights.get(task_id)) is not None]
        if not ids:
            flights = self._flights.snapshot()
        if flights and self._loop is not None:
            with suppress(RuntimeError):  # its loop is closed: the worker has ended
                self._loop.call_soon_threadsafe(self._suspect, flights)

    def _suspect(self, flights: list[Flight]) -> None:
        self._suspects.update(flights)
        self._called.set()

    def halt(self, flight: Flight, reason: Stop) -> None:
        """Tells a flight to stop. What becomes of it is seen to by the ticks that follow."""
        if flight.stop is not None:
            return
        flight.stop, flight.stop_at = reason, time.monotonic()
        if reason is Stop.LOST or reason is Stop.SILENT:
            flight.lost = True
        self._stopping.add(flight)
        if flight.started is not None:
            self._lane_of(flight).interrupt(flight, reason)

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            asyncio.run(self._beat_until_end())
        except Exception:
            log.exception("the heartbeat has stopped; leases will run out")

    async def _beat_until_end(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        store = self._engine.new_store()
        ticking = asyncio.create_task(self._tick_until_end())
        try:
            while not self._ended:
                await self._attempt(self._beat, store)
                next_beat = loop.time() + self._config.beat_seconds
                while not self._ended and (left := next_beat - loop.time()) > 0:
                    await self._pause(left, self._called)
                    self._called.clear()
                    if self._suspects:
                        await self._attempt(self._look, store)
        finally:
            ticking.cancel()
            await store.close()

    async def _attempt(self, work: Callable[[Store], Awaitable[None]], store: Store) -> None:
        """A failed round is tried again soon, within the lease."""
        try:
            async with asyncio.timeout(max(self._config.beat_seconds, 1.0)):
                await work(store)
        except Exception as error:  # whatever it is, the next beat may get through: nobody else would send one
            log.warning("heartbeat not confirmed: %s", str(error) or "no answer in time")
            self._outage.noticed()
        else:
            self._outage.over()

    async def _beat(self, store: Store) -> None:
        """One round: the worker lives, its leases go on."""
        sent = time.monotonic()
        if not self._opened:
            await store.open()
            self._opened = True
        await store.beat(self.about())
        # Nobody takes us for dead from here on, whatever becomes of the leases: each of them ends by itself.
        self._confirmed = sent
        await self._extend(store, self._flights.held(older_than=sent - self._config.beat_seconds / 2))

    async def _look(self, store: Store) -> None:
        """What was heard is a hint; the store's answer is what counts."""
        suspects, self._suspects = self._suspects, set()
        flights = [each for each in suspects if each in self._flights and each.stop is None]
        await self._extend(store, [Held(each.claim.id, each.claim.version) for each in flights])

    async def _extend(self, store: Store, held: list[Held]) -> None:
        """Prolongs leases, and stops what is no longer to run."""
        if not held:
            return
        sent, taken = time.monotonic(), []
        answers = await store.extend(self._worker_id, held, self._flights.lease_seconds)
        for lease, answer in zip(held, answers, strict=True):
            flight = self._flights.get(lease.id)
            if flight is None or flight.claim.version != lease.version:  # it has ended, and may have begun anew
                continue
            if not answer.held:
                if not flight.verdict.locked():
                    taken.append(flight.claim)
                    self.halt(flight, Stop.LOST)
                continue
            flight.lease_until = sent + self._flights.lease_seconds - self._flights.margin
            if answer.cancel_requested and not flight.cancel_requested:
                flight.cancel_requested = True
                self.halt(flight, Stop.CANCEL)
        task_log.leases_lost(taken, "no longer this worker's")

    async def _tick_until_end(self) -> None:
        while not self._ended:
            now = time.monotonic()
            self._tick(now)
            self._watch.look(now)
            busy = self._flights.timed or self._stopping
            await self._pause(TICK_SECONDS if busy else 4 * TICK_SECONDS, self._end)

    def _tick(self, now: float) -> None:
        for flight in list(self._flights.timed):
            if flight.stop is None and flight.deadline is not None and now >= flight.deadline:
                self.halt(flight, Stop.TIMEOUT)
        silent = now >= self._confirmed + 0.9 * self._config.dead_after_seconds  # others take us for dead soon
        late = [f for f in self._flights if f.stop is None and (silent or now >= f.lease_until)]
        for flight in late:
            self.halt(flight, Stop.SILENT)
        task_log.leases_lost([flight.claim for flight in late], "not extended in time")
        for flight in list(self._stopping):
            if flight.verdict.locked():
                self._stopping.discard(flight)
            elif flight.stop_at is not None and now >= flight.stop_at + STOP_PATIENCE_SECONDS:
                self._give_up(flight)

    def _give_up(self, flight: Flight) -> None:
        """The handler does not end: its flight ends without it."""
        if flight.started is None or not flight.verdict.acquire(blocking=False):
            return
        self._stopping.discard(flight)
        self._lane_of(flight).abandon(flight)
        self._report(flight, runner.stopped(flight, Failed("TaskStopped: it was told to stop and did not end")))

    async def _pause(self, seconds: float, until: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(seconds):
                await until.wait()
        except TimeoutError:
            pass
