"""A manager for those who bring their own workers. They submit, claim, complete, fail and retry by hand."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, TypeAlias, Unpack
from uuid import UUID

from tasklib.api.decorator import submit_sync
from tasklib.api.options import ManagerOptions, from_attempts
from tasklib.api.sync import run_sync
from tasklib.core import codec
from tasklib.core.bytes_json import pack, unpack
from tasklib.core.checks import INT32, check_delay, check_whole
from tasklib.core.claims import check_lease, check_worker_id
from tasklib.core.durations import Seconds
from tasklib.core.errors import InvalidOption, InvalidTask, InvalidValue, StoreClosed, TaskNotFound
from tasklib.core.ids import as_task_id
from tasklib.core.options import check_key, check_name
from tasklib.core.outcome import Completed, Failed, Outcome, Released
from tasklib.core.registry import default_registry
from tasklib.core.task import Task, TaskState
from tasklib.engine import claims
from tasklib.engine.config import Config
from tasklib.engine.default import default_engine, engine_of
from tasklib.engine.engine import Engine, StoreEngine
from tasklib.engine.submission import CLAIM_OPTIONS, Call
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tasklib.worker.runner import describe

NAME = "default"
"""The type of tasks that were given none."""
MOST_AT_ONCE = 1000
_PAGE = 500
_REMEMBERED = 10_000


class TaskStatus(StrEnum):
    PENDING = "pending"
    """Waiting to be claimed, for the first time or again."""
    CLAIMED = "claimed"
    COMPLETED = "completed"
    FAILED = "failed"
    """For good: one that will be tried again is pending."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedTask:
    """One task, as a manager shows it."""

    id: UUID
    name: str
    idempotency_key: str | None
    payload: Any
    """What was submitted: a JSON value, or bytes."""
    status: str
    """One of TaskStatus; of a row that somebody edited into a state nobody knows, that state."""
    attempts: int
    """How often it was claimed, repeats by the same worker aside."""
    max_attempts: int
    """0 is unlimited."""
    created_at: datetime
    claimed_at: datetime | None
    """When it was last claimed."""
    claimed_by: str | None
    """The worker that has it now."""
    claimed_until: datetime | None
    """When the claim runs out unless it is extended."""
    completed_at: datetime | None
    """When it completed, failed for good, or was cancelled."""
    result: Any
    error: str | None
    """Of the latest attempt that failed."""
    version: int
    """Grows with every claim and every outcome: what a claim is known by."""
    cancel_requested: bool
    """Somebody asked the worker to stop: what does not complete now ends cancelled."""


def managed(task: Task) -> ManagedTask:
    return ManagedTask(
        id=task.id,
        name=task.name,
        idempotency_key=task.idempotency_key,
        payload=unpack(task.kwargs),
        status=_status(task),
        attempts=task.attempts,
        max_attempts=task.max_attempts,
        created_at=task.created_at,
        claimed_at=task.started_at,
        claimed_by=task.worker_id,
        claimed_until=task.locked_until,
        completed_at=task.completed_at,
        result=None if task.result is None else unpack(task.result.get("value")),
        error=task.error,
        version=task.version,
        cancel_requested=task.cancel_requested_at is not None,
    )


_STATES: dict[TaskStatus, tuple[tuple[str, ...], bool | None]] = {
    TaskStatus.PENDING: ((TaskState.PENDING, TaskState.FAILED), False),
    TaskStatus.CLAIMED: ((TaskState.RUNNING,), None),
    TaskStatus.COMPLETED: ((TaskState.COMPLETED,), None),
    TaskStatus.FAILED: ((TaskState.FAILED,), True),
    TaskStatus.CANCELLED: ((TaskState.CANCELLED,), None),
}


def filter_of(status: TaskStatus | None, name: str | None) -> Filter:
    states, terminal = (None, None) if status is None else _STATES[status]
    return Filter(states=states, terminal=terminal, names=None if name is None else [name])


