"""What is printed, and how: tables and lines for people, JSON for programs, notes and errors on stderr."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from tasklib.cli.text import clean
from tasklib.cli.times import iso
from tasklib.core.redact import mask_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

STATE_STYLES = {
    "pending": "cyan",
    "running": "blue",
    "completed": "green",
    "waiting": "yellow",
    "failed": "red",
    "cancelled": "magenta",
}


_ENDLESS = 1_000_000


class Column(NamedTuple):
    title: str
    right: bool = False
    whole: bool = False
    """Never cut short: people copy it."""
    optional: bool = False
    """Left out where the terminal is narrow."""


Cell: TypeAlias = "str | Text"


class Printer:
    """One for each command. With `as_json` stdout gets one JSON value and nothing else."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        made: Console = _terminal().console()
        return made

    @cached_property
    def _errors(self) -> Console:
        made: Console = _terminal().console(stderr=True)
        return made

    @property
    def on_terminal(self) -> bool:
        """Asked of the stream itself: a wish for colours in a pipe does not make it a terminal."""
        return sys.stdout.isatty()

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
        text = clean(text) if isinstance(text, str) else text
        if isinstance(text, str) and not self.on_terminal:
            _write(sys.stdout, text)
        else:
            self.console.print(text, soft_wrap=True)

    def show(self, renderable: RenderableType) -> None:
        """Fitted to the terminal; in a pipe as wide as it is."""
        if self.on_terminal:
            self.console.print(renderable)
            return
        page = io.StringIO()
        _terminal().console(file=page, width=_ENDLESS).print(renderable)
        for line in page.getvalue().splitlines():
            self.console.print(line.rstrip(), soft_wrap=True)

    def note(self, text: str) -> None:
        """A word beside the result, on stderr, so that it never gets into a pipe."""
        if sys.stderr.isatty():
            self._errors.print(clean(text), soft_wrap=True)
        else:
            _write(sys.stderr, clean(text))

    def hint(self, text: str) -> None:
        """A note that only people need."""
        if self.live:
            self.note(text)

    def error(self, message: str, code: str, exit_code: int) -> None:
        if self.as_json:
            told = {"error": {"code": code, "message": mask_text(message), "exit": exit_code}}
            self._errors.print(json.dumps(told, ensure_ascii=True), soft_wrap=True)
        else:
            text = _terminal().Text.assemble(("error: ", "bold red"), clean(message))
            self._errors.print(text, soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        """A table that fits the terminal; in a pipe plain columns, nothing cut."""
        if not self.on_terminal:
            for line in _aligned(columns, rows):
                self.line(line)
            return
        self.console.print(_terminal().table(columns, rows, self.console.width))


def _terminal() -> Any:
    """Rich takes longer to import than many a command takes, and a line of plain text in a pipe does without."""
    return import_module("tasklib.cli.terminal")


def _write(stream: IO[str], line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def styled(text: str, style: str) -> Text:
    made: Text = _terminal().Text(clean(text), style=style)
    return made


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


def _width(text: str) -> int:
    return len(text) if text.isascii() else int(_terminal().cell_len(text))


def _aligned(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
    cells = [[column.title for column in columns], *([clean(str(cell)) for cell in row] for row in rows)]
    widths = [max(_width(row[index]) for row in cells) for index in range(len(columns))]
    lines = []
    for row in cells:
        padded = []
        for text, width, column in zip(row, widths, columns, strict=True):
            fill = " " * (width - _width(text))
            padded.append(fill + text if column.right else text + fill)
        lines.append("  ".join(padded).rstrip())
    return lines
