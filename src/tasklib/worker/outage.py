"""Outages in the log: their end is told once, and what lasts is repeated less and less often."""

from __future__ import annotations

import logging
import time

log = logging.getLogger("tasklib.worker")

LONGEST_PAUSE_SECONDS = 60.0


class Outage:
    def __init__(self, where: str) -> None:
        self._where = where
        self._since: float | None = None

    def noticed(self) -> None:
        if self._since is None:
            self._since = time.monotonic()

    def over(self) -> None:
        """To be called whenever a call got through."""
        if self._since is not None:
            log.info("connected again to %s, after %.1f s", self._where, time.monotonic() - self._since)
            self._since = None


class Reminder:
    """When to say again what has not changed: at once, then after twice as long each time, a minute apart at most."""

    def __init__(self, first_seconds: float) -> None:
        self._pause = first_seconds
        self._next = 0.0

    def is_due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next, self._pause = now + self._pause, min(self._pause * 2, LONGEST_PAUSE_SECONDS)
        return True
