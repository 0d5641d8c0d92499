"""Lines of CSV that a spreadsheet shows and does not obey."""

from __future__ import annotations

from collections.abc import Iterable

_OBEYED = ("=", "+", "-", "@", "\t", "\r")
"""What begins so, a spreadsheet takes for a formula."""
_QUOTED = frozenset('",\r\n')


def csv_line(cells: Iterable[str | int | float | None]) -> str:
    """Numbers as they are, texts quoted where they must be. One that would be a formula gets an apostrophe first."""
    return ",".join(map(_cell, cells)) + "\r\n"


def _cell(value: str | int | float | None) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    text = f"'{value}" if value.startswith(_OBEYED) else value
    return '"' + text.replace('"', '""') + '"' if _QUOTED.intersection(text) else text
