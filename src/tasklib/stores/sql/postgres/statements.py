"""Named queries as PostgreSQL's statements: played on a connection of asyncpg's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, timedelta
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from tasklib.core.column_batch import ColumnBatch
from tasklib.core.decide import LATENCY_BOUNDS_MS
from tasklib.core.flows import NEVER
from tasklib.stores.sql.columns import (
    CLAIM,
    CREATED_AT,
    NO_PREFETCH,
    REPLACED,
    ROW_COUNT,
    Kind,
    Shape,
    new_columns,
)
from tasklib.stores.sql.dialect import column_list, composed, fill, json_value, numbered
from tasklib.stores.sql.hints import drain_message
from tasklib.stores.sql.postgres.url import Connection
from tasklib.stores.sql.steps import BEGIN, IN_DOUBT, Notify, Play, Query, Script
from tasklib.stores.values import ERROR_END

Places: TypeAlias = tuple[tuple[int, Callable[[Any], Any]], ...]
_BATCH = "batch ({columns}) AS MATERIALIZED (SELECT * FROM unnest({arrays}))"
_COUNTED = "WITH written AS ({statement} RETURNING 1) SELECT count(*) FROM written"
"""How many rows a statement wrote, as a row."""
_NOW = "clock_timestamp() + :offset::interval"
_LOST = "coalesce(history -> {} -> 'lost' = 'true', false)"
SPELLINGS = {
    "in_ids": "= ANY ({}::uuid[])",
    "in_texts": "= ANY ({}::text[])",
    # No clock that runs on while the statement does: the planner would use no index for it.
    "later": "statement_timestamp() + :offset::interval + {}::interval",
    "lease_later": "statement_timestamp() + :offset::interval + {}::interval",
}
_INDEXES = (
    "by_id",
    "by_ready",
    "by_waiting",
    "by_running",
    "by_retrying",
    "by_finished",
    "by_ended",
    "by_idempotency",
    "by_flow",
)
_KEPT_FEEDS = (
    "CASE WHEN b.feeds IS NOT NULL "
    "THEN ARRAY(SELECT child::uuid FROM jsonb_array_elements_text(b.feeds) AS f (child)) END"
)
_NAMES = {
    "now": _NOW,
    "lease_now": _NOW,
    "this_minute": "date_trunc('minute', statement_timestamp() + :offset::interval)",
    "is_ready": "t.ready",
    "is_not_ready": "NOT t.ready",
    "given_names": "(SELECT unnest(:names::text[]) AS name)",
    "never": f"'{NEVER.isoformat()}'::timestamptz",
    "feeds_json": "to_jsonb(feeds)",
    "result_value": "CAST(result -> 'value' AS text)",
    "kept_feeds": _KEPT_FEEDS,
    # The planner cannot be told which index to use, but what it may not look at from outside it serves by itself.
    "fence": "OFFSET 0",
    "for_update": "FOR UPDATE",
    "lease_end": "clock.now + :lease::interval",
    "step_of_minute": "to_timestamp(floor(extract(epoch FROM minute) / :step) * :step)",
    "first_started_ms": "(1000 * extract(epoch FROM min(started_at)))::bigint",
    **dict.fromkeys(_INDEXES, ""),
    "claim_columns": column_list(CLAIM),
    "no_prefetch": NO_PREFETCH,
    "waited": "greatest(0, 1000 * date_part('epoch', started_at - scheduled_at))::bigint",
    # As `bucket_of` has it: the bounds that are below.
    "waited_bucket": f"width_bucket(waited_ms - 1, ARRAY{list(LATENCY_BOUNDS_MS)}::bigint[])",
    "error_end": f"right(coalesce(error, ''), {ERROR_END})",
    "lost_latest": _LOST.format(-1),
    "lost_before": _LOST.format(-2),
    # As text: to put it together as jsonb takes several times as long.
    "in_flow": (
        "'{' || concat_ws(',', '\"id\": \"' || flow_id || '\"', '\"after\": ' || CAST(after AS text), "
        "CASE WHEN feeds IS NOT NULL THEN '\"feeds\": true' END) || '}'"
    ),
}
_TYPES = {kind: kind.value for kind in Kind} | {Kind.JSON_TEXT: "jsonb"}
_READ: dict[Kind, Callable[[Any], Any]] = {Kind.JSON: json_value}
"""What asyncpg does not make of a value by itself."""
_READ_ANY: dict[Kind, Callable[[Any], Any]] = {
    Kind.JSON: json_value,
    Kind.ID: lambda value: value if isinstance(value, UUID) else UUID(value),
    Kind.TIME: lambda value: value.astimezone(UTC),
}
"""The same for whatever driver."""
_AS_TEXT = (Kind.ID, Kind.JSON, Kind.JSON_TEXT)
"""Drivers differ in what they make of these, so they are asked for as text."""
_JSON_PARAMETER = re.compile(r"(\$\d+)::jsonb((?:\[\])?)")
"""It goes through text there: a caller's asyncpg may have a codec of its own for JSON."""
_DOCUMENT_LIMIT = 16 * 1024 * 1024
"""Characters of JSON that go as one document; PostgreSQL's own limit is far beyond."""


class Statement(NamedTuple):
    text: str
    parameters: tuple[str, ...]
    """Their names, in the order of $1, $2, ..."""
    read: Places
    """How columns are read, by their place."""

    def rows(self, query: Query, rows: Sequence[Any]) -> Any:
        """What the steps get for the rows that the database gave."""
        if query.shape is None:
            return rows
        if query.shape is ROW_COUNT:
            return rows[0][0]
        if self.read:
            rows = [_decoded(row, self.read) for row in rows]
        return query.shape.rows(rows)


