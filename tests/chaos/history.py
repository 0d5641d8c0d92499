"""The history of a chaos run: a file of JSON lines that all its processes append to.

Each line is one write to a descriptor in append mode, so a process that is killed leaves whole lines only, and lines of
several processes never mix. `t` is the monotonic clock, which all processes of a machine share.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HISTORY = "CHAOS_HISTORY"
"""The variable that names the file to processes, and to the children of workers."""

Line = dict[str, Any]


class History:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._pid = 0

    def note(self, event: str, **fields: Any) -> None:
        if self._fd is None or self._pid != os.getpid():
            self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._pid = os.getpid()
        line = {"event": event, "t": round(time.monotonic(), 6), "pid": self._pid, **fields}
        data = (json.dumps(line, separators=(",", ":"), default=str) + "\n").encode()
        written = os.write(self._fd, data)
        assert written == len(data), "a line was torn: the disk is full"

    def lines(self) -> Iterator[Line]:
        with self.path.open("rb") as file:
            for line in file:
                yield json.loads(line)

    def close(self) -> None:
        if self._fd is not None and self._pid == os.getpid():
            os.close(self._fd)
        self._fd = None


def from_environment() -> History:
    """Outside of a run, nothing is kept."""
    return History(Path(os.environ.get(HISTORY, os.devnull)))