def _status(task: Task) -> str:
    if task.state == TaskState.RUNNING:
        return TaskStatus.CLAIMED
    if task.waiting:
        return TaskStatus.PENDING
    return TaskStatus(task.state) if task.state in set(TaskState) else task.state


Value: TypeAlias = Mapping[str, Any] | list[Any] | tuple[Any, ...] | str | int | float | bool | bytes | bytearray
Queue: TypeAlias = str | Config | Engine | Store
Tasks: TypeAlias = list[ManagedTask]


class AsyncTaskManager:
    """Submit, claim, complete, fail and retry by hand, on the same queue that all other APIs use.

    A claim lasts for `claim_ttl` seconds (the queue's `lock_timeout_seconds` unless given) and can be extended. Once it
    has run out, another worker's claim takes the task over, and the attempt counts as failed.
    """

    def __init__(self, queue: Queue | None = None, *, claim_ttl: Seconds | None = None) -> None:
        """`queue`: a URL, a Config, an engine or a store; none: the library's own queue."""
        self._own = isinstance(queue, (str, Config))
        self.engine = _engine(queue)
        self._ttl = self.engine.config.lock_timeout_seconds if claim_ttl is None else check_lease(claim_ttl)
        self._versions: OrderedDict[tuple[UUID, str], int] = OrderedDict()
        """Of the claims made here and not settled yet: an outcome is for that claim and no later one."""
        self._closed = False

    # -- submit -------------------------------------------------------------------------------------------------------

    async def submit(self, payload: Value, *, name: str = NAME, **options: Unpack[ManagerOptions]) -> UUID:
        """Stores a task and returns its id once it is committed; with a known key, the id of the task that has it."""
        return (await self._open().submit(_call(name, payload, options))).id

    # -- claim --------------------------------------------------------------------------------------------------------

    async def claim(self, task_id: UUID | str, worker_id: str, *, ttl: Seconds | None = None) -> ManagedTask:
        """Claims this task. Again by the worker that has it: the same claim, extended; no attempt is counted."""
        engine = self._open()
        found = await claims.claim(engine, as_task_id(task_id), check_worker_id(worker_id), self._lease(ttl))
        return self._remember(managed(found), worker_id)

    async def claim_next(
        self,
        worker_id: str,
        *,
        names: Sequence[str] = (NAME,),
        limit: int = 1,
        ttl: Seconds | None = None,
        wait_seconds: Seconds = 0.0,
    ) -> Tasks:
        """The next due tasks of these types, by priority and then first come, first served; an empty list if there are
        none, after waiting for so long."""
        engine = self._open()
        if isinstance(names, str):
            raise InvalidOption("names must be a list of names, not one text", field="names")
        found = await claims.claim_next(
            engine,
            check_worker_id(worker_id),
            [check_name(name, "names") for name in names],
            check_whole("limit", limit, 1, MOST_AT_ONCE),
            self._lease(ttl),
            wait_seconds=check_delay(wait_seconds, "wait_seconds"),
        )
        return [self._remember(managed(task), worker_id) for task in found]

    async def extend(
        self, task_id: UUID | str, *, worker_id: str, version: int | None = None, ttl: Seconds | None = None
    ) -> ManagedTask:
        """Begins the claim's time anew. The answer's `cancel_requested` tells a worker to stop."""
        engine, found = self._open(), as_task_id(task_id)
        held = self._version(found, check_worker_id(worker_id), version)
        return managed(await claims.extend(engine, found, worker_id, held, self._lease(ttl)))

    # -- settle -------------------------------------------------------------------------------------------------------

    async def complete(
        self, task_id: UUID | str, result: Value | None = None, *, worker_id: str, version: int | None = None
    ) -> None:
        config = self._open().config
        text = codec.encode(pack(result), field="result", limit=config.max_result_bytes)
        await self._settle(task_id, worker_id, version, Completed(f'{{"value":{text}}}'))

    async def fail(
        self,
        task_id: UUID | str,
        error: BaseException | str,
        *,
        worker_id: str,
        version: int | None = None,
        retryable: bool = True,
    ) -> None:
        """The attempt failed: with attempts left the task is pending again, else, or if it is not retryable, it has
        failed for good."""
        await self._settle(task_id, worker_id, version, Failed(_error_text(error), final=not retryable))

    async def release(self, task_id: UUID | str, *, worker_id: str, version: int | None = None) -> None:
        """Gives the task back unfinished; the attempt is not counted."""
        await self._settle(task_id, worker_id, version, Released())

    async def retry(self, task_id: UUID | str) -> ManagedTask:
        """A failed or claimed task is pending again, due now, with the attempts it has had."""
        return managed(await claims.retry(self._open(), as_task_id(task_id)))

    # -- look ---------------------------------------------------------------------------------------------------------

    async def get(self, task_id: UUID | str) -> ManagedTask:
        return managed(await self._open().get_or_raise(as_task_id(task_id)))

    async def get_by_idempotency_key(self, key: str) -> ManagedTask:
        found = await self._open().get_by_key(check_key(key))
        if found is None:
            raise TaskNotFound(key=key)
        return managed(found)

    async def list(
        self, status: TaskStatus | str | None = None, *, name: str | None = None, limit: int | None = None
    ) -> Tasks:
        """All tasks with this status, oldest first, those of other APIs too."""
        engine = self._open()
        if status is not None and status not in set(TaskStatus):
            raise InvalidOption(f"status must be one of {', '.join(TaskStatus)}, got {status!r:.60}", field="status")
        left = INT32 if limit is None else check_whole("limit", limit, 1, INT32)
        where = filter_of(None if status is None else TaskStatus(status), name)
        found: Tasks = []
        cursor: UUID | None = None
        while left > 0:
            page = await engine.page(where, limit=min(left, _PAGE), cursor=cursor, oldest_first=True)
            found += map(managed, page.tasks)
            left -= len(page.tasks)
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def delete(self, task_id: UUID | str) -> None:
        """Deletes a task that is over; its idempotency key is free again."""
        await self._open().delete(as_task_id(task_id))

    # -- life ---------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Every later call raises StoreClosed. An engine or a store that the manager was given stays open."""
        self._closed = True
        if self._own:
            await self.engine.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _open(self) -> Engine:
        if self._closed:
            raise StoreClosed("this manager was closed")
        return self.engine

    def _lease(self, ttl: Seconds | None) -> float:
        return self._ttl if ttl is None else check_lease(ttl, "ttl")

    def _remember(self, task: ManagedTask, worker_id: str) -> ManagedTask:
        self._versions[task.id, worker_id] = task.version
        if len(self._versions) > _REMEMBERED:
            self._versions.popitem(last=False)  # from then on it is known by the worker's name alone
        return task

    def _version(self, task_id: UUID, worker_id: str, given: int | None) -> int | None:
        """The claim that is meant: the given one, or the one that was made here. None: whichever is this worker's."""
        return self._versions.get((task_id, worker_id)) if given is None else check_whole("version", given, 0, INT32)

    async def _settle(self, task_id: UUID | str, worker_id: str, version: int | None, outcome: Outcome) -> None:
        engine, found = self._open(), as_task_id(task_id)
        held = self._version(found, check_worker_id(worker_id), version)
        await claims.settle(engine, found, worker_id, held, outcome)
        self._versions.pop((found, worker_id), None)


