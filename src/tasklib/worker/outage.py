"""The end of an outage, told once: its beginning is told by whoever finds the queue out of reach."""

from __future__ import annotations

import logging
import time

log = logging.getLogger("tasklib.worker")


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
