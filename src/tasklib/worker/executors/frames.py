"""JSON frames over a pipe, between a worker and its child processes: four bytes of length, then the text.

The end of a pipe does not tell that the other side is gone: a process that it forked may hold the pipe open. So the
worker gives a second pipe, `gone`, which has something to read once nobody will answer any more.
"""

from __future__ import annotations

import json
import os
import select
import struct
from typing import Any

from tasklib.core.outcome import Cancelled, Completed, Failed, Outcome, Released, Snoozed

_LENGTH = struct.Struct(">I")
_KINDS = {kind.__name__: kind for kind in (Completed, Failed, Snoozed, Released, Cancelled)}


def send(fd: int, message: dict[str, Any], gone: int | None = None) -> bool:
    """False: the other side is gone. With `gone`, the pipe must not be blocking."""
    data = json.dumps(message).encode()
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        if not _ready(fd, select.POLLOUT, gone):
            return False
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            continue
        except OSError:
            return False
    return True


def receive(fd: int, gone: int | None = None) -> dict[str, Any] | None:
    """None: the other side is gone."""
    head = _read(fd, _LENGTH.size, gone)
    data = _read(fd, _LENGTH.unpack(head)[0], gone) if head is not None else None
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


def _read(fd: int, size: int, gone: int | None) -> bytes | None:
    data = b""
    while len(data) < size:
        try:
            part = os.read(fd, min(size - len(data), 1 << 20)) if _ready(fd, select.POLLIN, gone) else b""
        except OSError:
            return None
        if not part:
            return None
        data += part
    return data


def _ready(fd: int, event: int, gone: int | None) -> bool:
    """Waits until the pipe is ready, or the other side gone. What was written before that is still read."""
    if gone is None:
        return True
    poll = select.poll()
    poll.register(fd, event)
    poll.register(gone, select.POLLIN)
    return fd in dict(poll.poll())
