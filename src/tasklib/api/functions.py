"""The functions of the library, on the default queue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ParamSpec, TypeVar, Unpack
from uuid import UUID

from pydantic import BaseModel

from tasklib.api.decorator import TaskFunction, call_of, ids_of, submit_many_blocking, submit_sync
from tasklib.api.sync import run_sync
from tasklib.api.waiting import wait_for_task
from tasklib.core.checks import check_whole
from tasklib.core.durations import Seconds, WholeSeconds
from tasklib.core.errors import InvalidInput, InvalidOption
from tasklib.core.flows import On
from tasklib.core.ids import as_task_id
from tasklib.core.options import RESERVED, SubmitOptions, check_options, check_tags
from tasklib.core.outputs import Awaited
from tasklib.core.registry import TaskOptions, TaskType, default_registry
from tasklib.core.task import Task, TaskState
from tasklib.core.unique import Unique
from tasklib.engine.default import default_engine
from tasklib.engine.submission import Call
from tasklib.stores.values import Filter

P = ParamSpec("P")
R = TypeVar("R")
AnyTask = TaskFunction[..., Any, Any] | Callable[..., Any]

LIST_LIMIT = 10_000


def _signature(
    func: AnyTask,
    /,
    *,
    delay_seconds: Seconds | None = None,
    run_at: datetime | None = None,
    max_retries: int | None = None,
    timeout_seconds: WholeSeconds | None = None,
    priority: int | None = None,
    tags: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    unique: Unique | None = None,
    after: Iterable[Awaited] | None = None,
    on: On | None = None,
    before: Iterable[Awaited] | None = None,
    connection: object | None = None,
    **kwargs: Any,
) -> None:
    """What `submit_task` and its twin take: SubmitOptions, name by name, as type checkers have no way yet to say "these
    and any others" of a TypedDict."""


def _called_as(signature: Callable[P, None]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """For callers, type checkers and `inspect` the function has this signature."""

    def declare(function: Callable[..., R]) -> Callable[P, R]:
        function.__signature__ = inspect.signature(signature)  # type: ignore[attr-defined]
        return function

    return declare


@_called_as(_signature)
async def submit_task(func: AnyTask, /, *, connection: object | None = None, **given: Any) -> UUID:
    """Queues a call of `func` with `kwargs`, and returns its id once it is committed.

    Options and arguments share one call here, so a type checker cannot see a wrong argument (it is refused when called,
    with TaskValidationError). `func.submit(...)` is checked in the editor too.
    """
    return (await default_engine().submit(_call_in(func, given), connection=connection)).id


@_called_as(_signature)
def submit_task_sync(func: AnyTask, /, *, connection: object | None = None, **given: Any) -> UUID:
    """`submit_task` for code without an event loop."""
    return submit_sync(default_engine(), _call_in(func, given), connection).id


async def submit_many(
    func: AnyTask,
    calls: Iterable[Mapping[str, Any]],
    /,
    *,
    connection: object | None = None,
    **options: Unpack[SubmitOptions],
) -> list[UUID]:
    """Queues thousands of calls at once, all or none; each call is a mapping of keyword arguments. The options hold for
    all of them."""
    call = call_of(type_of(func), None, check_options(options))
    return ids_of(await default_engine().submit_many(call, calls, connection=connection))


def submit_many_sync(
    func: AnyTask,
    calls: Iterable[Mapping[str, Any]],
    /,
    *,
    connection: object | None = None,
    **options: Unpack[SubmitOptions],
) -> list[UUID]:
    call = call_of(type_of(func), None, check_options(options))
    return ids_of(submit_many_blocking(default_engine(), call, calls, connection))


def _call_in(func: AnyTask, given: dict[str, Any]) -> Call:
    """Tells options and arguments apart: no task has a parameter that is called like an option."""
    options = {name: given.pop(name) for name in RESERVED.intersection(given)}
    return call_of(type_of(func), given, check_options(options))


def type_of(func: AnyTask) -> TaskType:
    """The task type behind a decorated function, or behind the plain function it was made of."""
    if isinstance(func, TaskFunction):
        return func.task_type
    for task_type in default_registry:
        if task_type.function is func:
            return task_type
    label = getattr(func, "__name__", repr(func))
    raise InvalidInput(f"{label!r:.80} is not a task; decorate it with @task", field="func")


async def get_task_async(task_id: UUID | str) -> Task | None:
    return await default_engine().get(as_task_id(task_id))


def get_task(task_id: UUID | str) -> Task | None:
    """The task, or None. May be called from inside a running event loop."""
    return run_sync(get_task_async(task_id))


async def list_tasks_async(
    state: str | None = None, name: str | None = None, limit: int = 100, tags: Mapping[str, Any] | None = None
) -> list[Task]:
    check_whole("limit", limit, 1, LIST_LIMIT)
    if state is not None and state not in set(TaskState):
        raise InvalidOption(f"state must be one of {', '.join(TaskState)}, got {state!r:.60}", field="state")
    if tags is not None:
        check_tags(tags)
    where = Filter(
        states=None if state is None else [state],
        names=None if name is None else [name],
        tags=None if tags is None else dict(tags),
    )
    return (await default_engine().page(where, limit=limit)).tasks


def list_tasks(
    state: str | None = None, name: str | None = None, limit: int = 100, tags: Mapping[str, Any] | None = None
) -> list[Task]:
    """The newest tasks that match."""
    return run_sync(list_tasks_async(state, name, limit, tags))


async def wait_for_async(task_id: UUID | str, timeout: Seconds | None = None) -> Task:
    return await wait_for_task(default_engine(), as_task_id(task_id), timeout)


def wait_for(task_id: UUID | str, timeout: Seconds | None = None) -> Task:
    """The task once it has finished. Raises WaitTimeout."""
    return run_sync(wait_for_async(task_id, timeout))


async def cancel_task_async(task_id: UUID | str) -> Task:
    return await default_engine().cancel(as_task_id(task_id))


def cancel_task(task_id: UUID | str) -> Task:
    """Cancels a waiting task, or asks a running one to stop."""
    return run_sync(cancel_task_async(task_id))


async def retry_task_async(task_id: UUID | str) -> Task:
    return await default_engine().retry(as_task_id(task_id))


def retry_task(task_id: UUID | str) -> Task:
    """Runs a failed task anew, with all its attempts."""
    return run_sync(retry_task_async(task_id))


async def delete_task_async(task_id: UUID | str) -> None:
    await default_engine().delete(as_task_id(task_id))


def delete_task(task_id: UUID | str) -> None:
    """Deletes a finished task."""
    run_sync(delete_task_async(task_id))


def get_registered_tasks() -> dict[str, tuple[Callable[..., Any], type[BaseModel], TaskOptions]]:
    """Name -> (function, params model, options) of every task defined so far."""
    return {kind.name: (kind.function, kind.params, kind.options) for kind in default_registry}
