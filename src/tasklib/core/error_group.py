"""Which errors are the same one: the same class of exception, raised at the same place."""

from __future__ import annotations

import re
from typing import NamedTuple

_FRAME = re.compile(r'^ +File "(?P<path>[^"\n]*)", line (?P<line>\d+)(?:, in (?P<function>.*))?$', re.MULTILINE)
_CLASS = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?", re.DOTALL)
_FOREIGN = ("/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ", "\\site-packages\\", "\\Lib\\")
_TRACEBACK = "Traceback (most recent call last):"
# Ids in any form, addresses, and numbers: what differs from one task to the next.
_CHANGING = re.compile(
    r"\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b(?=\w*\d)\w+\b|\d+"
)
_LONGEST_MESSAGE = 300


class ErrorGroup(NamedTuple):
    """What the errors of one group have in common."""

    type: str
    """The class of the exception, with its module; empty where the text names none."""
    place: str
    """The file and the function that raised it, the last ones of the application's own; empty without a traceback."""
    message: str
    """Where no place is known: what was said, with `#` for what changes."""


def group_of(error: str) -> ErrorGroup:
    line = last_line(error)
    match = _CLASS.fullmatch(line)
    name, message = ("", line) if match is None else (match["type"], match["message"] or "")
    place = _place(error)
    return ErrorGroup(name, place, "" if place else _CHANGING.sub("#", message)[:_LONGEST_MESSAGE])


def last_line(error: str) -> str:
    """What went wrong, in one line: the last of a traceback, past the indented notes that may follow the exception."""
    lines = [line for line in error.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line[0].isspace()), lines[-1] if lines else "").strip()


def _place(error: str) -> str:
    """In the last traceback of the text: those before it are of what led to it."""
    frames = list(_FRAME.finditer(error[error.rfind(_TRACEBACK) + 1 :])) if _TRACEBACK in error else []
    own = [frame for frame in frames if not any(part in frame["path"] for part in _FOREIGN)]
    if not frames:
        return ""
    frame = (own or frames)[-1]
    path = "/".join(re.split(r"[/\\]", frame["path"])[-2:])
    return f"{path} in {frame['function']}" if frame["function"] else path
