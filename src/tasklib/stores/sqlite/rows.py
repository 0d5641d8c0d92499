"""Rows and values: how times, ids and JSON are written in SQLite, and how they are read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tasklib.core.task import Claim, NewTask, Task

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(value: float) -> str:
    """A duration as one of SQLite's time modifiers."""
    return f"{value:+.3f} seconds"


def seconds_or_none(value: float | None) -> str | None:
    return None if value is None else f"{value:+.3f} seconds"


def instant(text: str) -> datetime:
    """A time as the tables have it. A column that is not checked may have been edited into another form."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return _EPOCH
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def instant_or_none(text: str | None) -> datetime | None:
    return None if text is None else instant(text)


def written(value: datetime) -> str:
    value = value.astimezone(UTC)
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z".rjust(24, "0")


def written_or_none(value: datetime | None) -> str | None:
    return None if value is None else written(value)


def seconds_between(earlier: str, later: str) -> float:
    return (instant(later) - instant(earlier)) / timedelta(seconds=1)


def new_row(task: NewTask) -> tuple[Any, ...]:
    """The parameters of one inserted task, in the order of the statement `insert`."""
    return (
        str(task.id),
        task.name,
        task.kwargs,
        task.max_retries,
        seconds_or_none(task.delay_seconds),
        written_or_none(task.run_at),
        task.timeout_seconds,
        task.priority,
        task.tags,
        task.idempotency_key,
        task.retry_policy,
        task.trace,
    )


def read_claim(row: Sequence[Any]) -> Claim:
    """From `claim_columns`."""
    return Claim._make((UUID(row[0]), *row[1:9], instant(row[9]), row[10], row[11], bool(row[12]), bool(row[13])))


def read_task(row: Sequence[Any]) -> Task:
    """From `task_columns`."""
    return Task(
        id=UUID(row[0]),
        name=row[1],
        state=row[2],
        scheduled_at=instant(row[3]),
        created_at=instant(row[4]),
        updated_at=instant(row[5]),
        started_at=instant_or_none(row[6]),
        completed_at=instant_or_none(row[7]),
        next_retry_at=instant_or_none(row[8]),
        args=_mapping(row[9]) or {},
        kwargs=_value(row[10]),
        result=_mapping(row[11]),
        error=row[12],
        retry_count=row[13],
        max_retries=row[14],
        worker_id=row[15],
        locked_until=instant_or_none(row[16]),
        timeout_seconds=row[17],
        priority=row[18],
        tags=_mapping(row[19]) or {},
        cancel_requested_at=instant_or_none(row[20]),
        version=row[21],
        idempotency_key=row[22],
        retry_policy=_mapping(row[23]),
        history=_entries(row[24]),
        trace=row[25],
    )


def _value(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # edited by hand into what Python does not read: shown as it is
        return text


def _mapping(text: str | None) -> dict[str, Any] | None:
    value = _value(text)
    if value is None or isinstance(value, dict):
        return value
    return {"value": value}


def _entries(text: str) -> list[dict[str, Any]]:
    value = _value(text)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
