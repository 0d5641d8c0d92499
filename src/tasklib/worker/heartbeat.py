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
from tasklib.stores.protocol import Store, WorkStore
from tasklib.stores.values import Drain, Held, WorkerHeartbeat
from tasklib.worker import runner
from tasklib.worker.executors.slots import Executor, Slots
from tasklib.worker.executors.threads import Report
from tasklib.worker.in_flight import Execution, InFlight, Stop
from tasklib.worker.outage import Outage
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
        in_flight: InFlight,
        executor_for: Callable[[Execution], Executor],
        report: Report,
        watch: LoopWatch,
        drained: Callable[[Drain], None],
        app_version: str | None = None,
    ) -> None:
        self._engine = engine
        self._config: Config = engine.config
        self._worker_id = worker_id
        self._serves = serves
        """Task types, and the queue of each."""
        self._slots = slots
        self._in_flight = in_flight
        self._executor_for = executor_for
        self._report = report
        self._watch = watch
        self._app_version = app_version
        self._drained = drained
        """Told, in the heartbeat's own thread, when an operator asked the worker to drain."""
        self._outage = Outage(f"{engine.config.shown_url} (heartbeat)")
        self._hostname = socket.gethostname()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()
        self._ended = False
        self._called = asyncio.Event()
        """Some may have been asked to stop, or it is the end."""
        self._maybe_cancelled: set[Execution] = set()
        """Those that may have been asked to stop."""
        self._stopping: set[Execution] = set()
        self._confirmed = time.monotonic()
        """When the last beat that arrived was sent."""
        self._thread = threading.Thread(target=self._main, name="tasklib-heartbeat", daemon=True)
        self._opened = False
        self._draining = False
        self._to_tell = False
        """The next beat is due at once."""
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

    def about(self) -> WorkerHeartbeat:
        serves = self._serves()
        return WorkerHeartbeat(
            id=self._worker_id,
            hostname=self._hostname,
            pid=os.getpid(),
            version=self._app_version,
            names=tuple(serves),
            queues={name: queue for name, queue in serves.items() if queue != DEFAULT_QUEUE},
            concurrency=0 if self._draining else self._slots.size,
            running=self._slots.running,
            listening=self.listening,
        )

    def drain(self) -> None:
        """The worker takes no more tasks. Others are told at once."""
        self._draining = True
        self.beat_now()

    def beat_now(self) -> None:
        """An operator may have asked the worker to drain: the answer to a heartbeat tells. From any thread."""
        self._to_tell = True
        if self._loop is not None:
            with suppress(RuntimeError):  # its loop is closed: the worker has ended
                self._loop.call_soon_threadsafe(self._called.set)

    def look_at(self, ids: Collection[UUID]) -> None:
        """These tasks may have been asked to stop, or any if none is named: those of them that are in flight here are
        looked at in the store. From any thread."""
        in_flight = [execution for task_id in ids if (execution := self._in_flight.get(task_id)) is not None]
        if not ids:
            in_flight = self._in_flight.snapshot()
        if in_flight and self._loop is not None:
            with suppress(RuntimeError):  # its loop is closed: the worker has ended
                self._loop.call_soon_threadsafe(self._ask_about, in_flight)

    def _ask_about(self, in_flight: list[Execution]) -> None:
        self._maybe_cancelled.update(in_flight)
        self._called.set()

    def halt(self, execution: Execution, reason: Stop) -> None:
        """Tells an execution to stop. What becomes of it is seen to by the ticks that follow."""
        if execution.stop is not None:
            return
        execution.stop, execution.stop_at = reason, time.monotonic()
        if reason is Stop.LOST or reason is Stop.SILENT:
            execution.lost = True
        self._stopping.add(execution)
        if execution.started is not None:
            self._executor_for(execution).interrupt(execution, reason)

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
                while not (self._ended or self._to_tell) and (left := next_beat - loop.time()) > 0:
                    await self._pause(left, self._called)
                    self._called.clear()
                    if self._maybe_cancelled:
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
        sent, self._to_tell = time.monotonic(), False
        if not self._opened:
            await store.open()
            self._opened = True
        drain = await store.heartbeat(self.about())
        if drain is not None:
            self._drained(drain)
        # Nobody takes us for dead from here on, whatever becomes of the leases: each of them ends by itself.
        self._confirmed = sent
        await self._extend(store, self._in_flight.held(older_than=sent - self._config.beat_seconds / 2))

    async def _look(self, store: WorkStore) -> None:
        """What was heard is a hint; the store's answer is what counts."""
        asked, self._maybe_cancelled = self._maybe_cancelled, set()
        in_flight = [each for each in asked if each in self._in_flight and each.stop is None]
        await self._extend(store, [Held(each.claim.id, each.claim.version) for each in in_flight])

    async def _extend(self, store: WorkStore, held: list[Held]) -> None:
        """Prolongs leases, and stops what is no longer to run."""
        if not held:
            return
        sent, taken = time.monotonic(), []
        answers = await store.extend(self._worker_id, held, self._in_flight.lease_seconds)
        for lease, answer in zip(held, answers, strict=True):
            execution = self._in_flight.get(lease.id)
            if execution is None or execution.claim.version != lease.version:  # it has ended, and may have begun anew
                continue
            if not answer.held:
                if not execution.settled_once.locked():
                    taken.append(execution.claim)
                    self.halt(execution, Stop.LOST)
                continue
            execution.lease_until = sent + self._in_flight.lease_seconds - self._in_flight.margin
            if answer.cancel_requested and not execution.cancel_requested:
                execution.cancel_requested = True
                self.halt(execution, Stop.CANCEL)
        task_log.leases_lost(taken, "no longer this worker's")

    async def _tick_until_end(self) -> None:
        while not self._ended:
            now = time.monotonic()
            self._tick(now)
            self._watch.look(now)
            busy = self._in_flight.timed or self._stopping
            await self._pause(TICK_SECONDS if busy else 4 * TICK_SECONDS, self._end)

    def _tick(self, now: float) -> None:
        for execution in list(self._in_flight.timed):
            if execution.stop is None and execution.deadline is not None and now >= execution.deadline:
                self.halt(execution, Stop.TIMEOUT)
        silent = now >= self._confirmed + 0.9 * self._config.dead_after_seconds  # others take us for dead soon
        late = [f for f in self._in_flight if f.stop is None and (silent or now >= f.lease_until)]
        for execution in late:
            self.halt(execution, Stop.SILENT)
        task_log.leases_lost([execution.claim for execution in late], "not extended in time")
        for execution in list(self._stopping):
            if execution.settled_once.locked():
                self._stopping.discard(execution)
            elif execution.stop_at is not None and now >= execution.stop_at + STOP_PATIENCE_SECONDS:
                self._give_up(execution)

    def _give_up(self, execution: Execution) -> None:
        """The handler does not end: its execution ends without it."""
        if execution.started is None or not execution.settled_once.acquire(blocking=False):
            return
        self._stopping.discard(execution)
        self._executor_for(execution).abandon(execution)
        self._report(execution, runner.stopped(execution, Failed("TaskStopped: it was told to stop and did not end")))

    async def _pause(self, seconds: float, until: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(seconds):
                await until.wait()
        except TimeoutError:
            pass