class Statements:
    """The queries of one schema, made into statements as they are first used."""

    def __init__(self, sql: Mapping[str, str], *, any_driver: bool = False) -> None:
        self._sql = sql
        self._any_driver = any_driver
        self._made: dict[object, Statement] = {}

    async def play(self, connection: Connection, play: Play[Any], offset: timedelta, *, in_doubt: bool = False) -> None:
        """Until its end, or until a transaction is asked for."""
        while play.query is not None and play.query is not BEGIN:
            if isinstance(play.query, Script):
                play.send(await connection.execute(play.query.sql))
                continue
            if play.query is IN_DOUBT:
                play.send(in_doubt)
                continue
            query = message(play.query) if isinstance(play.query, Notify) else play.query
            answer: Any = None
            if query is not None:
                statement, values = self.bound(query, offset)
                if query.shape is ROW_COUNT:
                    prepared = connection.kept.get(statement.text) or await connection.keep(statement.text)
                    await prepared.fetchval(*values)
                    answer = int(prepared.get_statusmsg().rpartition(" ")[2])  # `INSERT 0 3` are three
                else:
                    answer = statement.rows(query, await connection.fetch(statement.text, *values))
            play.send(answer)

    def bound(self, query: Query, offset: timedelta) -> tuple[Statement, list[Any]]:
        """The statement of a query, and the values of its parameters."""
        given = {"offset": offset, **query.parameters}
        batch = query.batch
        if batch is None:
            statement = (None if query.parts else self._made.get(query.name)) or self.statement(query)
        elif query.shape in (ROW_COUNT, CREATED_AT) and len(batch.rows) == 1:
            statement = self._made.get((query.name,)) or self.statement(query, ())
            given.update(zip(batch.shape.batch_names, batch.rows[0], strict=False))
        elif type(batch.rows) is ColumnBatch and _is_short(batch.shape, batch.rows):
            differing = batch.rows.columns
            statement = self._made.get((query.name, *differing)) or self.statement(query, tuple(differing))
            given.update(zip(batch.shape.batch_names, batch.rows.first, strict=False))
            for name, column in differing.items():
                is_json = batch.shape.columns[name] is Kind.JSON_TEXT
                given[f"batch_{name}"] = f"[{','.join(column)}]" if is_json else column
        else:
            statement = self._made.get(query.name) or self.statement(query)
            columns = zip(*batch.rows, strict=True) if batch.rows else [()] * len(batch.shape.names)
            given.update(zip(batch.shape.batch_names, columns, strict=False))
        return statement, [given[name] for name in statement.parameters]

    def statement(self, query: Query, differing: tuple[str, ...] | None = None) -> Statement:
        """`differing`: the columns in which the rows of the batch differ, if all others are said once."""
        names: dict[str, str] = {}
        read: list[tuple[int, Callable[[Any], Any]]] = []
        if query.shape is not None:
            names["columns"] = column_list(query.shape, _AS_TEXT if self._any_driver else ())
            known = _READ_ANY if self._any_driver else _READ
            read = [(place, known[kind]) for place, kind in enumerate(query.shape.columns.values()) if kind in known]
        if query.batch is not None:
            shape = query.batch.shape
            names["batch"] = _batch(shape) if differing is None else _alike(shape, differing)
            written = new_columns(shape)
            names |= {"new_columns": written, "new_values": written.replace("feeds", _KEPT_FEEDS), "replaced": REPLACED}
        text, parameters = numbered(fill(composed(self._sql, query.name, query.parts or {}), names | _NAMES), "$")
        if self._any_driver:
            text = _JSON_PARAMETER.sub(r"\1::text\2::jsonb\2", text)
            if query.shape is ROW_COUNT:
                text = fill(_COUNTED, {"statement": text})
        statement = Statement(text, parameters, tuple(read))
        if query.parts is None:
            self._made[query.name if differing is None else (query.name, *differing)] = statement
        return statement


def message(notify: Notify) -> Query | None:
    """What can be claimed, and what is over, is told by the statement that writes it."""
    if notify.drain_requested is not None:
        return Query("notify", messages=[drain_message(notify.drain_requested)])
    return Query("notify", messages=["!"]) if notify.everybody else None


def _batch(shape: Shape[Any]) -> str:
    arrays = ", ".join(f":batch_{name}::{_TYPES[kind]}[]" for name, kind in shape.columns.items())
    return fill(_BATCH, {"columns": column_list(shape), "arrays": arrays})


def _alike(shape: Shape[Any], differing: Sequence[str]) -> str:
    """Rows that differ in a few columns; a lone one, in none. JSON goes as one document, which is quicker than an
    array."""
    typed = {name: f":batch_{name}::{_TYPES[kind]}" for name, kind in shape.columns.items()}
    columns = ", ".join(f"each.{name}" if name in differing else f"{typed[name]} AS {name}" for name in typed)
    sources = ", ".join(
        f"jsonb_array_elements({typed[name]})" if shape.columns[name] is Kind.JSON_TEXT else f"unnest({typed[name]}[])"
        for name in differing
    )
    rows = f" FROM ROWS FROM ({sources}) AS each ({', '.join(differing)})" if differing else ""
    return f"batch AS (SELECT {columns}{rows})"


def _is_short(shape: Shape[Any], rows: ColumnBatch[Any]) -> bool:
    """Whether the JSON of each column fits into a document."""
    documents = [column for name, column in rows.columns.items() if shape.columns[name] is Kind.JSON_TEXT]
    return all(sum(map(len, column)) < _DOCUMENT_LIMIT for column in documents)


def _decoded(row: Any, read: Places) -> list[Any]:
    values = list(row)
    for place, value_of in read:
        if values[place] is not None:
            values[place] = value_of(values[place])
    return values
