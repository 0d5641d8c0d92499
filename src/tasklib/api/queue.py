"""A TaskQueue takes tasks for handlers, and runs them in this process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict
from uuid import UUID

from typing_extensions import Unpack

from tasklib.api.decorator import submit_sync
from tasklib.api.options import CamelSettings, EnqueueOptions, enqueue_options, settings
from tasklib.api.sync import run_in_new_thread, run_sync
from tasklib.core import codec
from tasklib.core.checks import INT32, check_whole
from tasklib.core.cron import Timing, every
from tasklib.core.durations import Seconds, WholeSeconds, in_seconds
from tasklib.core.errors import InvalidConfig, InvalidOption
from tasklib.core.ids import as_task_id
from tasklib.core.options import check_name, check_timeout
from tasklib.core.registry import PayloadModel, Registry, default_registry, define_handler, encode_payload
from tasklib.core.task import Task
from tasklib.engine.config import Config
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine
from tasklib.engine.submission import QUEUE_OPTIONS, Call
from tasklib.stores.values import ControlChange, NameStats
from tasklib.worker.background import BackgroundWorker
from tasklib.worker.worker import MOST_CONCURRENCY, TaskWorker

log = logging.getLogger("tasklib.queue")

Handler = Callable[[Any], Any] | Callable[[], Any]

LEASE_SECONDS = 300.0
HIGHEST_RATE = 1e6


class TypeCounts(TypedDict):
    pending: int
    processing: int
    completed: int
    failed: int
    """Those that wait for a retry too."""
    cancelled: int


class QueueStats(TypeCounts):
    byType: dict[str, TypeCounts]


@dataclass(slots=True)
class _TypeSettings:
    timeout: int | None = None
    count: int = 1


class TaskQueue:
    """Handlers by task type, tasks for them, and a worker beside the application that runs them.

    The worker starts with the first handler, in a daemon thread with an event loop of its own, unless `enable_worker`
    is false: then `process_batch` runs what is due. Every function that waits has a twin ending in `_async`.
    """

    def __init__(
        self,
        database_url: str | None = None,
        poll_interval: Seconds = 1.0,
        batch_size: int = 10,
        enable_worker: bool = True,
        task_timeout: Seconds = LEASE_SECONDS,
        *,
        engine: Engine | None = None,
        **camel: Unpack[CamelSettings],
    ) -> None:
        """
        database_url: the library's own queue unless given.
        poll_interval: seconds between looks at the queue when no wake-up comes (`pollInterval`: milliseconds).
        batch_size: how many tasks one `process_batch` runs at most.
        task_timeout: the lease, in seconds: a task whose worker is gone for longer is recovered.
        engine: to share one, with its own settings, instead of `database_url` and `task_timeout`.
        """
        plain = {
            "poll_interval": poll_interval,
            "batch_size": batch_size,
            "enable_worker": enable_worker,
            "task_timeout": task_timeout,
        }
        chosen = settings(plain, camel)
        self.poll_interval = _number("poll_interval", in_seconds(chosen["poll_interval"]), 0.001, 3600)
        self.batch_size = check_whole("batch_size", chosen["batch_size"], 1, INT32)
        if not isinstance(chosen["enable_worker"], bool):
            raise InvalidConfig("enable_worker must be true or false", field="enable_worker")
        self.enable_worker: bool = chosen["enable_worker"]
        lease = _number("task_timeout", in_seconds(chosen["task_timeout"]), 0.001, 1e9)
        if engine is not None and database_url is not None:
            raise InvalidConfig("give database_url or engine, not both", field="database_url")
        if engine is not None and lease not in (LEASE_SECONDS, engine.config.lock_timeout_seconds):
            raise InvalidConfig("task_timeout: an engine brings its own lease", field="task_timeout")
        self._own_engine = engine is None
        self.engine = engine or _new_engine(database_url, lease)
        self.registry = Registry()
        self._types: dict[str, _TypeSettings] = {}
        self._counts: dict[str, int] = {}
        """Of the registered types, for the worker, which reads it at each claim."""
        self._lock = threading.Lock()
        self._worker: BackgroundWorker | None = None

    # -- handlers -----------------------------------------------------------------------------------------------------

    def register_handler(self, type_name: str, handler: Handler, payload_type: Any = Any) -> None:
        """From now on `handler(payload)`, `def` or `async def`, runs tasks of this type; it takes the place of an
        earlier one. With a `payload_type` the payload is validated, when it is added and when it is run."""
        with self._lock:
            options = replace(QUEUE_OPTIONS, timeout_seconds=self._settings(type_name).timeout)
            task_type = define_handler(type_name, handler, payload_type, options)
            self.registry.replace(task_type)
            self._counts[type_name] = self._settings(type_name).count
            log.info("handler for %s registered", type_name)
            self._tend_worker()

    def unregister_handler(self, type_name: str) -> bool:
        """Tasks of this type wait from now on. What runs goes on. False: there was no handler."""
        with self._lock:
            found = self.registry.remove(check_name(type_name, "type"))
            self._counts.pop(type_name, None)
            if found:
                log.info("handler for %s unregistered", type_name)
                self._tend_worker()
        return found

    def set_worker_count(self, type_name: str, count: int) -> None:
        """How many tasks of this type run at once in this process; 1 unless set."""
        check_whole("worker_count", count, 1, MOST_CONCURRENCY)
        with self._lock:
            self._settings(type_name).count = count
            if type_name in self._counts:
                self._counts[type_name] = count
                self._tend_worker()

    def set_timeout(self, type_name: str, seconds: WholeSeconds | None) -> None:
        """Tasks of this type that are added from now on are stopped when they run longer. None: the configuration's."""
        timeout = None if seconds is None else check_timeout(seconds)
        with self._lock:
            self._settings(type_name).timeout = timeout
            known = self.registry.get(type_name)
            if known is not None:
                self.registry.replace(replace(known, options=replace(known.options, timeout_seconds=timeout)))
                self._tend_worker()

    def set_rate_limit(self, type_name: str, tasks_per_second: float | None) -> None:
        """The default for this type, for the whole fleet. An operator's value wins until it is cleared. None: none."""
        check_name(type_name, "type")
        if tasks_per_second is not None:
            _number("rate_limit", tasks_per_second, 1e-6, HIGHEST_RATE)
        run_sync(self.engine.control(ControlChange(name=type_name, default_rate=tasks_per_second)))

    # -- tasks --------------------------------------------------------------------------------------------------------

    def enqueue(
        self,
        type_name: str,
        payload: Any,
        options: EnqueueOptions | Mapping[str, Any] | None = None,
        /,
        **more: Unpack[EnqueueOptions],
    ) -> UUID:
        """Stores a task and returns its id once it is committed."""
        return submit_sync(self.engine, self.call(type_name, payload, None, options, more)).id

    async def enqueue_async(
        self,
        type_name: str,
        payload: Any,
        options: EnqueueOptions | Mapping[str, Any] | None = None,
        /,
        **more: Unpack[EnqueueOptions],
    ) -> UUID:
        return (await self.engine.submit(self.call(type_name, payload, None, options, more))).id

    def call(
        self, type_name: str, payload: Any, model: PayloadModel | None, *options: Mapping[str, Any] | None
    ) -> Call:
        """For the handler of this type, or for the decorated function. `model`: what the payload must fit, too."""
        check_name(type_name, "type")
        handler = self.registry.get(type_name)
        chosen = enqueue_options(*options)
        own = self._types.get(type_name)
        if own is not None and own.timeout is not None:
            chosen.setdefault("timeout_seconds", own.timeout)
        if model is not None and (handler is None or handler.params is not model):
            payload = codec.decode(encode_payload(payload, model, self.engine.config.max_payload_bytes))
        known = handler or default_registry.get(type_name)
        return Call(type_name, payload, chosen, known, is_json=handler is None, unknown=QUEUE_OPTIONS)

    async def schedule_async(self, type_name: str, timing: Timing | Seconds, call: Call, name: str | None) -> None:
        new = await self.engine.schedules.define(call, timing if isinstance(timing, Timing) else every(timing))
        await self.engine.schedules.put(type_name if name is None else name, new, operator=False)

    def get_task(self, task_id: UUID | str) -> Task | None:
        return run_sync(self.get_task_async(task_id))

    async def get_task_async(self, task_id: UUID | str) -> Task | None:
        return await self.engine.get(as_task_id(task_id))

    # -- work ---------------------------------------------------------------------------------------------------------

    async def process_batch_async(self) -> int:
        """Recovers what dead workers hold, runs what is due for the registered handlers, `batch_size` tasks at most,
        and returns how many it ran."""
        await self.engine.expire()
        if not self._counts:
            return 0
        worker = self._new_worker(limit=self.batch_size)
        await worker.run()
        return worker.taken

    def process_batch(self) -> int:
        return run_in_new_thread(self.process_batch_async())

    def start(self) -> None:
        """Starts the worker, if it does not run; with `enable_worker` the first handler does so."""
        with self._lock:
            self._start_worker()

    def stop(self) -> None:
        """Stops the worker: nothing more is claimed, what runs may finish within the grace period, the rest is given
        back. The queue can still be used; a handler that is registered later starts the worker again."""
        with self._lock:
            worker = self._worker
        if worker is not None:
            worker.stop()
        if self._own_engine:
            run_sync(self.engine.close())

    async def stop_async(self) -> None:
        await asyncio.to_thread(self.stop)

    def is_running(self) -> bool:
        """Whether this queue's worker runs."""
        worker = self._worker
        return worker is not None and worker.alive

    # -- control ------------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """No worker of the whole fleet starts tasks, of any type, until `resume`. What runs goes on."""
        run_sync(self.engine.control(ControlChange(paused=True)))

    def resume(self) -> None:
        run_sync(self.engine.control(ControlChange(paused=False)))

    def is_paused(self) -> bool:
        everything = run_sync(self.engine.controls()).get("")
        return everything is not None and everything.paused

    def stats(self) -> QueueStats:
        return queue_stats(run_sync(self.engine.stats()))

    registerHandler = register_handler  # noqa: N815
    unregisterHandler = unregister_handler  # noqa: N815
    getTask = get_task  # noqa: N815
    processBatch = process_batch  # noqa: N815
    isRunning = is_running  # noqa: N815
    isPaused = is_paused  # noqa: N815

    # -- the worker ---------------------------------------------------------------------------------------------------

    def _settings(self, type_name: str) -> _TypeSettings:
        return self._types.setdefault(check_name(type_name, "type"), _TypeSettings())

    @property
    def _concurrency(self) -> int:
        return min(MOST_CONCURRENCY, max(1, sum(self._counts.values())))

    def _new_worker(self, limit: int | None = None) -> TaskWorker:
        return TaskWorker(
            concurrency=self._concurrency,
            poll_interval_seconds=self.poll_interval,
            registry=self.registry,
            handle_signals=False,
            parallelism=self._counts,
            limit=limit,
            engine=self.engine,
        )

    def _tend_worker(self) -> None:
        if self._worker is not None and self._worker.alive and not self._worker.ending:
            self._worker.adjust(self._concurrency)
        elif self.enable_worker and self._counts:
            self._start_worker()

    def _start_worker(self) -> None:
        if self._worker is None or self._worker.ending or not self._worker.alive:
            self._worker = BackgroundWorker(self._new_worker)
            self._worker.start()


def queue_stats(by_name: Mapping[str, NameStats]) -> QueueStats:
    """The counters in this API's words: running is processing, and a task that waits for its retry has failed."""
    kinds = {
        name: TypeCounts(
            pending=each.pending,
            processing=each.running,
            completed=each.completed,
            failed=each.failed + each.waiting,
            cancelled=each.cancelled,
        )
        for name, each in by_name.items()
    }
    return QueueStats(
        pending=sum(kind["pending"] for kind in kinds.values()),
        processing=sum(kind["processing"] for kind in kinds.values()),
        completed=sum(kind["completed"] for kind in kinds.values()),
        failed=sum(kind["failed"] for kind in kinds.values()),
        cancelled=sum(kind["cancelled"] for kind in kinds.values()),
        byType=kinds,
    )


def _new_engine(database_url: str | None, lease: float) -> Engine:
    if database_url is not None:
        return Engine(Config(database_url=database_url, lock_timeout_seconds=lease))
    engine = default_engine()
    return engine.with_settings(Config(**{**engine.config.given, "lock_timeout_seconds": lease}))


def _number(field: str, value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InvalidOption(f"{field} must be a number from {low:g} to {high:g}, got {value!r:.60}", field=field)
    return float(value)
