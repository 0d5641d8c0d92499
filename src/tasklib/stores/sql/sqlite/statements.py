"""Plays the steps of the SQL store on SQLite."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import apsw

from tasklib.core.decide import LATENCY_BOUNDS_MS
from tasklib.core.flows import NEVER
from tasklib.core.ids import uuid_of
from tasklib.stores.sql.columns import REPLACED, ROW_COUNT, TASK_ROW, Kind, new_columns
from tasklib.stores.sql.dialect import column_list, composed, fill, json_value, numbered
from tasklib.stores.sql.sqlite import claiming, releasing
from tasklib.stores.sql.sqlite.batches import SIZES, SQL, Target, chunks
from tasklib.stores.sql.sqlite.clock import Clock
from tasklib.stores.sql.sqlite.rows import instant, rounded_up, seconds, waited_ms, written
from tasklib.stores.sql.steps import BEGIN, IN_DOUBT, Bound, Notify, Query, Steps
from tasklib.stores.values import ERROR_END

T = TypeVar("T")
Places: TypeAlias = tuple[tuple[int, Callable[[Any], Any]], ...]

_AS_JSON = "SELECT json_group_array(json_array({names})) FROM ({query})"
_BATCH = "batch ({columns}) AS (SELECT * FROM (VALUES {rows}) WHERE likelihood(column1 IS NOT NULL, 0.000001))"
"""The first column is never null, but in the rows that only fill up a statement. That few are left is told so that the
planner goes from the batch to a table and not the other way, whatever the statistics say of the table."""
_LOST = "(json_valid(history) AND coalesce(json_extract(history, '$[#{}].lost'), 0) = 1)"
_BUCKETS = " ".join(f"WHEN waited_ms <= {bound} THEN {at}" for at, bound in enumerate(LATENCY_BOUNDS_MS))
_WAITED_BUCKET = f"CASE {_BUCKETS} ELSE {len(LATENCY_BOUNDS_MS)} END"
"""As `bucket_of` has it."""
_NAMES = {
    "waited": waited_ms("julianday(started_at)"),
    "waited_bucket": _WAITED_BUCKET,
    "error_end": f"substr(coalesce(error, ''), -{ERROR_END})",
    "schema": "main",
    "lost_latest": _LOST.format(-1),
    "lost_before": _LOST.format(-2),
    "in_flow": (
        "'{' || concat_ws(',', '\"id\": ' || iif(flow_id IS NULL, NULL, json_quote(flow_id)), "
        "'\"after\": ' || iif(json_valid(after), after, NULL), iif(feeds IS NULL, NULL, '\"feeds\": true')) || '}'"
    ),
    "lease_end": "coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', :steady, :lease), '9999-12-31T23:59:59.999Z')",
    "lease_now": ":steady",
    "now": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset)",
    "this_minute": "strftime('%Y-%m-%dT%H:%M:00.000Z', 'now', :offset)",
    "task_columns": column_list(TASK_ROW),
    "is_ready": "t.ready = 1",
    "is_not_ready": "t.ready = 0",
    "given_names": "(SELECT value AS name FROM json_each(:names))",
    "never": f"'{written(NEVER)}'",
    "feeds_json": "feeds",
    "result_value": "iif(json_valid(result), result -> '$.value', NULL)",
    "fence": "",
    "for_update": "",  # a write holds the only lock there is
    "step_of_minute": "strftime('%Y-%m-%dT%H:%M:00.000Z', unixepoch(minute) / :step * :step, 'unixepoch')",
    "first_started_ms": "cast(round(1000 * unixepoch(min(started_at), 'subsec')) AS INTEGER)",
    "by_id": "INDEXED BY sqlite_autoindex_tasks_1",
    "by_ready": "INDEXED BY ix_tasks_ready",
    "by_waiting": "INDEXED BY ix_tasks_waiting",
    "by_running": "INDEXED BY ix_tasks_running",
    "by_retrying": "INDEXED BY ix_tasks_retrying",
    "by_finished": "INDEXED BY ix_tasks_finished",
    "by_ended": "INDEXED BY ix_tasks_ended",
    "by_idempotency": "INDEXED BY ix_tasks_idempotency_key",
    "by_flow": "INDEXED BY ix_tasks_flow_id",
}
_encode = json.JSONEncoder(ensure_ascii=False).encode
_READ: dict[Kind, Callable[[Any], Any]] = {
    Kind.ID: uuid_of,
    Kind.TIME: instant,
    Kind.BOOLEAN: bool,
    Kind.JSON: json_value,
    Kind.NAMES: json_value,
}
_WRITTEN: dict[type, Callable[[Any], Any]] = {
    UUID: str,
    Bound: lambda bound: written(rounded_up(bound)),
    datetime: written,
    timedelta: lambda duration: seconds(duration.total_seconds()),
    list: lambda values: _encode([_value(value) for value in values]),
    tuple: lambda values: _encode([_value(value) for value in values]),
}
_WRITTEN_KINDS = {Kind.ID: UUID, Kind.TIME: datetime, Kind.DURATION: timedelta, Kind.NAMES: tuple}
_AS_THEY_ARE = (str, int, float, bool, type(None))

COMPOSED: dict[str, Callable[..., Steps[Any]]] = {
    "claim": claiming.claim,
    "complete_feeding": releasing.complete_feeding,
}
"""Queries that take several statements here."""


class Statement(NamedTuple):
    text: str
    """Gives the rows."""
    others: tuple[str, ...]
    """Statements that come after it, with the same parameters."""
    plain: str
    """Without the JSON, one row at a time."""
    parameters: tuple[str, ...]
    """Their names, in the order of ?1, ?2, ..."""
    as_json: bool
    """All rows come as one JSON text: each step of SQLite gives up Python's lock and has to get it back."""
    read: Places
    """How columns are read, by their place."""
    write: Places
    """The same for the columns of a batch that are written."""


