"""The fluent face of a TaskQueue: `tq('crawl').add({...}).add({...})`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar, overload
from uuid import UUID

from typing_extensions import Unpack

from tasklib.api.decorator import submit_sync
from tasklib.api.options import CamelSettings, EnqueueOptions
from tasklib.api.queue import LEASE_SECONDS, QueueStats, TaskQueue
from tasklib.api.sync import run_sync
from tasklib.core.cron import Timing
from tasklib.core.durations import Seconds, WholeSeconds
from tasklib.core.errors import InvalidConfig, InvalidOption
from tasklib.core.options import check_awaited, check_name
from tasklib.core.registry import payload_model
from tasklib.engine.config import Config
from tasklib.engine.default import check_held, held_engine
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call

P = TypeVar("P")


class TypeContext(Generic[P]):
    """One task type: add tasks to it, and say how this process works on them. Everything can be chained."""

    def __init__(self, queue: TaskQueue, type_name: str, payload_type: Any = Any) -> None:
        self._queue = queue
        self.type = check_name(type_name, "type")
        self._payload_type = payload_type
        self._model = None if payload_type is Any else payload_model(payload_type)
        self.ids: list[UUID] = []
        """Of the tasks added through this chain, in order."""

    def add(
        self, payload: P, options: EnqueueOptions | Mapping[str, Any] | None = None, /, **more: Unpack[EnqueueOptions]
    ) -> Self:
        """Stores a task; returns once it is committed."""
        call = self._queue.call(self.type, payload, self._model, options, more)
        self.ids.append(submit_sync(self._queue.engine, call).id)
        return self

    async def add_async(
        self, payload: P, options: EnqueueOptions | Mapping[str, Any] | None = None, /, **more: Unpack[EnqueueOptions]
    ) -> Self:
        call = self._queue.call(self.type, payload, self._model, options, more)
        self.ids.append((await self._queue.engine.submit(call)).id)
        return self

    def every(
        self,
        timing: Timing | Seconds,
        payload: P | None = None,
        options: EnqueueOptions | Mapping[str, Any] | None = None,
        /,
        *,
        name: str | None = None,
        **more: Unpack[EnqueueOptions],
    ) -> Self:
        """Adds a task again and again: every so many seconds, or at the times of `cron(...)`. The schedule is kept in
        the queue under `name`, that of the type unless given; said again it is changed, if it differs."""
        call = self._queue.call(self.type, payload, self._model, options, more)
        run_sync(self._queue.schedule_async(self.type, timing, call, name))
        return self

    async def every_async(
        self,
        timing: Timing | Seconds,
        payload: P | None = None,
        options: EnqueueOptions | Mapping[str, Any] | None = None,
        /,
        *,
        name: str | None = None,
        **more: Unpack[EnqueueOptions],
    ) -> Self:
        call = self._queue.call(self.type, payload, self._model, options, more)
        await self._queue.schedule_async(self.type, timing, call, name)
        return self

    def then(
        self,
        type_name: str,
        payload: Any,
        options: EnqueueOptions | Mapping[str, Any] | None = None,
        /,
        **more: Unpack[EnqueueOptions],
    ) -> TypeContext[Any]:
        """Adds a task of another type that waits for all that this chain has added. The chain goes on with it."""
        following, call = self._following(type_name, payload, options, more)
        following.ids.append(submit_sync(self._queue.engine, call).id)
        return following

    async def then_async(
        self,
        type_name: str,
        payload: Any,
        options: EnqueueOptions | Mapping[str, Any] | None = None,
        /,
        **more: Unpack[EnqueueOptions],
    ) -> TypeContext[Any]:
        following, call = self._following(type_name, payload, options, more)
        following.ids.append((await self._queue.engine.submit(call)).id)
        return following

    def _following(
        self, type_name: str, payload: Any, *options: Mapping[str, Any] | None
    ) -> tuple[TypeContext[Any], Call]:
        if not self.ids:
            raise InvalidOption("then: nothing was added that it could wait for", field="after")
        given = [each["after"] for each in options if each is not None and each.get("after") is not None]
        own = [task for each in given for task in check_awaited(each, "after")]
        following = TypeContext[Any](self._queue, type_name)
        return following, self._queue.call(type_name, payload, None, *options, {"after": [*self.ids, *own]})

    def set_worker(self, handler: Callable[[P], Any] | Callable[[], Any]) -> Self:
        """Tasks of this type are run by `handler(payload)`, `def` or `async def`, in this process."""
        self._queue.register_handler(self.type, handler, self._payload_type)
        return self

    def set_worker_count(self, count: int) -> Self:
        """How many run at once in this process; 1 unless set."""
        self._queue.set_worker_count(self.type, count)
        return self

    def set_rate_limit(self, tasks_per_second: float | None) -> Self:
        """How many the whole fleet starts a second, unless an operator says otherwise. None: as many as it can."""
        self._queue.set_rate_limit(self.type, tasks_per_second)
        return self

    def set_timeout(self, seconds: WholeSeconds | None) -> Self:
        """How long a task may run, for those added from now on. None: as the configuration says."""
        self._queue.set_timeout(self.type, seconds)
        return self

    setWorker = set_worker  # noqa: N815
    setWorkerCount = set_worker_count  # noqa: N815
    setRateLimit = set_rate_limit  # noqa: N815
    setTimeout = set_timeout  # noqa: N815


class FluentQueue:
    """What `tq` is: the process's one TaskQueue, made by `init` or, on the library's queue, by the first use. A test
    with a queue of its own has a TaskQueue of its own, too."""

    def __init__(self) -> None:
        self._queues: dict[Engine | None, TaskQueue] = {}
        """By the test's queue; None: outside of tests."""
        self._stopped: set[TaskQueue] = set()
        self._lock = threading.Lock()

    def init(
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
        """Sets the queue, with the arguments of TaskQueue: before the first use, or after `stop`."""
        if database_url is not None:
            check_held(Config(database_url=database_url))
        held = held_engine()
        with self._lock:
            earlier = self._queues.get(held)
            if earlier is not None and (earlier not in self._stopped or earlier.is_running()):
                used = earlier.engine.config.shown_url
                raise InvalidConfig(f"tq is in use on {used}: call tq.init first of all, or tq.stop before it")
            self._queues[held] = TaskQueue(
                database_url, poll_interval, batch_size, enable_worker, task_timeout, engine=engine, **camel
            )
            self._stopped.clear()

    @property
    def queue(self) -> TaskQueue:
        """The TaskQueue behind it."""
        held = held_engine()
        with self._lock:
            found = self._queues.get(held)
            if found is None:
                found = self._queues[held] = TaskQueue()
            return found

    def leave(self, test: Engine) -> None:
        """Ends what was made for a test."""
        with self._lock:
            made = self._queues.pop(test, None)
        if made is not None:
            made.stop()
            self._stopped.discard(made)

    @overload
    def __call__(self, type_name: str, /) -> TypeContext[Any]: ...
    @overload
    def __call__(self, type_name: str, payload_type: type[P], /) -> TypeContext[P]: ...
    def __call__(self, type_name: str, payload_type: Any = Any, /) -> TypeContext[Any]:
        return TypeContext(self.queue, type_name, payload_type)

    def pause(self) -> None:
        """No worker of the whole fleet starts tasks until `resume`."""
        self.queue.pause()

    def resume(self) -> None:
        self.queue.resume()

    def stats(self) -> QueueStats:
        return self.queue.stats()

    def stop(self) -> None:
        """Lets what runs finish, gives back the rest. Tasks can still be added."""
        queue = self.queue
        queue.stop()
        self._stopped.add(queue)

    async def stop_async(self) -> None:
        queue = self.queue
        await queue.stop_async()
        self._stopped.add(queue)


tq = FluentQueue()
