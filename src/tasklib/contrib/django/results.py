"""A stored task as the TaskResult that Django knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

import tasklib
from tasklib.contrib.django.compat import TaskError, TaskResult, TaskResultStatus
from tasklib.contrib.django.types import Arguments, find_task
from tasklib.core.error_group import group_of
from tasklib.core.task import Task, TaskState, is_terminal

_STATUS = {
    TaskState.PENDING: TaskResultStatus.READY,
    TaskState.RUNNING: TaskResultStatus.RUNNING,
    TaskState.COMPLETED: TaskResultStatus.SUCCESSFUL,
    TaskState.FAILED: TaskResultStatus.FAILED,
    TaskState.CANCELLED: TaskResultStatus.FAILED,
}


def new_result(task: Any, task_id: UUID, arguments: Arguments, enqueued_at: datetime | None) -> Any:
    """Of a task that was just enqueued."""
    return TaskResult(
        task=task,
        id=str(task_id),
        status=TaskResultStatus.READY,
        enqueued_at=in_zone(enqueued_at),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=arguments.args,
        kwargs=arguments.kwargs,
        backend=task.backend,
        errors=[],
        worker_ids=[],
    )


def result_of(row: Task, backend: str) -> Any:
    """Raises LookupError for what is not a task of Django's."""
    task, queue = find_task(row.name)
    given = row.kwargs if isinstance(row.kwargs, dict) else {}
    started = [_instant(entry.get("started")) for entry in row.history]
    workers = [str(entry["worker"]) for entry in row.history if entry.get("worker")]
    current = row.worker_id or (row.last_worker_id if row.state == TaskState.COMPLETED else None)
    result = TaskResult(
        task=task.using(
            priority=row.priority,
            queue_name=queue,
            backend=backend,
            run_after=in_zone(row.scheduled_at) if row.scheduled_at > row.created_at else None,
        ),
        id=str(row.id),
        status=TaskResultStatus.READY if row.waiting else _STATUS[TaskState(row.state)],
        enqueued_at=in_zone(row.created_at),
        started_at=in_zone(next((each for each in started if each is not None), row.started_at)),
        last_attempted_at=in_zone(row.started_at),
        finished_at=in_zone(row.completed_at),
        args=given.get("args", []),
        kwargs=given.get("kwargs", {}),
        backend=backend,
        errors=_errors(row),
        worker_ids=[*workers, *([current] if current else [])],
    )
    if row.result is not None:
        object.__setattr__(result, "_return_value", row.result.get("value"))
    return result


def in_zone(instant: datetime | None) -> datetime | None:
    """As the project has its times: without a zone where USE_TZ is off."""
    return instant if instant is None or settings.USE_TZ else timezone.make_naive(instant)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _errors(row: Task) -> list[Any]:
    """One for each attempt that failed; the last with the whole of its traceback."""
    found = [(entry.get("type"), str(entry.get("error", ""))) for entry in row.history]
    if row.error is not None and is_terminal(row):
        found = [*found[:-1], (found[-1][0] if found else None, row.error)]
    elif row.state == TaskState.CANCELLED and not found:
        found = [(None, "TaskCancelled: it was cancelled before it ran")]
    return [TaskError(exception_class_path=kind or _named_in(text), traceback=text) for kind, text in found]


def _named_in(error: str) -> str:
    """What no exception was raised for is told by tasklib's own."""
    name = group_of(error).type
    return f"tasklib.{name if name in _ERRORS else tasklib.TaskFailed.__name__}"


_ERRORS: Sequence[str] = [
    name for name, value in vars(tasklib).items() if isinstance(value, type) and issubclass(value, BaseException)
]
