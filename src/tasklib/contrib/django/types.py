"""A task of Django's as a task type of tasklib's.

Its name is the path of its function. Arguments are kept as Django takes them, positional ones apart from the others,
and are not changed by annotations. A queue is a property of a type in tasklib, of a task in Django: so a task that is
sent to another queue than its own is of a type of that name, `shop.tasks.send@urgent`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from django.utils.module_loading import import_string
from pydantic import BaseModel, ConfigDict

from tasklib.contrib.django.compat import InvalidTask, Task, TaskContext, normalize_json
from tasklib.core.errors import TaskLibError, TaskValidationError
from tasklib.core.registry import TaskOptions, TaskType, default_registry, define_handler
from tasklib.core.retry import check_exceptions

EXCEPTIONS = ("retry_for", "no_retry_for")
OWN_OPTIONS = ("max_retries", "timeout_seconds", "retry", *EXCEPTIONS, "tags", "executor", "schedule", "unique")
"""What `tasklib.contrib.django.task` takes beside what Django's own takes."""

_tasks: dict[str, Any] = {}
"""Path -> the task as it was defined."""
running: ContextVar[Any] = ContextVar("tasklib_django_running")
"""The result of the task that this code runs in."""


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    args: list[Any] = []
    kwargs: dict[str, Any] = {}


def known_tasks() -> Iterator[Any]:
    return iter(tuple(_tasks.values()))


def name_of(task: Any) -> str:
    """The type that a task is stored under."""
    path: str = task.module_path
    declared = _tasks.get(path, task)
    return path if task.queue_name == declared.queue_name else f"{path}@{task.queue_name}"


def register(task: Any, queues: Iterable[str], max_retries: int) -> None:
    """Makes it known to workers, in its own queue and in those that it may be sent to. Raises InvalidTask."""
    path = task.module_path
    known = _tasks.get(path, task)
    changed = known.func is not task.func
    if changed or path not in _tasks:
        default_registry.replace(_type_of(task, path, _options(task, max_retries)))
        _tasks[path] = known = task
    others = {*queues} - {known.queue_name}
    if task.queue_name != known.queue_name and task.queue_name not in others:
        raise InvalidTask(f"Queue '{task.queue_name}' is not valid for backend: QUEUES does not name it.")
    for queue in others:
        name = f"{path}@{queue}"
        found = default_registry.get(name)
        if found is None or changed:
            elsewhere = replace(_options(known, max_retries), queue=queue, schedule=None)
            default_registry.replace(_type_of(known, name, elsewhere))


def is_registered(name: str) -> bool:
    return name.partition("@")[0] in _tasks


def find_task(name: str) -> tuple[Any, str]:
    """The task of a stored type and the queue it is in. Raises LookupError for what is not a task of Django's."""
    path, _, queue = name.partition("@")
    found = _tasks.get(path)
    if found is None:
        if default_registry.get(name) is not None:
            raise LookupError(f"{name} is not a task of Django's")
        try:
            found = import_string(path)
        except ImportError as error:
            raise LookupError(f"{path} cannot be imported: {error}") from error
        if not isinstance(found, Task):
            raise LookupError(f"{path} is not a task")
    return found, queue or found.queue_name


def check_arguments(task: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Arguments:
    """As they are stored. Raises TypeError for what is no JSON, and for what the function does not take."""
    found = Arguments(args=normalize_json(args), kwargs=normalize_json(kwargs))
    try:
        inspect.signature(task.func).bind(*([None] if task.takes_context else []), *found.args, **found.kwargs)
    except TypeError as error:
        raise TaskValidationError(f"{task.module_path}: {error}", errors=[]) from None
    return found


def _options(task: Any, max_retries: int) -> TaskOptions:
    given = {name: getattr(task, name, None) for name in OWN_OPTIONS}
    own = {name: value for name, value in given.items() if value is not None}
    try:
        own |= {name: check_exceptions(own[name], name) for name in EXCEPTIONS if name in own}
        return TaskOptions(**{"max_retries": max_retries, **own}, priority=task.priority, queue=task.queue_name)
    except TaskLibError as error:
        raise InvalidTask(f"{task.module_path}: {error}") from error


def _type_of(task: Any, name: str, options: TaskOptions) -> TaskType:
    try:
        found = define_handler(name, _handler(task), Arguments, options)
        if options.schedule is not None:
            check_arguments(task, [], {})
    except TaskLibError as error:
        raise InvalidTask(f"{task.module_path}: {error}") from error
    return found


def _handler(task: Any) -> Callable[..., Any]:
    """Calls the function as Django does: with its context, if it takes one, and with a result that is JSON."""
    function = task.func

    def positional(arguments: Any) -> list[Any]:
        return [TaskContext(task_result=running.get()), *arguments.args] if task.takes_context else arguments.args

    if inspect.iscoroutinefunction(function):

        async def run_async(arguments: Any) -> Any:
            return normalize_json(await function(*positional(arguments), **arguments.kwargs))

        handler: Any = run_async
    else:

        def run(arguments: Any) -> Any:
            return normalize_json(function(*positional(arguments), **arguments.kwargs))

        handler = run
    # Not by functools.wraps, which would give it the function's signature, too.
    handler.__name__, handler.__qualname__ = function.__name__, function.__qualname__
    handler.__module__, handler.__doc__ = function.__module__, function.__doc__
    return handler
