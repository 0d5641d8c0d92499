"""Many rows in, or out of, one step of SQLite.

Each step gives up Python's global lock and has to get it back, which takes milliseconds where other threads compute.
So a batch goes in as one VALUES list, and rows come out as one JSON text: 500 rows cost as many steps as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

import apsw

from tasklib.stores.sql import dialect

SIZES = (1, 8, 64, 256)
"""A few sizes only, so that prepared statements are used again; what is left over is filled with rows of NULL."""

T = TypeVar("T")
Target: TypeAlias = apsw.Connection | apsw.Cursor
"""What runs a statement: a connection of ours, or a cursor on a caller's."""


_LATER = "strftime('%Y-%m-%dT%H:%M:%fZ', {}, {{}})"
_IN = "IN (SELECT value FROM json_each({}))"
SQL = dialect.load(
    __package__ or "",
    {
        "in_ids": _IN,
        "in_texts": _IN,
        "later": _LATER.format("'now', :offset"),
        "lease_later": _LATER.format(":steady"),
    },
)


def chunks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """In pieces that fit one statement."""
    for start in range(0, len(rows), SIZES[-1]):
        yield rows[start : start + SIZES[-1]]
