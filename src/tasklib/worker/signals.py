"""Signals to stop: the first one asks, a later one insists."""

from __future__ import annotations

import signal
import time

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
ECHO_SECONDS = 1.0
"""Signals this close to the first are the same one: a terminal or a service manager signals all processes of a group,
and a supervisor among them passes it on."""


class StopSignals:
    def __init__(self) -> None:
        self._first: float | None = None
        self.leaving = False
        """Told a second time: leave at once."""

    def count(self) -> bool:
        """Notes a signal. False: it says nothing new."""
        now = time.monotonic()
        if self._first is None:
            self._first = now
            return True
        if self.leaving or now < self._first + ECHO_SECONDS:
            return False
        self.leaving = True
        return True
