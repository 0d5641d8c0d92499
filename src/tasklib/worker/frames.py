"""JSON frames over a pipe, between a worker and its child processes: four bytes of length, then the text."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

from tasklib.core.outcome import Cancelled, Completed, Failed, Outcome, Released, Snoozed

_LENGTH = struct.Struct(">I")
_KINDS = {kind.__name__: kind for kind in (Completed, Failed, Snoozed, Released, Cancelled)}


def send(fd: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(fd, view) :]


def receive(fd: int) -> dict[str, Any] | None:
    """None at the end of the pipe: the other side is gone."""
    head = _read(fd, _LENGTH.size)
    data = _read(fd, _LENGTH.unpack(head)[0]) if head is not None else None
    if data is None:
        return None
    message: dict[str, Any] = json.loads(data)
    return message


def pack(outcome: Outcome) -> dict[str, Any]:
    names = outcome._fields if isinstance(outcome, Completed) else outcome.__slots__
    fields = {name: getattr(outcome, name) for name in names if name != "cause"}  # an exception stays where it was
    return {"kind": type(outcome).__name__, **fields}


def unpack(message: dict[str, Any]) -> Outcome:
    fields = dict(message)
    outcome: Outcome = _KINDS[fields.pop("kind")](**fields)
    return outcome


def _read(fd: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        try:
            part = os.read(fd, min(size - len(data), 1 << 20))
        except OSError:
            return None
        if not part:
            return None
        data += part
    return data
