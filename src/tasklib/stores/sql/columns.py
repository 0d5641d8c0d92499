"""The columns, said once: by the fields of the values that rows become. Select lists, batches and the reading of rows
are made from their names and kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_type_hints
from uuid import UUID

from tasklib.core.alert_state import Alert
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


_KINDS = {
    str: Kind.TEXT,
    int: Kind.INTEGER,
    float: Kind.NUMBER,
    bool: Kind.BOOLEAN,
    datetime: Kind.TIME,
    UUID: Kind.ID,
    Sequence[str]: Kind.NAMES,
}
"""By the type of a field. All others are JSON."""


def columns_of(value: type, **kinds: Kind) -> dict[str, Kind]:
    """The columns that the fields of a value are. `kinds`: of those whose type does not tell it."""

    def kind_of(hint: Any) -> Kind:
        [hint, *_] = [each for each in get_args(hint) if NoneType in get_args(hint) and each is not NoneType] or [hint]
        return _KINDS.get(hint, Kind.JSON)

    return {name: kinds.get(name) or kind_of(hint) for name, hint in get_type_hints(value).items()}


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
    """Rows that go into a statement, their values in the order of the shape; what a row has beyond it does not go in.
    Those of `ColumnBatch` have most columns in common, which a driver may send once."""

    shape: Shape[Any]
    rows: Sequence[Sequence[Any]]


def _task(**values: Any) -> Task:
    """A row that somebody edited may hold JSON of another kind than is written there: it is shown, not refused."""
    for name in ("args", "tags"):
        values[name] = mapping(values[name]) or {}
    for name in ("result", "retry_policy", "after"):
        values[name] = mapping(values[name])
    entries = values["history"]
    values["history"] = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return Task(**values)


def mapping(value: Any) -> dict[str, Any] | None:
    """JSON that should be an object, and may be what somebody wrote there."""
    return value if value is None or isinstance(value, dict) else {"value": value}


_FED = "feeds IS NOT NULL"
TASK = Shape(_task, columns_of(Task), {"fed": _FED})

TASK_ROW = Shape(
    row_values,
    {
        name: Kind.JSON_TEXT if kind is Kind.JSON else kind
        for name, kind in TASK.columns.items()
        if name not in TASK.computed
    },
)
"""A whole record that goes in."""

_WHEN = {"delay_seconds": Kind.NUMBER, "run_at": Kind.TIME}
PLAIN_FIELDS = NewTask._fields.index("unique_rule")
"""So many fields has a new task before those that most have nothing of."""
NEW_TASK = Shape(NewTask, {name: (TASK_ROW.columns | _WHEN)[name] for name in NewTask._fields[:PLAIN_FIELDS]})
"""A plain one. Those that are unique go in as a `UNIQUE_TASK`, those that wait for others as a `FLOW_TASK`."""
UNIQUE_TASK = Shape(
    row_values,
    {
        **NEW_TASK.columns,
        "unique_key": Kind.TEXT,
        "unique_until": Kind.TEXT,
        "at_most": Kind.NUMBER,
    },
)


def new_columns(shape: Shape[Any]) -> str:
    """What a submit writes into the row as it was given."""
    return ", ".join(name for name in shape.names if name in TASK.columns or name == "feeds")


OVER = "completed_at IS NOT NULL"

REPLACED = ", ".join(
    f"{name} = b.{name}"
    for name in UNIQUE_TASK.names
    if name in TASK.columns and name not in ("id", "name", "idempotency_key", "unique_key")
)
"""What a task takes over from the submit that replaces it."""


HOLDER = Shape(
    Holder,
    columns_of(Holder),
    {"started": "started_at IS NOT NULL", "running": "state = 'running'", "over": OVER, "now": "{now}"},
)

PRUNABLE = Shape(row_values, {"id": Kind.ID, "fed": Kind.BOOLEAN}, {"fed": _FED})
"""Whether others wait, or waited, for it."""

ROW_COUNT = Shape(int, {})
"""Not rows, but how many were written."""

ID = Shape(lambda id: id, {"id": Kind.ID})
ID_ROW = Shape(row_values, ID.columns)
ENDED = Shape(EndedCursor, columns_of(EndedCursor))
CREATED_AT = Shape(lambda created_at: created_at, {"created_at": Kind.TIME})
KEYED = Shape(row_values, {"id": Kind.ID, "idempotency_key": Kind.TEXT})
GUARD = Shape(Held, columns_of(Held))
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
        "waited_ms": Kind.BIG_INTEGER,
        "due_in": Kind.DURATION,
        "asked_retry_count": Kind.INTEGER,
        "asked_error": Kind.TEXT,
        "asked_entry": Kind.JSON_TEXT,
    },
)
"""A `Change` that goes in; the last three are what differs in its `if_asked`."""

COMPLETION = Shape(
    row_values,
    {name: CHANGE.columns[name] for name in ("id", "version", "result", "run_ms", "bucket", "waited_ms")},
)


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
    unseen: Sequence[str]
    """Ids of tasks that are to be released, and that the statement could not see."""


SETTLED = Shape(Settled, columns_of(Settled))

_LAST_ATTEMPT = "(max_retries >= 0 AND retry_count >= max_retries)"
# What never failed has no history to look at. CASE, because SQLite computes both sides of an AND.
NO_PREFETCH = f"{_LAST_ATTEMPT} OR CASE WHEN retry_count > 0 THEN {{lost_latest}} ELSE false END"
ISOLATED = f"CASE WHEN retry_count > 0 THEN {{lost_latest}} AND ({_LAST_ATTEMPT} OR {{lost_before}}) ELSE false END"

FLOW = "CASE WHEN flow_id IS NOT NULL OR after IS NOT NULL OR feeds IS NOT NULL THEN {in_flow} END"
"""What a claim says of the flow that its task is in; most are in none."""

CLAIM = Shape(
    Claim,
    columns_of(
        Claim,
        **dict.fromkeys(("kwargs", "retry_policy", "tags", "flow"), Kind.JSON_TEXT),
        waited_ms=Kind.BIG_INTEGER,
    ),
    {
        "no_prefetch": NO_PREFETCH,
        "isolated": ISOLATED,
        "waited_ms": "CASE WHEN retry_count = 0 THEN {waited} END",
        "flow": FLOW,
    },
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

TOKEN = Shape(Token, columns_of(Token))

AUDIT = Shape(
    AuditEntry,
    columns_of(AuditEntry, detail=Kind.JSON_TEXT, done=Kind.BIG_INTEGER),
    {"cursor": "CAST(number AS text)"},
)

NEW_AUDIT = Shape(row_values, {name: kind for name, kind in AUDIT.columns.items() if name not in ("at", "cursor")})
"""What goes in; the database says when."""

ALERT = Shape(Alert, columns_of(Alert))

NOW = Shape(lambda now: now, {"now": Kind.TIME})


class ControlNow(NamedTuple):
    control: Control
    now: datetime
    """By the clock that rates go by."""


def _control_now(now: datetime, **values: Any) -> ControlNow:
    return ControlNow(Control(**values), now)


TASK_TYPE = Shape(PublishedType, columns_of(PublishedType, options=Kind.JSON_TEXT, schema=Kind.JSON_TEXT))

CONTROL = Shape(_control_now, {**columns_of(Control), "now": Kind.TIME}, {"now": "{lease_now}"})

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


ACTIVE = Shape(Active, columns_of(Active))

POINT = Shape(Point, columns_of(Point, count=Kind.BIG_INTEGER, run_ms=Kind.BIG_INTEGER))

COUNTED = Shape(row_values, POINT.columns)
"""A cell of the counters, taken out or put in."""

FAILURE = Shape(Failure, columns_of(Failure), {"error": "{error_end}"})

AGE = Shape(Age, columns_of(Age, depth=Kind.BIG_INTEGER))

VERSION_START = Shape(VersionStart, columns_of(VersionStart, started_ms=Kind.BIG_INTEGER))


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


_OF_WORKER = columns_of(WorkerInfo, names=Kind.NAMES)
WORKER = Shape(
    _worker,
    {
        **{name: kind for name, kind in _OF_WORKER.items() if name not in ("seconds_since_seen", "drain")},
        **DRAIN.columns,
        "now": Kind.TIME,
        "lease_now": Kind.TIME,
    },
)
