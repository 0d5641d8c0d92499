"""Plays the steps of the SQL store on SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from tasklib.stores.sql.columns import TASK, Kind, Shape
from tasklib.stores.sql.dialect import column_list, fill, json_value, numbered
from tasklib.stores.sql.steps import BEGIN, IN_DOUBT, Notify, Play, Query, Steps
from tasklib.stores.sqlite.batches import SIZES, SQL, Target, chunks
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.rows import instant, seconds, written

T = TypeVar("T")

_AS_JSON = "SELECT json_group_array(json_array({columns})) FROM ({query})"
_BATCH = "batch ({columns}) AS (SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL)"
"""The first column is never null, but in the rows that only fill up a statement."""
_NAMES = {
    "schema": "main",
    "lease_now": ":steady",
    "now": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset)",
    "task_columns": column_list(TASK),
}
_UNASKED = (BEGIN, IN_DOUBT)
"""Steps are in a transaction from their start, and no reply of a file is ever lost."""
_READ: dict[Kind, Callable[[Any], Any]] = {
    Kind.ID: UUID,
    Kind.TIME: instant,
    Kind.BOOLEAN: bool,
    Kind.JSON: json_value,
    Kind.NAMES: json_value,
}
_WRITTEN: dict[type, Callable[[Any], Any]] = {
    UUID: str,
    datetime: written,
    timedelta: lambda duration: seconds(duration.total_seconds()),
    list: lambda values: json.dumps([_value(value) for value in values], ensure_ascii=False),
    tuple: lambda values: json.dumps([_value(value) for value in values], ensure_ascii=False),
}


_AS_THEY_ARE = (str, int, float, bool, type(None))


class Statement(NamedTuple):
    text: str
    parameters: tuple[str, ...]
    """Their names, in the order of ?1, ?2, ..."""
    as_json: bool
    """All rows come as one JSON text: each step of SQLite gives up Python's lock and has to get it back."""
    read: tuple[tuple[int, Callable[[Any], Any]], ...]
    """How columns are read, by their place."""


_statements: dict[tuple[str, int], Statement] = {}


class Played(NamedTuple, Generic[T]):
    result: T
    notifications: list[Notify]
    """To be sent after the commit."""


def play(connection: Target, steps: Steps[T], clock: Clock) -> Played[T]:
    """Inside the transaction of the caller."""
    play = Play(steps)
    notifications: list[Notify] = []
    while play.query is not None:
        if isinstance(play.query, Notify):
            notifications.append(play.query)
            play.send(None)
        else:
            play.send(None if play.query in _UNASKED else _answer(connection, play.query, clock))
    return Played(play.result, notifications)


def _answer(connection: Target, query: Query, clock: Clock) -> list[Any]:
    if query.batch is None:
        return _rows(connection, query, (), clock)
    return [row for chunk in chunks(query.batch.rows) for row in _rows(connection, query, chunk, clock)]


def _rows(connection: Target, query: Query, batch: Sequence[Sequence[Any]], clock: Clock) -> list[Any]:
    size = next(size for size in SIZES if size >= len(batch)) if batch else 0
    statement = _statements.get((query.name, size)) or prepare(query, size)
    given = query.parameters
    values = [clock.parameter(name) or _value(given[name]) for name in statement.parameters]
    if query.batch is not None:
        for row in batch:
            values += map(_value, row)
        values += [None] * (len(query.batch.shape.names) * (size - len(batch)))
    cursor = connection.execute(statement.text, values)
    rows: list[Any] = json.loads(cursor.get) if statement.as_json else cursor.fetchall()
    if query.shape is None:
        return rows
    return [query.shape.row(row) for row in _decoded(rows, statement)]


def _decoded(rows: list[Any], statement: Statement) -> Iterator[list[Any]]:
    for row in rows:
        values = list(row)
        for place, read in statement.read:
            if values[place] is not None:
                values[place] = read(values[place])
        yield values


def _value(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
    write = _WRITTEN.get(type(value)) or next((_WRITTEN[kind] for kind in _WRITTEN if isinstance(value, kind)), None)
    return value if write is None else write(value)


def prepare(query: Query, size: int) -> Statement:
    names = dict(_NAMES)
    read: list[tuple[int, Callable[[Any], Any]]] = []
    text = SQL[query.name]
    as_json = query.shape is not None and "RETURNING" not in text
    if query.shape is not None:
        names["columns"] = column_list(query.shape)
        read = [(place, _READ[kind]) for place, kind in enumerate(query.shape.columns.values()) if kind in _READ]
        if as_json:
            text = _AS_JSON.replace("{query}", text)
    if query.batch is not None:
        names["batch"] = _batch(query.batch.shape)
    text, parameters = numbered(fill(text, names), "?")
    if query.batch is not None:
        text = text.replace("{rows}", _values(len(parameters), len(query.batch.shape.names), size))
    statement = Statement(text, parameters, as_json, tuple(read))
    _statements[query.name, size] = statement
    return statement


def _batch(shape: Shape[Any]) -> str:
    return fill(_BATCH, {"columns": column_list(shape)})


def _values(before: int, width: int, size: int) -> str:
    numbers = iter(range(before + 1, before + 1 + width * size))
    return ",".join("(" + ",".join(f"?{next(numbers)}" for _ in range(width)) + ")" for _ in range(size))
