"""Many rows in, or out of, one step of SQLite.

Each step gives up Python's global lock and has to get it back, which takes milliseconds where other threads compute.
So a batch goes in as one VALUES list, and rows come out as one JSON text: 500 rows cost as many steps as one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import apsw

from tasklib.stores.sql import dialect

SIZES = (1, 8, 64, 256)
"""A few sizes only, so that prepared statements are used again; what is left over is filled with rows of NULL."""

T = TypeVar("T")
Target: TypeAlias = apsw.Connection | apsw.Cursor
"""What runs a statement: a connection of ours, or a cursor on a caller's."""
Parameters = dict[str, Any] | tuple[Any, ...]


def _load() -> dict[str, str]:
    """The statements, with the column lists they share filled in."""
    found = dialect.load(__package__ or "")
    shared = {f"<{name}>": text for name, text in found.items() if name.endswith("_columns")}
    for name, text in found.items():
        for mark, columns in shared.items():
            text = text.replace(mark, columns)
        found[name] = text
    return found


SQL = _load()


def chunks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """In pieces that fit one statement."""
    for start in range(0, len(rows), SIZES[-1]):
        yield rows[start : start + SIZES[-1]]


def run_batch(target: Target, query: str, fixed: tuple[Any, ...], rows: Sequence[tuple[Any, ...]]) -> Any:
    """Runs a statement that has `<rows>` where the VALUES go; `fixed` are its parameters ?1, ?2, ... before them."""
    width = len(rows[0])
    size = next(size for size in SIZES if size >= len(rows))
    flat = list(fixed)
    for row in rows:
        flat += row
    flat += [None] * (width * (size - len(rows)))
    return target.execute(_expanded(query, width, size), flat).get


def match_batch(target: Target, query: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What of a batch is there, from a statement that gives it as one JSON text."""
    found: list[Any] = json.loads(run_batch(target, query, (), rows))
    return found


@lru_cache(maxsize=64)
def _expanded(query: str, width: int, size: int) -> str:
    row = "(" + ",".join("?" * width) + ")"
    return SQL[query].replace("<rows>", ",".join([row] * size))


def values_of(target: Target, sql: str, parameters: Parameters = ()) -> list[Any]:
    """What a statement gives as one JSON list: its only column, or its only row."""
    values: list[Any] = json.loads(target.execute(sql, parameters).get)
    return values


def rows_of(target: Target, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
    """The rows of a statement that gives them as one JSON text."""
    text = target.execute(sql, parameters).get
    rows: list[list[Any]] = json.loads(text)
    return rows
