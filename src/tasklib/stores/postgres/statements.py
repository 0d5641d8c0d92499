"""Named queries as PostgreSQL's statements: played on a connection of asyncpg's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from tasklib.stores.postgres.connect import Connection
from tasklib.stores.sql.columns import Batch, Kind, Shape
from tasklib.stores.sql.dialect import column_list, fill, json_value, numbered
from tasklib.stores.sql.steps import BEGIN, IN_DOUBT, Notify, Play, Query

_BATCH = "batch ({columns}) AS MATERIALIZED (SELECT * FROM unnest({arrays}))"
_NOW = "clock_timestamp() + :offset::interval"
_TYPES = {kind: kind.value for kind in Kind} | {Kind.JSON_TEXT: "jsonb"}


class Statement(NamedTuple):
    text: str
    parameters: tuple[str, ...]
    """Their names, in the order of $1, $2, ..."""
    json: tuple[int, ...]
    """The places of columns whose text is to be read."""


class Statements:
    """The queries of one schema, made into statements as they are first used."""

    def __init__(self, sql: Mapping[str, str]) -> None:
        self._sql = sql
        self._made: dict[str, Statement] = {}

    async def play(self, connection: Connection, play: Play[Any], offset: timedelta, *, in_doubt: bool = False) -> None:
        """Until its end, or until a transaction is asked for."""
        while play.query is not None and play.query is not BEGIN:
            if play.query is IN_DOUBT:
                play.send(in_doubt)
                continue
            query = _message(play.query) if isinstance(play.query, Notify) else play.query
            play.send(await self._answer(connection, query, offset))

    async def _answer(self, connection: Connection, query: Query, offset: timedelta) -> Any:
        statement = self._made.get(query.name) or self.statement(query)
        given = query.parameters
        if query.batch is not None:
            given = given | dict(_columns(query.batch))
        values = [offset if name == "offset" else given[name] for name in statement.parameters]
        rows = await connection.fetch(statement.text, *values)
        if query.shape is None:
            return rows
        if statement.json:
            rows = [_decoded(row, statement.json) for row in rows]
        return [query.shape.row(row) for row in rows]

    def statement(self, query: Query) -> Statement:
        names = {"now": _NOW, "lease_now": _NOW}
        json: tuple[int, ...] = ()
        if query.shape is not None:
            names["columns"] = column_list(query.shape)
            json = tuple(place for place, kind in enumerate(query.shape.columns.values()) if kind is Kind.JSON)
        if query.batch is not None:
            names["batch"] = _batch(query.batch.shape)
        text, parameters = numbered(fill(self._sql[query.name], names), "$")
        self._made[query.name] = statement = Statement(text, parameters, json)
        return statement


def _message(notify: Notify) -> Query:
    """The end of a task is told by the statement that settles it."""
    return Query("notify", messages=["!"] if notify.everybody else [f"={name}" for name in notify.names])


def _batch(shape: Shape[Any]) -> str:
    arrays = ", ".join(f":batch_{name}::{_TYPES[kind]}[]" for name, kind in shape.columns.items())
    return fill(_BATCH, {"columns": column_list(shape), "arrays": arrays})


def _columns(batch: Batch) -> Iterator[tuple[str, Any]]:
    columns = zip(*batch.rows, strict=True) if batch.rows else ([] for _ in batch.shape.names)
    return ((f"batch_{name}", column) for name, column in zip(batch.shape.names, columns, strict=True))


def _decoded(row: Any, places: tuple[int, ...]) -> list[Any]:
    values = list(row)
    for place in places:
        values[place] = json_value(values[place])
    return values
