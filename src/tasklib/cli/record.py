"""A task as programs read it (its columns, by their names) and as one row of a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tasklib.cli.output import STATE_STYLES, Column, plain, styled
from tasklib.cli.times import absolute, relative, span
from tasklib.core.outputs import masked_place
from tasklib.core.redact import mask_text
from tasklib.core.task import Task, TaskState, last_line
from tasklib.engine.linked import Linked

if TYPE_CHECKING:
    from rich.text import Text

Redact = Callable[[Any], Any]

_USERS_OWN = ("args", "kwargs", "result", "tags", "history", "after")
"""Fields that hold what people put in: values under keys like `password` are masked."""


def record(task: Task, redact: Redact) -> dict[str, Any]:
    values = {field.name: getattr(task, field.name) for field in fields(task)}
    for name in _USERS_OWN:
        values[name] = redact(values[name])
    if isinstance(values["after"], dict) and isinstance(values["after"].get("inputs"), dict):
        values["after"]["inputs"] = {masked_place(path): each for path, each in values["after"]["inputs"].items()}
    return {**values, "attempts": task.attempts, "max_attempts": task.max_attempts}


def links(linked: Linked) -> dict[str, Any]:
    """What it waits for and what waits for it, as far as is shown."""
    return {
        name: {
            "total": each.total,
            "unfinished": each.unfinished,
            "tasks": [{"id": one.id, "name": one.name, "state": one.state} for one in each.tasks],
        }
        for name, each in (("parents", linked.parents), ("feeds", linked.feeds))
    }


def state_word(task: Task) -> str:
    """`waiting` is a failed task with a retry to come."""
    return "waiting" if task.waiting else task.state


def state_text(task: Task) -> Text:
    word = state_word(task)
    return styled(word, STATE_STYLES.get(word, "reverse"))


def attempts(task: Task) -> str:
    return f"{task.attempts}/{task.max_attempts or '∞'}"


def remark(task: Task, now: datetime) -> str:
    """The one thing worth knowing of a task at a glance."""
    if task.state == TaskState.RUNNING:
        asked = "asked to stop, " if task.cancel_requested_at else ""
        return f"{asked}on {task.worker_id}"
    if task.waiting:
        return f"retry {_due(task, now)}: {last_line(task.error or '')}"
    if task.state == TaskState.PENDING and task.waits > 0:
        return f"waits for {task.waits} {'task' if task.waits == 1 else 'tasks'}"
    if task.state == TaskState.PENDING and task.due_at > now:
        return f"due {_due(task, now)}"
    return last_line(task.error or "")


def _due(task: Task, now: datetime) -> str:
    seconds = (task.due_at - now).total_seconds()
    return f"in {span(seconds)}" if seconds > 0 else "now"


COLUMNS = (
    Column("ID", whole=True),
    Column("NAME"),
    Column("STATE", whole=True),
    Column("TRIES", right=True),
    Column("PRIO", right=True, optional=True),
    Column("CREATED", optional=True),
    Column("AGE", whole=True),
    Column("REMARK"),
)


CSV_COLUMNS = (
    "id",
    "name",
    "state",
    "attempts",
    "max_attempts",
    "priority",
    "created_at",
    "started_at",
    "completed_at",
    "run_ms",
    "idempotency_key",
    "tags",
    "error",
    "kwargs",
    "result",
)


def csv_row(task: Task, redact: Redact) -> list[str | int | None]:
    """Masked as JSON is; of an error its last line."""
    values = {**plain(record(task, redact)), "error": mask_text(last_line(task.error or ""))}
    return [
        value if value is None or isinstance(value, int | str) else json.dumps(value, ensure_ascii=False)
        for value in map(values.get, CSV_COLUMNS)
    ]


def row(task: Task, now: datetime) -> list[str | Text]:
    return [
        str(task.id),
        task.name,
        state_text(task),
        attempts(task),
        str(task.priority),
        absolute(task.created_at),
        relative(task.created_at, now),
        remark(task, now),
    ]
