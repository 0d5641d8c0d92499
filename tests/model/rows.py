"""A record in the form in which the model has it: times by the model's clock, all else as it is."""

from dataclasses import fields
from datetime import datetime
from typing import Any, TypeAlias

from tasklib.core.task import Task
from tests.model.benches import Bench

Row: TypeAlias = dict[str, Any]

_IGNORED = {
    *("args", "kwargs", "tags", "timeout_seconds", "retry_policy", "trace", "run_ms"),
    *("unique_key", "unique_until"),
    "fed",
}
"""What is passed through untouched; the suite for stores looks at these."""


def row_of(task: Task, bench: Bench) -> Row:
    row = {field.name: getattr(task, field.name) for field in fields(task) if field.name not in _IGNORED}
    for name, value in row.items():
        if isinstance(value, datetime):
            row[name] = bench.time(value)
    row["history"] = [_entry(entry, bench) for entry in task.history]
    return row


def _entry(entry: dict[str, Any], bench: Bench) -> Row:
    times = {name: bench.time(datetime.fromisoformat(entry[name])) for name in ("started", "ended")}
    return {**entry, **times}