class TaskManager:
    """`AsyncTaskManager` for code without an event loop: the same verbs, which block."""

    def __init__(self, queue: Queue | None = None, *, claim_ttl: Seconds | None = None) -> None:
        """`queue`: a URL, a Config, an engine or a store; none: the library's own queue."""
        self._async = AsyncTaskManager(queue, claim_ttl=claim_ttl)

    @property
    def engine(self) -> Engine:
        return self._async.engine

    def submit(self, payload: Value, *, name: str = NAME, **options: Unpack[ManagerOptions]) -> UUID:
        """Stores a task and returns its id once it is committed; with a known key, the id of the task that has it."""
        return submit_sync(self._async._open(), _call(name, payload, options)).id

    def claim(self, task_id: UUID | str, worker_id: str, *, ttl: Seconds | None = None) -> ManagedTask:
        """Claims this task. Again by the worker that has it: the same claim, extended; no attempt is counted."""
        return run_sync(self._async.claim(task_id, worker_id, ttl=ttl))

    def claim_next(
        self,
        worker_id: str,
        *,
        names: Sequence[str] = (NAME,),
        limit: int = 1,
        ttl: Seconds | None = None,
        wait_seconds: Seconds = 0.0,
    ) -> Tasks:
        """The next due tasks of these types, by priority and then first come, first served; an empty list if there are
        none, after waiting for so long."""
        return run_sync(self._async.claim_next(worker_id, names=names, limit=limit, ttl=ttl, wait_seconds=wait_seconds))

    def extend(
        self, task_id: UUID | str, *, worker_id: str, version: int | None = None, ttl: Seconds | None = None
    ) -> ManagedTask:
        """Begins the claim's time anew. The answer's `cancel_requested` tells a worker to stop."""
        return run_sync(self._async.extend(task_id, worker_id=worker_id, version=version, ttl=ttl))

    def complete(
        self, task_id: UUID | str, result: Value | None = None, *, worker_id: str, version: int | None = None
    ) -> None:
        run_sync(self._async.complete(task_id, result, worker_id=worker_id, version=version))

    def fail(
        self,
        task_id: UUID | str,
        error: BaseException | str,
        *,
        worker_id: str,
        version: int | None = None,
        retryable: bool = True,
    ) -> None:
        """The attempt failed: with attempts left the task is pending again, else, or if it is not retryable, it has
        failed for good."""
        run_sync(self._async.fail(task_id, error, worker_id=worker_id, version=version, retryable=retryable))

    def release(self, task_id: UUID | str, *, worker_id: str, version: int | None = None) -> None:
        """Gives the task back unfinished; the attempt is not counted."""
        run_sync(self._async.release(task_id, worker_id=worker_id, version=version))

    def retry(self, task_id: UUID | str) -> ManagedTask:
        """A failed or claimed task is pending again, due now, with the attempts it has had."""
        return run_sync(self._async.retry(task_id))

    def get(self, task_id: UUID | str) -> ManagedTask:
        return run_sync(self._async.get(task_id))

    def get_by_idempotency_key(self, key: str) -> ManagedTask:
        return run_sync(self._async.get_by_idempotency_key(key))

    def list(
        self, status: TaskStatus | str | None = None, *, name: str | None = None, limit: int | None = None
    ) -> Tasks:
        """All tasks with this status, oldest first, those of other APIs too."""
        return run_sync(self._async.list(status, name=name, limit=limit))

    def delete(self, task_id: UUID | str) -> None:
        """Deletes a task that is over; its idempotency key is free again."""
        run_sync(self._async.delete(task_id))

    def close(self) -> None:
        """Every later call raises StoreClosed. An engine or a store that the manager was given stays open."""
        run_sync(self._async.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _engine(queue: Queue | None) -> Engine:
    if queue is None:
        return default_engine()
    if isinstance(queue, Engine):
        return queue
    if isinstance(queue, Config):
        return engine_of(queue)
    if isinstance(queue, str):
        return Engine(Config(database_url=queue))
    if not hasattr(queue, "insert"):
        raise InvalidOption(f"queue must be a URL, a Config, an engine or a store, got {queue!r:.60}", field="queue")
    return StoreEngine(queue, Config())


def _call(name: str, payload: Value, options: ManagerOptions) -> Call:
    chosen = from_attempts(options, ManagerOptions.__optional_keys__)
    if payload is None:
        raise InvalidTask("payload: a task needs one; b'', '', {}, 0 and False are payloads", field="payload")
    known = default_registry.get(check_name(name))
    return Call(name, pack(payload), chosen, known, unknown=CLAIM_OPTIONS)


def _error_text(error: object) -> str:
    if isinstance(error, BaseException):
        return describe(error)
    if isinstance(error, str):
        return codec.clip_error(error)
    raise InvalidValue(f"error: must be an exception or text, got {error!r:.60}", field="error")