_statements: dict[tuple[str, int], Statement] = {}


class Played(NamedTuple, Generic[T]):
    result: T
    notifications: list[Notify]
    """To be sent after the commit."""


def play(connection: Target, steps: Steps[T], clock: Clock) -> Played[T]:
    """Inside the transaction of the caller. Steps are in one from their start, and no reply of a file is ever lost."""
    notifications: list[Notify] = []
    answer: Any = None
    while True:
        try:
            query = steps.send(answer)
        except StopIteration as end:
            return Played(end.value, notifications)
        answer = None
        if isinstance(query, Query):
            if query is not BEGIN and query is not IN_DOUBT:
                answer = _answer(connection, query, clock)
        elif isinstance(query, Notify):
            notifications.append(query)
        else:
            connection.execute(query.sql).fetchall()


def _answer(connection: Target, query: Query, clock: Clock) -> Any:
    if query.name in COMPOSED:
        given = query.parameters if query.batch is None else {**query.parameters, "batch": query.batch}
        return play(connection, COMPOSED[query.name](**given), clock).result
    if query.batch is None:
        return _rows(connection, query, (), clock)
    if len(query.batch.rows) <= SIZES[-1]:
        return _rows(connection, query, query.batch.rows, clock)
    parts = [_rows(connection, query, chunk, clock) for chunk in chunks(list(query.batch.rows))]
    return sum(parts) if query.shape is ROW_COUNT else [row for rows in parts for row in rows]


def _rows(connection: Target, query: Query, batch: Sequence[Sequence[Any]], clock: Clock) -> Any:
    size = SIZES[bisect_left(SIZES, len(batch))] if batch else 0
    statement = (None if query.parts else _statements.get((query.name, size))) or prepare(query, size)
    given = query.parameters
    values = [_value(given[name]) if name in given else clock.parameter(name) for name in statement.parameters]
    if query.batch is not None:
        width = len(query.batch.shape.names)
        rows = batch if len(batch[0]) == width else [row[:width] for row in batch]
        values += chain.from_iterable(_converted(rows, statement.write))
        values += [None] * (width * (size - len(batch)))
    if query.shape is ROW_COUNT:
        connection.execute(statement.text, values)
        return (connection if isinstance(connection, apsw.Connection) else connection.connection).changes()
    rows = _fetched(connection, statement, values)
    for text in statement.others:
        connection.execute(text, values)
    return rows if query.shape is None else query.shape.rows(_converted(rows, statement.read))


def _fetched(connection: Target, statement: Statement, values: list[Any]) -> list[Any]:
    if statement.as_json:
        try:
            found: list[Any] = json.loads(connection.execute(statement.text, values).get)
            return found
        except apsw.TooBigError:  # more than a gigabyte together
            pass
    return connection.execute(statement.plain, values).fetchall()


def _converted(rows: Sequence[Sequence[Any]], places: Places) -> Iterable[Sequence[Any]]:
    """Rows as they are read or written. They are converted column by column: for many it is quicker."""
    if len(rows) < 2:
        return [_converted_row(row, places) for row in rows]
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for place, convert in places:
        columns[place] = [None if value is None else convert(value) for value in columns[place]]
    return zip(*columns, strict=True)


def _converted_row(row: Sequence[Any], places: Places) -> list[Any]:
    values = list(row)
    for place, convert in places:
        if values[place] is not None:
            values[place] = convert(values[place])
    return values


def _value(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
    write = _WRITTEN.get(type(value)) or next((_WRITTEN[kind] for kind in _WRITTEN if isinstance(value, kind)), None)
    return value if write is None else write(value)


def prepare(query: Query, size: int) -> Statement:
    names: dict[str, str] = {}
    read: list[tuple[int, Callable[[Any], Any]]] = []
    text, *others = composed(SQL, query.name, query.parts or {}).split(";\n")
    as_json = query.shape not in (None, ROW_COUNT) and "RETURNING" not in text
    if query.shape is not None:
        names["columns"] = column_list(query.shape)
        read = [(place, _READ[kind]) for place, kind in enumerate(query.shape.columns.values()) if kind in _READ]
    write: list[tuple[int, Callable[[Any], Any]]] = []
    if query.batch is not None:
        kinds = enumerate(query.batch.shape.columns.values())
        write = [(place, _WRITTEN[_WRITTEN_KINDS[kind]]) for place, kind in kinds if kind in _WRITTEN_KINDS]
        names["batch"] = fill(_BATCH, {"columns": column_list(query.batch.shape)})
        names |= {"new_columns": new_columns(query.batch.shape), "replaced": REPLACED}
    text, parameters = numbered(fill(";\n".join([text, *others]), names | _NAMES), "?")
    if query.batch is not None:
        text = text.replace("{rows}", _values(len(parameters), len(query.batch.shape.names), size))
    plain, *others = text.split(";\n")
    text = plain
    if query.shape is not None and as_json:
        text = fill(_AS_JSON, {"names": ", ".join(query.shape.names), "query": plain})
    statement = Statement(text, tuple(others), plain, parameters, as_json, tuple(read), tuple(write))
    if query.parts is None:
        _statements[query.name, size] = statement
    return statement


def _values(before: int, width: int, size: int) -> str:
    """The first parameter has a number, and the others count on from it: apsw keeps no statement of more than 16 KB."""
    rows = ",".join(["(" + ",".join("?" * width) + ")"] * size)
    return rows.replace("?", f"?{before + 1}", 1)
