"""`@task`: a function that is still itself, and can be submitted with its own signature."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, ParamSpec, TypeVar, Unpack, overload
from uuid import UUID

from tasklib.api.handle import TaskHandle, new_handle
from tasklib.api.schedules import AsyncScheduling, Scheduling
from tasklib.api.sync import bridge, run_sync
from tasklib.core.column_batch import ColumnBatch
from tasklib.core.cron import Timing
from tasklib.core.durations import WholeSeconds
from tasklib.core.errors import InvalidInput, InvalidOption, TaskDefinitionError, Unsupported
from tasklib.core.options import DEFAULT_QUEUE, SubmitOptions, check_options, check_timeout
from tasklib.core.registry import Executor, Registry, TaskOptions, TaskType, default_registry, define
from tasklib.core.retry import Exceptions, RetryPolicy, check_exceptions
from tasklib.core.task import NewTask
from tasklib.core.unique import Unique
from tasklib.engine import task_log
from tasklib.engine.collecting import collected
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine
from tasklib.engine.submission import NO_OPTIONS, Call, Submitted, prepare, prepare_many
from tasklib.stores.values import Inserted

P = ParamSpec("P")
C = TypeVar("C")
"""What calling the function gives: R itself, or a coroutine of it."""
R = TypeVar("R")


class Submitter(Generic[P, R]):
    """A task type with the options of a submit already said."""

    def __init__(self, task_type: TaskType, options: SubmitOptions, connection: object | None = None) -> None:
        self._task_type = task_type
        self._options = options
        self._connection = connection

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Validates and stores the call; returns once it is committed."""
        engine = default_engine()
        submitted = submit_sync(engine, self._call(self._task_type.bind(args, kwargs)), self._connection)
        return self._handle(submitted, engine)

    async def submit_async(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        engine = default_engine()
        call = self._call(self._task_type.bind(args, kwargs))
        return self._handle(await engine.submit(call, connection=self._connection), engine)

    @overload
    def submit_many(self, calls: Iterable[Mapping[str, Any]], *, handles: Literal[False] = ...) -> list[UUID]: ...
    @overload
    def submit_many(self, calls: Iterable[Mapping[str, Any]], *, handles: Literal[True]) -> list[TaskHandle[R]]: ...
    def submit_many(
        self, calls: Iterable[Mapping[str, Any]], *, handles: bool = False
    ) -> list[UUID] | list[TaskHandle[R]]:
        """Stores thousands of calls at once, each given by its keyword arguments; all or none. Gives their ids, or a
        handle for each."""
        engine = default_engine()
        inserted = submit_many_blocking(engine, self._call(), calls, self._connection)
        return [self._handle(each, engine) for each in inserted] if handles else ids_of(inserted)

    @overload
    async def submit_many_async(
        self, calls: Iterable[Mapping[str, Any]], *, handles: Literal[False] = ...
    ) -> list[UUID]: ...
    @overload
    async def submit_many_async(
        self, calls: Iterable[Mapping[str, Any]], *, handles: Literal[True]
    ) -> list[TaskHandle[R]]: ...
    async def submit_many_async(
        self, calls: Iterable[Mapping[str, Any]], *, handles: bool = False
    ) -> list[UUID] | list[TaskHandle[R]]:
        engine = default_engine()
        inserted = await engine.submit_many(self._call(), calls, connection=self._connection)
        return [self._handle(each, engine) for each in inserted] if handles else ids_of(inserted)

    def schedule(self, name: str, timing: Timing, /) -> Scheduling[P]:
        """`report.schedule("weekly", cron("0 8 * * 1"))(customer=42)` submits this call at these times, from now on.
        The schedule is kept in the queue under its name; said again it is changed, if it differs."""
        return Scheduling(self._task_type, self._without_connection(), name, timing)

    def schedule_async(self, name: str, timing: Timing, /) -> AsyncScheduling[P]:
        return AsyncScheduling(self._task_type, self._without_connection(), name, timing)

    def _without_connection(self) -> SubmitOptions:
        if self._connection is not None:
            raise InvalidOption("connection: a schedule is not part of your transaction", field="connection")
        return self._options

    def _call(self, arguments: Mapping[str, Any] | None = None) -> Call:
        return call_of(self._task_type, arguments, self._options)

    def _handle(self, inserted: Inserted | Submitted, engine: Engine) -> TaskHandle[R]:
        return new_handle(inserted, self._task_type, engine)


class TaskFunction(Submitter[P, R], Generic[P, C, R]):
    """A decorated function: call it as before, or submit it."""

    def __init__(self, function: Callable[P, C], task_type: TaskType) -> None:
        super().__init__(task_type, NO_OPTIONS)
        self._function = function
        self.task_type = task_type
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        return self._function(*args, **kwargs)

    @property
    def name(self) -> str:
        return self.task_type.name

    def options(self, *, connection: object | None = None, **options: Unpack[SubmitOptions]) -> Submitter[P, R]:
        """The same task with options for the submits that follow."""
        return Submitter(self.task_type, check_options(options), connection)

    def __repr__(self) -> str:
        return f"<task {self.name}{self.task_type.signature}>"


class _Decorator:
    """What `@task(...)` gives: types for `def` and `async def` alike."""

    def __init__(self, name: str | None, options: TaskOptions, registry: Registry) -> None:
        self._name, self._options, self._registry = name, options, registry

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> TaskFunction[P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> TaskFunction[P, R, R]: ...
    def __call__(self, function: Callable[..., Any]) -> TaskFunction[..., Any, Any]:
        return _decorate(function, self._name, self._options, self._registry, depth=3)


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> TaskFunction[P, Coroutine[Any, Any, R], R]: ...
@overload
def task(function: Callable[P, R], /) -> TaskFunction[P, R, R]: ...
@overload
def task(
    *,
    name: str | None = ...,
    max_retries: int | None = ...,
    timeout_seconds: WholeSeconds | None = ...,
    priority: int = ...,
    tags: Mapping[str, Any] | None = ...,
    retry: RetryPolicy | None = ...,
    retry_for: Exceptions | None = ...,
    no_retry_for: Exceptions | None = ...,
    executor: Executor = ...,
    queue: str = ...,
    schedule: Timing | None = ...,
    unique: Unique | Callable[[Any], str | Unique | None] | None = ...,
    registry: Registry = ...,
) -> _Decorator: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    max_retries: int | None = None,
    timeout_seconds: WholeSeconds | None = None,
    priority: int = 0,
    tags: Mapping[str, Any] | None = None,
    retry: RetryPolicy | None = None,
    retry_for: Exceptions | None = None,
    no_retry_for: Exceptions | None = None,
    executor: Executor = "auto",
    queue: str = DEFAULT_QUEUE,
    schedule: Timing | None = None,
    unique: Unique | Callable[[Any], str | Unique | None] | None = None,
    registry: Registry = default_registry,
) -> TaskFunction[..., Any, Any] | _Decorator:
    """Makes a function a task: `@task`, or `@task(max_retries=5, timeout_seconds=30)`."""
    options = TaskOptions(
        max_retries=max_retries,
        timeout_seconds=None if timeout_seconds is None else check_timeout(timeout_seconds),
        priority=priority,
        tags=tags or {},
        retry=retry,
        retry_for=None if retry_for is None else check_exceptions(retry_for, "retry_for"),
        no_retry_for=None if no_retry_for is None else check_exceptions(no_retry_for, "no_retry_for"),
        executor=executor,
        queue=queue,
        schedule=schedule,
        unique=unique,
    )
    if function is None:
        return _Decorator(name, options, registry)
    return _decorate(function, name, options, registry, depth=3)


def _decorate(
    function: Callable[..., Any], name: str | None, options: TaskOptions, registry: Registry, depth: int
) -> TaskFunction[..., Any, Any]:
    if isinstance(function, TaskFunction):
        raise TaskDefinitionError(f"{function.name} is a task already")
    task_type = define(function, name=name, options=options, depth=depth)
    if options.schedule is not None:
        _check_without_arguments(task_type)
    registry.add(task_type)
    task_log.registered(task_type.name)
    return TaskFunction(function, task_type)


def _check_without_arguments(task_type: TaskType) -> None:
    try:
        task_type.encode({})
    except InvalidInput as error:
        reason = "its times bring no arguments: give them defaults, or use .schedule(name, ...)(arguments)"
        raise TaskDefinitionError(f"schedule: {task_type.name}: {reason}: {error}", field="schedule") from None


def ids_of(inserted: Sequence[Inserted]) -> list[UUID]:
    return list(inserted.columns["id"]) if isinstance(inserted, ColumnBatch) else [each.id for each in inserted]


def call_of(task_type: TaskType, arguments: Mapping[str, Any] | None, options: SubmitOptions = NO_OPTIONS) -> Call:
    """A call as the function itself takes it."""
    return Call(task_type.name, arguments, options, task_type, is_json=False)


def submit_sync(engine: Engine, call: Call, connection: object | None = None) -> Submitted:
    """`engine.submit` for sync code."""
    prepared = engine.prepare_at_once(call)
    if prepared is None:  # looked up there, prepared in this thread: middleware is the caller's code
        prepared = prepare(call, run_sync(engine.published(call.name)), engine.config)
    [inserted] = collected(engine, [prepared.task], connection) or insert_blocking(engine, [prepared.task], connection)
    return Submitted(*inserted, prepared.validated)


def submit_many_blocking(
    engine: Engine, call: Call, arguments: Iterable[Mapping[str, Any]], connection: object | None = None
) -> Sequence[Inserted]:
    tasks = prepare_many(call, arguments, engine.config)
    kept = collected(engine, tasks, connection)
    return insert_blocking(engine, tasks, connection) if kept is None else kept


def insert_blocking(engine: Engine, tasks: Sequence[NewTask], connection: object | None) -> Sequence[Inserted]:
    if connection is None:
        loop = bridge.loop
        at_once = None if loop is None else engine.insert_here(loop, tasks)
        return run_sync(engine.insert(tasks)) if at_once is None else at_once
    inserted = engine.insert_on(connection, tasks)
    if isinstance(inserted, Awaitable):
        if inspect.iscoroutine(inserted):
            inserted.close()
        raise Unsupported(f"{type(connection).__name__} is an async connection: use the awaitable form of submit")
    return inserted
