"""How long tasks have been running lately: what prefetching goes by."""

from __future__ import annotations

PREFETCH_LIMIT = 3000
HORIZON_SECONDS = 0.1
"""Prefetch what is expected to start within this time."""
SHORTEST_SECONDS = 1e-5
SLICE_SECONDS = 0.005
"""So long one thread may be busy with what waits before another is woken: as long as the interpreter lets it run."""
MEMORY = 50
"""About how many tasks the average remembers."""


class RunTimes:
    """A moving average of run times. A long task counts at once, so that nothing is fetched to wait behind it."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self._mean: float | None = None

    def add(self, count: int, seconds: float) -> None:
        """`count` tasks have ended, after `seconds` of running in all."""
        mean = seconds / count
        if self._mean is None:
            self._mean = mean
        else:
            weight = min(1.0, count / MEMORY) if mean < 4 * self._mean else 1.0
            self._mean += weight * (mean - self._mean)

    @property
    def prefetch(self) -> int:
        """How many more than can start at once are worth claiming."""
        if self._mean is None:
            return 0
        return min(PREFETCH_LIMIT, int(self.concurrency * HORIZON_SECONDS / max(self._mean, SHORTEST_SECONDS)))

    def threads_to_wake(self, waiting: int) -> int | None:
        """How many are worth waking for what waits: to wake a thread costs more than to run a short task. None: as many
        as there are permits."""
        return None if self._mean is None else 1 + int(waiting / self.slice_size)

    @property
    def slice_size(self) -> float:
        """How many tasks one thread runs within SLICE_SECONDS."""
        return SLICE_SECONDS / max(self._mean or SLICE_SECONDS, SHORTEST_SECONDS)
