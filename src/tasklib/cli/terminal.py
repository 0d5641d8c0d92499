"""What only Rich can print: styles, and tables that fit a terminal. `output.py` imports it when that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tasklib.cli.output import Cell, Column
from tasklib.cli.text import clean

_GAP = 2
_WIDEST = 24
"""Of a column that may be cut short; the last one takes what is left."""
_LEAST = 16
"""Of the last column."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # as any other stream would; what that means is decided in one place


def console(*, stderr: bool = False, file: IO[str] | None = None, width: int | None = None) -> Console:
    """Markup, emoji codes and highlighting are off: text is printed as it is."""
    return _Console(stderr=stderr, file=file, width=width, markup=False, emoji=False, highlight=False)


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], room: int) -> Table:
    """As wide as there is room."""
    kept, widths = _fitted(columns, rows, room)
    made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for index, width in zip(kept, widths, strict=True):
        justify: Literal["left", "right"] = "right" if columns[index].right else "left"
        made.add_column(columns[index].title, justify=justify, width=width, no_wrap=True, overflow="ellipsis")
    for row in rows:
        made.add_row(*(_text(row[index]) for index in kept))
    return made


def _fitted(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], room: int) -> tuple[list[int], list[int]]:
    """Which columns to show, and how wide, in a terminal so wide."""
    needs = [
        max(cell_len(column.title), *(_text(row[index]).cell_len for row in rows), 0)
        for index, column in enumerate(columns)
    ]
    widths = [need if column.whole else min(need, _WIDEST) for need, column in zip(needs, columns, strict=True)]
    last = len(columns) - 1
    kept = list(range(len(columns)))

    def left() -> int:
        return room - sum(widths[index] + _GAP for index in kept if index != last)

    for index in reversed(kept[:-1]):
        if left() < min(needs[last], _LEAST) and columns[index].optional:
            kept.remove(index)
    widths[last] = max(1, min(needs[last], left()))
    return kept, [widths[index] for index in kept]


def _text(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(clean(cell))
