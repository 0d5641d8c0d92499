"""`@task` with what tasklib can do for a task, beside what `django.tasks` can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasklib.contrib.django.compat import DEFAULT_ALIAS, DEFAULT_PRIORITY, DEFAULT_QUEUE, Task, task_backends
from tasklib.core.cron import Timing
from tasklib.core.durations import WholeSeconds, in_seconds
from tasklib.core.registry import Executor
from tasklib.core.retry import Exceptions, RetryPolicy
from tasklib.core.unique import Unique


@dataclass(frozen=True, slots=True, kw_only=True)
class TasklibTask(Task):
    """What `django.tasks.task` makes where the backend is tasklib's."""

    max_retries: int | None = None
    """After the first attempt; -1 is unlimited. None: what OPTIONS says, or 0."""
    timeout_seconds: int | None = None
    retry: RetryPolicy | None = None
    retry_for: Exceptions | None = field(default=None, hash=False)
    """Only after these exceptions is it tried again. None: after all."""
    no_retry_for: Exceptions | None = field(default=None, hash=False)
    """After these it is not, whatever `retry_for` says."""
    tags: Mapping[str, Any] | None = field(default=None, hash=False)
    executor: Executor | None = None
    schedule: Timing | None = None
    unique: Unique | Callable[[Any], str | Unique | None] | None = None
    """A function is given the arguments, as `.args` and `.kwargs`."""


def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    priority: int = DEFAULT_PRIORITY,
    queue_name: str = DEFAULT_QUEUE,
    backend: str = DEFAULT_ALIAS,
    takes_context: bool = False,
    max_retries: int | None = None,
    timeout_seconds: WholeSeconds | None = None,
    retry: RetryPolicy | None = None,
    retry_for: Exceptions | None = None,
    no_retry_for: Exceptions | None = None,
    tags: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    schedule: Timing | None = None,
    unique: Unique | Callable[[Any], str | Unique | None] | None = None,
) -> Any:
    """`@task`, or `@task(max_retries=5, timeout_seconds=30)`: a task of `django.tasks`, for `.enqueue(...)`. Where
    another backend is configured, as in tests, it is that one's, without what only tasklib knows."""

    def decorate(function: Callable[..., Any]) -> Any:
        kind = task_backends[backend].task_class
        own = {
            "max_retries": max_retries,
            "timeout_seconds": in_seconds(timeout_seconds),
            "retry": retry,
            "retry_for": retry_for,
            "no_retry_for": no_retry_for,
            "tags": tags,
            "executor": executor,
            "schedule": schedule,
            "unique": unique,
        }
        return kind(
            func=function,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            **(own if issubclass(kind, TasklibTask) else {}),
        )

    return decorate if function is None else decorate(function)
