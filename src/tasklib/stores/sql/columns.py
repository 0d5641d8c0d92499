"""The columns, said once: names and kinds, from which select lists, batches and the reading of rows are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from tasklib.core.limits import Control
from tasklib.core.task import Task
from tasklib.stores import serving
from tasklib.stores.values import Age, AuditEntry, Held, Point, Token, WorkerInfo

T = TypeVar("T")


class Kind(Enum):
    """What a column holds. The value is its type in PostgreSQL."""

    TEXT = "text"
    INTEGER = "integer"
    BIG_INTEGER = "bigint"
    NUMBER = "double precision"
    BOOLEAN = "boolean"
    TIME = "timestamptz"
    DURATION = "interval"
    ID = "uuid"
    JSON = "jsonb"
    """Read as the value that the text means."""
    JSON_TEXT = "jsonb as text"
    """Read as the text that it is."""
    NAMES = "text[]"


class Shape(Generic[T]):
    """The rows of a query: their columns in order, and what is made of each row."""

    def __init__(self, make: Callable[..., T], columns: dict[str, Kind]) -> None:
        self.columns = columns
        self.names = tuple(columns)
        self._make = make
        self.row: Callable[[Sequence[Any]], T] = getattr(make, "_make", self._by_name)
        """Makes a value of one row. Named tuples are made by position: they come by the thousand."""

    def _by_name(self, values: Sequence[Any]) -> T:
        return self._make(**dict(zip(self.names, values, strict=True)))


def row_values(**values: Any) -> tuple[Any, ...]:
    """For rows that are nothing more."""
    return tuple(values.values())


class Batch(NamedTuple):
    """Rows that go into a statement, their values in the order of the shape."""

    shape: Shape[Any]
    rows: Sequence[Sequence[Any]]


def _task(**values: Any) -> Task:
    """A row that somebody edited may hold JSON of another kind than is written there: it is shown, not refused."""
    for name in ("args", "tags"):
        values[name] = _mapping(values[name]) or {}
    for name in ("result", "retry_policy"):
        values[name] = _mapping(values[name])
    entries = values["history"]
    values["history"] = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return Task(**values)


def _mapping(value: Any) -> dict[str, Any] | None:
    return value if value is None or isinstance(value, dict) else {"value": value}


TASK = Shape(
    _task,
    {
        "id": Kind.ID,
        "name": Kind.TEXT,
        "state": Kind.TEXT,
        "scheduled_at": Kind.TIME,
        "created_at": Kind.TIME,
        "updated_at": Kind.TIME,
        "started_at": Kind.TIME,
        "completed_at": Kind.TIME,
        "next_retry_at": Kind.TIME,
        "args": Kind.JSON,
        "kwargs": Kind.JSON,
        "result": Kind.JSON,
        "error": Kind.TEXT,
        "retry_count": Kind.INTEGER,
        "max_retries": Kind.INTEGER,
        "worker_id": Kind.TEXT,
        "locked_until": Kind.TIME,
        "timeout_seconds": Kind.INTEGER,
        "priority": Kind.INTEGER,
        "tags": Kind.JSON,
        "cancel_requested_at": Kind.TIME,
        "version": Kind.INTEGER,
        "idempotency_key": Kind.TEXT,
        "retry_policy": Kind.JSON,
        "history": Kind.JSON,
        "trace": Kind.TEXT,
    },
)

TASK_ROW = Shape(
    row_values, {name: Kind.JSON_TEXT if kind is Kind.JSON else kind for name, kind in TASK.columns.items()}
)
"""A whole record that goes in."""

ID = Shape(lambda id: id, {"id": Kind.ID})
GUARD = Shape(Held, {"id": Kind.ID, "version": Kind.INTEGER})

TOKEN = Shape(
    Token,
    {
        "id": Kind.TEXT,
        "label": Kind.TEXT,
        "role": Kind.TEXT,
        "digest": Kind.TEXT,
        "created_at": Kind.TIME,
        "revoked_at": Kind.TIME,
    },
)

AUDIT = Shape(
    AuditEntry,
    {
        "at": Kind.TIME,
        "actor": Kind.TEXT,
        "action": Kind.TEXT,
        "task_id": Kind.ID,
        "name": Kind.TEXT,
        "detail": Kind.JSON_TEXT,
    },
)

NEW_AUDIT = Shape(row_values, {name: kind for name, kind in AUDIT.columns.items() if name != "at"})
"""What goes in; the database says when."""

NOW = Shape(lambda now: now, {"now": Kind.TIME})

CONTROL = Shape(
    Control,
    {
        "name": Kind.TEXT,
        "paused": Kind.BOOLEAN,
        "operator_rate": Kind.NUMBER,
        "default_rate": Kind.NUMBER,
        "concurrency": Kind.INTEGER,
        "tokens": Kind.NUMBER,
        "refilled_at": Kind.TIME,
    },
)


class Active(NamedTuple):
    """Tasks of one name and state that are not over."""

    name: str
    state: str
    number: int
    due_at: datetime | None
    """Of the one that is due first."""


ACTIVE = Shape(Active, {"name": Kind.TEXT, "state": Kind.TEXT, "number": Kind.INTEGER, "due_at": Kind.TIME})

POINT = Shape(
    Point,
    {
        "minute": Kind.TIME,
        "name": Kind.TEXT,
        "state": Kind.TEXT,
        "bucket": Kind.INTEGER,
        "count": Kind.BIG_INTEGER,
        "run_ms": Kind.BIG_INTEGER,
    },
)

COUNTED = Shape(row_values, POINT.columns)
"""A cell of the counters, taken out or put in."""

AGE = Shape(Age, {"minute": Kind.TIME, "name": Kind.TEXT, "seconds": Kind.NUMBER})


def _worker(now: datetime, lease_now: datetime, names: Sequence[str], seen_at: datetime, **values: Any) -> WorkerInfo:
    silence = max(0.0, (lease_now - seen_at).total_seconds())
    served = serving.read(names)
    return WorkerInfo(
        names=served.names,
        queues=served.queues,
        seen_at=now - timedelta(seconds=silence),
        seconds_since_seen=silence,
        **values,
    )


WORKER = Shape(
    _worker,
    {
        "id": Kind.TEXT,
        "hostname": Kind.TEXT,
        "pid": Kind.INTEGER,
        "names": Kind.NAMES,
        "concurrency": Kind.INTEGER,
        "running": Kind.INTEGER,
        "started_at": Kind.TIME,
        "seen_at": Kind.TIME,
        "stopped_at": Kind.TIME,
        "now": Kind.TIME,
        "lease_now": Kind.TIME,
    },
)
