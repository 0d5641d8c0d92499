"""The columns, said once: names and kinds, from which select lists, batches and the reading of rows are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar, cast

from tasklib.core.alerts import Alert
from tasklib.core.decide import LATENCY_BOUNDS_MS
from tasklib.core.limits import Control
from tasklib.core.published import PublishedType
from tasklib.core.task import Claim, NewTask, Task
from tasklib.core.unique import Holder
from tasklib.stores.values import (
    Age,
    AuditEntry,
    Drain,
    EndedCursor,
    Failure,
    Held,
    Point,
    Token,
    VersionStart,
    WorkerInfo,
)

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

    def __init__(self, make: Callable[..., T], columns: dict[str, Kind], computed: Mapping[str, str] = {}) -> None:
        self.columns = columns
        self.computed = computed
        """Columns that are no columns of a table, and what they are made of."""
        self.names = tuple(columns)
        self.batch_names = tuple(f"batch_{name}" for name in columns)
        """Of the parameters by which a batch goes into a statement."""
        self._make = make
        self.row: Callable[[Sequence[Any]], T] = getattr(make, "_make", self._by_name)
        if make is row_values:
            self.row = cast(Any, tuple)
        """Makes a value of one row. Named tuples are made by position: they come by the thousand."""

    def rows(self, rows: Iterable[Sequence[Any]]) -> Any:
        """What a query answers: each row by itself, unless the shape makes one value of them all."""
        return [self.row(row) for row in rows]

    def _by_name(self, values: Sequence[Any]) -> T:
        return self._make(**dict(zip(self.names, values, strict=True)))


def row_values(**values: Any) -> tuple[Any, ...]:
    """For rows that are nothing more."""
    return tuple(values.values())


class Batch(NamedTuple):
    """Rows that go into a statement, their values in the order of the shape. Those of `ColumnBatch` have most columns
    in common, which a driver may send once."""

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
        "last_worker_id": Kind.TEXT,
        "run_ms": Kind.INTEGER,
        "unique_key": Kind.TEXT,
        "unique_until": Kind.TEXT,
        "copy_of": Kind.ID,
    },
)

TASK_ROW = Shape(
    row_values, {name: Kind.JSON_TEXT if kind is Kind.JSON else kind for name, kind in TASK.columns.items()}
)
"""A whole record that goes in."""

_WHEN = {"delay_seconds": Kind.NUMBER, "run_at": Kind.TIME}
NEW_TASK = Shape(
    NewTask,
    {name: (TASK_ROW.columns | _WHEN | {"unique_rule": Kind.TEXT})[name] for name in NewTask._fields},
)
"""`unique_rule` is never set here: tasks that have one go in as a `UNIQUE_TASK`."""
UNIQUE_TASK = Shape(
    row_values,
    {
        **{name: kind for name, kind in NEW_TASK.columns.items() if name != "unique_rule"},
        "unique_key": Kind.TEXT,
        "unique_until": Kind.TEXT,
        "at_most": Kind.NUMBER,
    },
)


def new_columns(shape: Shape[Any]) -> str:
    """What a submit writes into the row as it was given."""
    return ", ".join(name for name in shape.names if name in TASK.columns)


REPLACED = ", ".join(
    f"{name} = b.{name}"
    for name in UNIQUE_TASK.names
    if name in TASK.columns and name not in ("id", "name", "idempotency_key", "unique_key")
)
"""What a task takes over from the submit that replaces it."""


HOLDER = Shape(
    Holder,
    {
        "id": Kind.ID,
        "name": Kind.TEXT,
        "unique_key": Kind.TEXT,
        "unique_until": Kind.TEXT,
        "created_at": Kind.TIME,
        "running": Kind.BOOLEAN,
        "over": Kind.BOOLEAN,
        "now": Kind.TIME,
    },
    {"running": "state = 'running'", "over": "completed_at IS NOT NULL", "now": "{now}"},
)

ROW_COUNT = Shape(int, {})
"""Not rows, but how many were written."""

ID = Shape(lambda id: id, {"id": Kind.ID})
ID_ROW = Shape(row_values, ID.columns)
ENDED = Shape(EndedCursor, {"completed_at": Kind.TIME, "id": Kind.ID})
CREATED_AT = Shape(lambda created_at: created_at, {"created_at": Kind.TIME})
KEYED = Shape(row_values, {"id": Kind.ID, "idempotency_key": Kind.TEXT})
GUARD = Shape(Held, {"id": Kind.ID, "version": Kind.INTEGER})
EXTENDED = Shape(row_values, GUARD.columns | {"cancel_requested": Kind.BOOLEAN})

CHANGE = Shape(
    row_values,
    {
        "id": Kind.ID,
        "version": Kind.INTEGER,
        "worker_id": Kind.TEXT,
        "locked_until": Kind.TIME,
        "state": Kind.TEXT,
        "retry_count": Kind.INTEGER,
        "terminal": Kind.BOOLEAN,
        "result": Kind.JSON_TEXT,
        "error": Kind.TEXT,
        "entry": Kind.JSON_TEXT,
        "leaves": Kind.TEXT,
        "run_ms": Kind.INTEGER,
        "bucket": Kind.INTEGER,
        "due_in": Kind.DURATION,
        "asked_retry_count": Kind.INTEGER,
        "asked_error": Kind.TEXT,
        "asked_entry": Kind.JSON_TEXT,
    },
)
"""A `Change` that goes in; the last three are what differs in its `if_asked`."""

COMPLETION = Shape(row_values, {name: CHANGE.columns[name] for name in ("id", "version", "result", "run_ms", "bucket")})


class Settled(NamedTuple):
    """What became of a batch of changes, and what is left to do: an engine whose statement tells and counts by itself
    leaves nothing."""

    missed: Sequence[str]
    """Ids of those whose guard did not hold. As text: not every driver reads arrays of ids."""
    claimable: Sequence[str]
    """Names of which something may be claimable."""
    finished: Sequence[str]
    """Ids of those that are over and that somebody waits for."""
    counts: Sequence[tuple[str, str, str, int, int, int]] | None
    """For the counters, in the order of `COUNTED`."""


SETTLED = Shape(Settled, {"missed": Kind.NAMES, "claimable": Kind.NAMES, "finished": Kind.NAMES, "counts": Kind.JSON})

_LAST_ATTEMPT = "(max_retries >= 0 AND retry_count >= max_retries)"
# What never failed has no history to look at. CASE, because SQLite computes both sides of an AND.
NO_PREFETCH = f"{_LAST_ATTEMPT} OR CASE WHEN retry_count > 0 THEN {{lost_latest}} ELSE false END"
ISOLATED = f"CASE WHEN retry_count > 0 THEN {{lost_latest}} AND ({_LAST_ATTEMPT} OR {{lost_before}}) ELSE false END"

CLAIM = Shape(
    Claim,
    {
        "id": Kind.ID,
        "name": Kind.TEXT,
        "version": Kind.INTEGER,
        "worker_id": Kind.TEXT,
        "kwargs": Kind.JSON_TEXT,
        "retry_count": Kind.INTEGER,
        "max_retries": Kind.INTEGER,
        "timeout_seconds": Kind.INTEGER,
        "retry_policy": Kind.JSON_TEXT,
        "started_at": Kind.TIME,
        "tags": Kind.JSON_TEXT,
        "trace": Kind.TEXT,
        "no_prefetch": Kind.BOOLEAN,
        "isolated": Kind.BOOLEAN,
        "scheduled_at": Kind.TIME,
    },
    {"no_prefetch": NO_PREFETCH, "isolated": ISOLATED},
)


class Taken(NamedTuple):
    """What the statement `claim` claimed, and what else it saw."""

    claims: list[Claim]
    due_in: float | None = None
    """Seconds to the next due time among what is not ready; 0 or less: something waits for its promotion."""
    limits_apply: bool = False
    """A pause or a limit concerns what is ready: nothing was claimed."""
    stale: bool = False
    """Rows marked ready that are not claimable, edited by hand, were met: nothing was claimed."""
    skipped: bool = False
    """Something is ready, but was locked by somebody for the moment."""
    held_back: bool = False
    """Something is ready of a name whose cap is 0."""

    @property
    def unpromoted(self) -> bool:
        return self.due_in is not None and self.due_in <= 0


class _TakenShape(Shape[Taken]):
    """Each row is a claim and what else was seen, if it was looked at; one row without a claim where there is none."""

    def rows(self, rows: Iterable[Sequence[Any]]) -> Taken:
        found = list(rows)
        width = len(CLAIM.names)
        claims = [Claim._make(row[:width]) for row in found] if found[0][0] is not None else []
        due_in, *flags = found[0][width:]
        return Taken(claims, due_in, *map(bool, flags))


TAKEN = _TakenShape(
    Taken,
    {
        **CLAIM.columns,
        "due_in": Kind.NUMBER,
        "limits_apply": Kind.BOOLEAN,
        "stale": Kind.BOOLEAN,
        "skipped": Kind.BOOLEAN,
        "held_back": Kind.BOOLEAN,
    },
)

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
        "bulk_id": Kind.ID,
        "done": Kind.BIG_INTEGER,
        "cursor": Kind.TEXT,
    },
    {"cursor": "CAST(number AS text)"},
)

NEW_AUDIT = Shape(row_values, {name: kind for name, kind in AUDIT.columns.items() if name not in ("at", "cursor")})
"""What goes in; the database says when."""

ALERT = Shape(
    Alert,
    {
        "name": Kind.TEXT,
        "state": Kind.TEXT,
        "since": Kind.TIME,
        "text": Kind.TEXT,
        "fired_at": Kind.TIME,
        "over_at": Kind.TIME,
        "told": Kind.BOOLEAN,
        "tries": Kind.INTEGER,
        "try_at": Kind.TIME,
        "version": Kind.INTEGER,
    },
)

NOW = Shape(lambda now: now, {"now": Kind.TIME})


class ControlNow(NamedTuple):
    control: Control
    now: datetime
    """By the clock that rates go by."""


def _control_now(now: datetime, **values: Any) -> ControlNow:
    return ControlNow(Control(**values), now)


TASK_TYPE = Shape(PublishedType, {"name": Kind.TEXT, "options": Kind.JSON_TEXT, "schema": Kind.JSON_TEXT})

CONTROL = Shape(
    _control_now,
    {
        "name": Kind.TEXT,
        "paused": Kind.BOOLEAN,
        "operator_rate": Kind.NUMBER,
        "default_rate": Kind.NUMBER,
        "concurrency": Kind.INTEGER,
        "tokens": Kind.NUMBER,
        "refilled_at": Kind.TIME,
        "paused_by": Kind.TEXT,
        "paused_at": Kind.TIME,
        "now": Kind.TIME,
    },
    {"now": "{lease_now}"},
)

BUCKET = Shape(row_values, {name: CONTROL.columns[name] for name in ("name", "tokens", "refilled_at")})
"""What is left of a rate."""


class Active(NamedTuple):
    """Tasks of one name and state that are not over."""

    name: str
    state: str
    number: int
    due_at: datetime | None
    """Of the one that is due first."""
    ready: bool
    """They can be claimed."""


ACTIVE = Shape(
    Active,
    {
        "name": Kind.TEXT,
        "state": Kind.TEXT,
        "number": Kind.INTEGER,
        "due_at": Kind.TIME,
        "ready": Kind.BOOLEAN,
    },
)

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

_BUCKETS = " ".join(f"WHEN waited_ms <= {bound} THEN {at}" for at, bound in enumerate(LATENCY_BOUNDS_MS))
WAITED_BUCKET = f"CASE {_BUCKETS} ELSE {len(LATENCY_BOUNDS_MS)} END"
"""As `decide.bucket_of` has it."""

FAILURE = Shape(
    Failure, {"id": Kind.ID, "name": Kind.TEXT, "completed_at": Kind.TIME, "error": Kind.TEXT}, {"error": "{error_end}"}
)

AGE = Shape(Age, {"minute": Kind.TIME, "name": Kind.TEXT, "seconds": Kind.NUMBER, "depth": Kind.BIG_INTEGER})

VERSION_START = Shape(VersionStart, {"version": Kind.TEXT, "started_ms": Kind.BIG_INTEGER})


DRAIN = Shape(Drain, {"drain_requested_by": Kind.TEXT, "drain_requested_at": Kind.TIME})


def _worker(
    now: datetime,
    lease_now: datetime,
    names: Sequence[str],
    queues: Any,
    seen_at: datetime,
    drain_requested_by: str | None,
    drain_requested_at: datetime | None,
    **values: Any,
) -> WorkerInfo:
    silence = max(0.0, (lease_now - seen_at).total_seconds())
    return WorkerInfo(
        names=tuple(names),
        queues=queues if isinstance(queues, dict) else {},  # people edit rows
        seen_at=now - timedelta(seconds=silence),
        seconds_since_seen=silence,
        drain=None if drain_requested_at is None else Drain(drain_requested_by or "", drain_requested_at),
        **values,
    )


WORKER = Shape(
    _worker,
    {
        "id": Kind.TEXT,
        "hostname": Kind.TEXT,
        "pid": Kind.INTEGER,
        "version": Kind.TEXT,
        "names": Kind.NAMES,
        "queues": Kind.JSON,
        "concurrency": Kind.INTEGER,
        "running": Kind.INTEGER,
        "started_at": Kind.TIME,
        "seen_at": Kind.TIME,
        "stopped_at": Kind.TIME,
        **DRAIN.columns,
        "now": Kind.TIME,
        "lease_now": Kind.TIME,
    },
)
