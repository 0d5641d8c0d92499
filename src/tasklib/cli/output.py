"""What is printed, and how: tables and lines for people, JSON for programs, notes and errors on stderr."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Literal
from uuid import UUID

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from tasklib.cli.text import clean
from tasklib.cli.times import iso
from tasklib.core.redact import mask_text

STATE_STYLES = {
    "pending": "cyan",
    "running": "blue",
    "completed": "green",
    "waiting": "yellow",
    "failed": "red",
    "cancelled": "magenta",
}


_ENDLESS = 1_000_000
_GAP = 2
_WIDEST = 24
"""Of a column that may be cut short; the last one takes what is left."""
_LEAST = 16
"""Of the last column."""


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False
    whole: bool = False
    """Never cut short: people copy it."""
    optional: bool = False
    """Left out where the terminal is narrow."""


Cell = str | Text


class Printer:
    """One for each command. With `as_json` stdout gets one JSON value and nothing else."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = console()
        self._errors = console(stderr=True)

    @property
    def on_terminal(self) -> bool:
        """Asked of the stream itself: a wish for colours in a pipe does not make it a terminal."""
        return self.console.file.isatty()

    @property
    def live(self) -> bool:
        """True when a person watches, so that things may move."""
        return self.on_terminal and not self.as_json

    def data(self, value: Any, *, masked: bool = True) -> None:
        """`masked` is False for a secret that was just made, and is shown once to whoever asked for it."""
        sys.stdout.write(json.dumps(plain(value) if masked else value, ensure_ascii=True, allow_nan=False) + "\n")
        sys.stdout.flush()

    def text(self, text: str) -> None:
        """As it is, for another program."""
        sys.stdout.write(text)

    def line(self, text: Cell = "") -> None:
        self.console.print(text if isinstance(text, Text) else clean(text), soft_wrap=True)

    def show(self, renderable: RenderableType) -> None:
        """Fitted to the terminal; in a pipe as wide as it is."""
        if self.on_terminal:
            self.console.print(renderable)
            return
        page = io.StringIO()
        console(file=page, width=_ENDLESS).print(renderable)
        for line in page.getvalue().splitlines():
            self.console.print(line.rstrip(), soft_wrap=True)

    def note(self, text: str) -> None:
        """A word beside the result, on stderr, so that it never gets into a pipe."""
        self._errors.print(clean(text), soft_wrap=True)

    def hint(self, text: str) -> None:
        """A note that only people need."""
        if self.live:
            self.note(text)

    def error(self, message: str, code: str, exit_code: int) -> None:
        if self.as_json:
            told = {"error": {"code": code, "message": mask_text(message), "exit": exit_code}}
            self._errors.print(json.dumps(told, ensure_ascii=True), soft_wrap=True)
        else:
            self._errors.print(Text.assemble(("error: ", "bold red"), clean(message)), soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        """A table that fits the terminal; in a pipe plain columns, nothing cut."""
        if not self.on_terminal:
            for line in _aligned(columns, rows):
                self.line(line)
            return
        kept, widths = _fitted(columns, rows, self.console.width)
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for index, width in zip(kept, widths, strict=True):
            justify: Literal["left", "right"] = "right" if columns[index].right else "left"
            table.add_column(columns[index].title, justify=justify, width=width, no_wrap=True, overflow="ellipsis")
        for row in rows:
            table.add_row(*(_text(row[index]) for index in kept))
        self.console.print(table)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # as any other stream would; what that means is decided in one place


def console(*, stderr: bool = False, file: IO[str] | None = None, width: int | None = None) -> Console:
    """Markup, emoji codes and highlighting are off: text is printed as it is."""
    return _Console(stderr=stderr, file=file, width=width, markup=False, emoji=False, highlight=False)


def styled(text: str, style: str) -> Text:
    return Text(clean(text), style=style)


def plain(value: Any) -> Any:
    """Plain JSON values of ours: ids and times as text, secrets in texts masked."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {mask_text(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


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


def _aligned(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
    cells = [[column.title for column in columns], *([clean(str(cell)) for cell in row] for row in rows)]
    widths = [max(cell_len(row[index]) for row in cells) for index in range(len(columns))]
    lines = []
    for row in cells:
        padded = []
        for text, width, column in zip(row, widths, columns, strict=True):
            fill = " " * (width - cell_len(text))
            padded.append(fill + text if column.right else text + fill)
        lines.append("  ".join(padded).rstrip())
    return lines
