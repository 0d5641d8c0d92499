"""The two clocks of a queue in a file.

The wall clock says what is due, and is SQLite's. It can be set while tasks run, so it cannot say whose lease has run
out: that is the steady clock's, which counts from the start of the machine. All processes on a file are on one machine
and count alike. What they add, so that the steady clock shows the time of day, the first of them to open the file after
a start of the machine writes into it; it stays until the next start, however the wall clock is set.

Where a system does not tell one start from another (Linux and macOS do), both are the wall clock.
"""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import apsw

from tasklib.stores.sql.sqlite.batches import SQL
from tasklib.stores.sql.sqlite.rows import seconds, written

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self, offset: float) -> None:
        self.offset = offset
        """Seconds added to both clocks for tests."""
        self._added_ms: int | None = None
        """What makes the time since the start of the machine a time of day."""

    def steady(self) -> str:
        """Now, by the clock that is never set."""
        since_start = time.time() * 1000 if self._added_ms is None else uptime() * 1000 + self._added_ms
        return written(_EPOCH + timedelta(milliseconds=since_start + self.offset * 1000))

    def parameter(self, name: str) -> str:
        """What the statements ask of the clocks."""
        if name == "offset":
            return seconds(self.offset)
        if name == "steady":
            return self.steady()
        raise KeyError(name)

    def read(self, connection: apsw.Connection) -> bool:
        """Takes what the others add. False: nobody has written it since this machine started."""
        boot = boot_id()
        if boot is not None:
            self._added_ms = connection.execute(SQL["steady_clock"], {"boot": boot}).get
        return boot is None or self._added_ms is not None

    def agree(self, connection: apsw.Connection) -> None:
        """Writes it, inside the caller's transaction, unless another process was first."""
        added_ms = round((time.time() - uptime()) * 1000)
        connection.execute(SQL["forget_steady_clocks"], {"boot": boot_id()})
        connection.execute(SQL["set_steady_clock"], {"boot": boot_id(), "added_ms": added_ms})
        self.read(connection)


def uptime() -> float:
    """Seconds since the machine started, those that it slept included."""
    # macOS counts them in its monotonic clock; Linux has a clock of its own for it.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@cache
def boot_id() -> str | None:
    """Another one after each start of the machine. None: this system does not tell."""
    try:
        if sys.platform == "linux":
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            # A container may have its own count of the seconds.
            return f"{boot} {Path('/proc/self/ns/time').readlink()}"
        if sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
            printed = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
            return printed.stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        pass
    return None
