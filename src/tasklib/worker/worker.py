"""TaskWorker: claims tasks of the types it knows, runs them, settles them, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tasklib.core.checks import INT32, check_whole
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import TRANSIENT, TRANSIENT_OR_SLOW, InvalidConfig, WorkerExhausted
from tasklib.core.outcome import Outcome
from tasklib.core.registry import Registry, TaskType, default_registry
from tasklib.core.task import Claim
from tasklib.engine.alerts import alert_watch
from tasklib.engine.config import Config
from tasklib.engine.default import default_engine, engine_of
from tasklib.engine.engine import Engine
from tasklib.engine.listeners import flush
from tasklib.engine.middleware import AROUND, Middleware, defining
from tasklib.engine.parents import Parents, after_of, run_in
from tasklib.engine.waits import Waits
from tasklib.stores.values import Drain
from tasklib.worker import runner
from tasklib.worker.app_version import installed_version
from tasklib.worker.choice import Choice
from tasklib.worker.completer import Completer
from tasklib.worker.executors.coroutines import CoroutineExecutor
from tasklib.worker.executors.processes import ProcessExecutor
from tasklib.worker.executors.slots import Executor, Slots
from tasklib.worker.executors.threads import ThreadExecutor
from tasklib.worker.fetcher import Fetcher
from tasklib.worker.heartbeat import Heartbeat
from tasklib.worker.in_flight import Execution, InFlight, Stop
from tasklib.worker.janitor import Janitor
from tasklib.worker.outage import Outage, Reminder
from tasklib.worker.prefetch import RunTimes
from tasklib.worker.scheduler import Scheduler
from tasklib.worker.signals import STOP_SIGNALS, StopSignals
from tasklib.worker.watch import LoopWatch

log = logging.getLogger("tasklib.worker")

MOST_CONCURRENCY = 10_000
GOODBYE_SECONDS = 2.0
LAST_CLAIM_SECONDS = 5.0
"""How long a stop waits for the answer to a claim that is under way."""
NO_SLOT_LEFT = "each of its slots is taken by a task that was told to stop and does not end; start a new process"
PATIENCE_SECONDS = 3.0
"""How long the database may keep a starting worker waiting before it says so."""


class TaskWorker:
    """`await TaskWorker(config, concurrency=4).run()` serves until SIGTERM, SIGINT, `stop()`, or an operator's
    word to drain.

    It then claims nothing more, lets running tasks finish for `config.shutdown_grace_seconds` and gives the rest back.
    A second signal, at least a second later, leaves at once. A task that does not end when told to is left behind: it
    can record nothing more. Raises WorkerExhausted when such tasks have taken every slot.
    """

    def __init__(
        self,
        config: Config | None = None,
        concurrency: int = 1,
        poll_interval_seconds: Seconds = 1.0,
        *,
        names: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        queues: Sequence[str] | None = None,
        exclude_queues: Sequence[str] = (),
        registry: Registry = default_registry,
        burst: bool = False,
        handle_signals: bool = True,
        parallelism: Mapping[str, int] | None = None,
        limit: int | None = None,
        engine: Engine | None = None,
    ) -> None:
        """
        config: that of `init` unless given.
        names: serve only these of the registered task types; `upload.*` and other wildcards of a shell are understood.
        exclude: but not these.
        queues: serve only types of these queues, see `@task(queue=...)`.
        exclude_queues: but not of these.
        burst: stop by itself once nothing is due.
        parallelism: at most so many of a type at once in this worker. Read at each claim, so it may change.
        limit: stop by itself once so many tasks were run, or nothing is due.
        """
        check_whole("concurrency", concurrency, 1, MOST_CONCURRENCY)
        if limit is not None:
            check_whole("limit", limit, 1, INT32)
        self._poll_interval: float = in_seconds(poll_interval_seconds)
        if not 0.001 <= self._poll_interval <= 3600:
            reason = f"must be from 0.001 to 3600, got {poll_interval_seconds!r}"
            raise InvalidConfig(f"poll_interval_seconds {reason}", field="poll_interval_seconds")
        self._engine = engine or (default_engine() if config is None else engine_of(config))
        self.config = self._engine.config
        self._alerts = alert_watch(self._engine)
        self.concurrency = concurrency
        self._choice = Choice(
            None if names is None else tuple(names),
            tuple(exclude),
            None if queues is None else tuple(queues),
            tuple(exclude_queues),
        )
        self._chosen: tuple[tuple[TaskType, ...], tuple[str, ...]] = ((), ())
        self._registry = registry
        self._burst = burst or limit is not None
        self._limit = limit
        self._handle_signals = handle_signals
        self._parallelism = {} if parallelism is None else parallelism
        label = self.config.worker_id or f"{socket.gethostname()}-{os.getpid()}"
        self.worker_id = f"{label}-{secrets.token_hex(6)}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._leave = asyncio.Event()
        self._told_to_stop = False
        self._asked_to_drain = False
        self._adjust: Callable[[], None] | None = None
        self._fetcher: Fetcher | None = None
        self._slots: Slots | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The task types served now."""
        if self._choice.is_all:
            return self._registry.names()
        registered = tuple(self._registry)
        if registered != self._chosen[0]:  # asked at each claim: patterns are matched anew only for new types
            self._chosen = (registered, self._choice.of(registered))
        return self._chosen[1]

    @property
    def queues(self) -> dict[str, str]:
        """The task types served now, and the queue of each."""
        return {kind.name: kind.options.queue for kind in self._registry.of(self.names)}

    def stop(self) -> None:
        """Ends the run; from any thread, also before it began. A second call leaves at once."""
        first, self._told_to_stop = not self._told_to_stop, True
        event = self._stop if first else self._leave
        if self._loop is None:
            event.set()
        else:
            self._loop.call_soon_threadsafe(event.set)

    def _drain(self, asked: Drain) -> None:
        """An operator's word: as the first signal to stop, and a signal that comes later is still the first."""
        if not self._asked_to_drain and self._loop is not None:
            self._asked_to_drain = True
            log.info("worker %s drains: %s asked for it at %s", self.worker_id, asked.by, asked.at.isoformat())
            self._loop.call_soon_threadsafe(self._stop.set)

    @property
    def taken(self) -> int:
        """How many tasks were claimed to be run so far."""
        return 0 if self._fetcher is None else self._fetcher.taken

    @property
    def running(self) -> int:
        """How many tasks it runs now."""
        return 0 if self._slots is None else self._slots.running

    def adjust(self, concurrency: int) -> None:
        """Changes how many tasks run at once, and takes notice of types registered since; from any thread, also while
        it runs."""
        check_whole("concurrency", concurrency, 1, MOST_CONCURRENCY)
        self.concurrency = concurrency
        loop, adjust = self._loop, self._adjust
        if loop is not None and adjust is not None:
            with suppress(RuntimeError):  # its loop is closed: it has stopped
                loop.call_soon_threadsafe(adjust)

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        restore = self._catch_signals(self._loop)
        leaving = asyncio.create_task(self._leave.wait())
        serving = asyncio.create_task(self._serve())
        try:
            await asyncio.wait({leaving, serving}, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                log.warning("worker %s leaves at once", self.worker_id)
                serving.cancel()
            await asyncio.gather(serving, return_exceptions=self._leave.is_set())
        finally:
            serving.cancel()
            leaving.cancel()
            restore()

    # -- the run ------------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        self._choice.check(tuple(self._registry))
        self._engine.call_timeout = self.config.call_timeout_seconds
        slots = self._slots = Slots(self.concurrency)
        waits = Waits(self.worker_id, lambda: slots.working, lambda: self.names)
        run = run_in(asyncio.get_running_loop())

        def parents(claim: Claim) -> Parents:
            return Parents(claim.id, after_of(claim), self._engine.store, run)

        in_flight = InFlight(self.config.database_url, self.config.lock_timeout_seconds, waits, parents)
        run_times = RunTimes(self.concurrency)
        settled, exhausted = asyncio.Event(), asyncio.Event()

        def on_settled() -> None:
            settled.set()
            fetcher.nudge()
            if slots.exhausted:
                exhausted.set()

        outage = Outage(self.config.shown_url)
        completer = Completer(self._engine, in_flight, run_times, outage, on_settled)
        around = defining(self.config.middleware, *AROUND)
        coroutines = CoroutineExecutor(slots, in_flight, completer.report, self.config.max_result_bytes, around)
        executors = self._open_executors(slots, in_flight, completer, coroutines, around)
        slots.open(list(dict.fromkeys(executors.values())))

        def executor_for(execution: Execution) -> Executor:
            kind = execution.task_type
            return executors[
                "process" if kind.options.executor == "process" else "async" if kind.is_async else "thread"
            ]

        watch = LoopWatch(asyncio.get_running_loop(), coroutines.execution_of)
        heartbeat = Heartbeat(
            self._engine,
            self.worker_id,
            lambda: self.queues,
            slots,
            in_flight,
            executor_for,
            completer.report,
            watch,
            self._drain,
            self.config.app_version or installed_version(self._registry),
        )
        fetcher = Fetcher(
            self._engine,
            self._registry,
            self.worker_id,
            lambda: self.names,
            slots,
            in_flight,
            executor_for,
            completer,
            heartbeat,
            self._poll_interval,
            self._parallelism,
            run_times,
            outage,
            self._limit,
        )
        self._fetcher = fetcher

        def adjust() -> None:
            slots.resize(self.concurrency)
            run_times.concurrency = self.concurrency
            fetcher.announce()
            on_settled()  # fewer slots may be none that works

        self._adjust = adjust
        if slots.size != self.concurrency:  # changed while this was being set up
            adjust()
        janitor = Janitor(self._engine, fetcher.nudge, self._alerts)
        scheduler = Scheduler(self._engine)
        if not await self._sign_on(heartbeat):
            return
        log.info(
            "worker %s starts: serves %s, %d at once, queues %s, types %s",
            self.worker_id,
            self.config.shown_url,
            self.concurrency,
            ", ".join(dict.fromkeys(self.queues.values())) or "none yet",
            ", ".join(self.names) or "none yet",
        )
        await scheduler.look()  # before the first claim, which a worker that stops by itself may end with
        heartbeat.start()
        claiming = asyncio.create_task(fetcher.run())
        others = [asyncio.create_task(each.run()) for each in (completer, janitor, scheduler)]
        try:
            await self._until_told(claiming, others, fetcher, exhausted)
            if exhausted.is_set():
                log.error("worker %s cannot go on: %s", self.worker_id, NO_SLOT_LEFT)
            fetcher.stop()
            heartbeat.drain()
            await asyncio.wait({claiming}, timeout=LAST_CLAIM_SECONDS)
            fetcher.give_back()
            await self._land(in_flight, completer, heartbeat, settled)
            await flush()
        finally:
            for task in (claiming, *others):
                task.cancel()
            await asyncio.gather(claiming, *others, return_exceptions=True)
            for executor in executors.values():
                executor.close()
            heartbeat.stop()
            await self._say_goodbye()
        if exhausted.is_set() and not self._told_to_stop:
            raise WorkerExhausted(NO_SLOT_LEFT)

    def _open_executors(
        self,
        slots: Slots,
        in_flight: InFlight,
        completer: Completer,
        coroutines: CoroutineExecutor,
        around: Sequence[Middleware],
    ) -> dict[str, Executor]:
        limit = self.config.max_result_bytes

        def run_here(execution: Execution) -> Outcome:
            claim = execution.claim
            return runner.call(execution.task_type, claim.kwargs, limit, around, claim.trace, execution.sources)

        executors: dict[str, Executor] = {
            "thread": ThreadExecutor(slots, in_flight, completer.report, run_here, "thread"),
            "async": coroutines,
        }
        own = [kind for kind in self._registry if kind.name in self.names and kind.options.executor == "process"]
        if own:
            processes = ProcessExecutor(slots, in_flight, completer.report, own, limit, around)
            processes.check()
            executors["process"] = processes
        return executors

    async def _sign_on(self, heartbeat: Heartbeat) -> bool:
        """Waits for the database and registers before anything is claimed: a worker that was never heard of cannot be
        missed. False if told to stop meanwhile."""
        told = asyncio.create_task(self._stop.wait())
        signing = asyncio.create_task(self._register(heartbeat))
        reminder = Reminder(PATIENCE_SECONDS)
        try:
            while not told.done() and not signing.done():
                await asyncio.wait({told, signing}, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not told.done() and not signing.done() and reminder.is_due():
                    log.warning("worker %s is waiting for the database at %s", self.worker_id, self.config.shown_url)
            return signing.done() and await signing
        finally:
            told.cancel()
            signing.cancel()
            await asyncio.gather(signing, return_exceptions=True)

    async def _register(self, heartbeat: Heartbeat) -> bool:
        delay, reminder = 0.1, Reminder(PATIENCE_SECONDS)
        while True:
            try:
                await self._engine.publish(self._registry.of(self.names))
                # Last: who is seen has registered, and signs off when it is told to stop.
                await (await self._engine.store()).heartbeat(heartbeat.about())
                return True
            except TRANSIENT as error:
                if reminder.is_due():
                    log.warning("waiting for the database: %s", error)
            await asyncio.sleep(delay * random.uniform(0.5, 1.5))
            delay = min(delay * 2, 5.0)

    async def _until_told(
        self, claiming: asyncio.Task[None], others: list[asyncio.Task[None]], fetcher: Fetcher, exhausted: asyncio.Event
    ) -> None:
        waits = [asyncio.create_task(self._stop.wait()), asyncio.create_task(exhausted.wait())]
        if self._burst:
            waits.append(asyncio.create_task(fetcher.idle.wait()))
        try:
            done, _ = await asyncio.wait([*waits, claiming, *others], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a loop that broke breaks the run: a supervisor starts it anew
        finally:
            for wait in waits:
                wait.cancel()

    async def _land(
        self, in_flight: InFlight, completer: Completer, heartbeat: Heartbeat, settled: asyncio.Event
    ) -> None:
        """Lets running tasks finish for a while, and gives back those that did not."""
        grace = self.config.shutdown_grace_seconds

        def still_running() -> list[Execution]:
            return [execution for execution in in_flight if not execution.settled_once.locked()]

        running = len(still_running())
        word = "task" if running == 1 else "tasks"
        log.info("worker %s stops: %d %s running, %g s to finish", self.worker_id, running, word, grace)
        try:
            async with asyncio.timeout(grace):
                await _until(lambda: not still_running(), settled)
        except TimeoutError:
            for execution in still_running():
                heartbeat.halt(execution, Stop.SHUTDOWN)
        await _until(lambda: not still_running(), settled)
        await completer.drain()

    async def _say_goodbye(self) -> None:
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await (await self._engine.store()).deregister_worker(self.worker_id)
        except TRANSIENT_OR_SLOW as error:
            log.warning("could not sign off: %s", str(error) or "no answer in time")
        log.info("worker %s has stopped", self.worker_id)

    def _catch_signals(self, loop: asyncio.AbstractEventLoop) -> _Restore:
        caught: list[signal.Signals] = []
        signals = StopSignals()

        def told() -> None:
            if signals.count():
                self.stop()

        if self._handle_signals and threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                try:
                    loop.add_signal_handler(number, told)
                except (NotImplementedError, ValueError):
                    continue
                caught.append(number)
        return _Restore(loop, caught)


async def _until(condition: Callable[[], bool], changed: asyncio.Event) -> None:
    while not condition():
        changed.clear()
        await changed.wait()


class _Restore:
    def __init__(self, loop: asyncio.AbstractEventLoop, caught: list[signal.Signals]) -> None:
        self._loop, self._caught = loop, caught

    def __call__(self) -> None:
        for number in self._caught:
            self._loop.remove_signal_handler(number)
