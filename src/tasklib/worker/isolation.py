"""Isolation: tasks that were lost with their workers again and again start apart from all others.

One that kills its worker takes along what runs beside it, and what fell together falls due together. So a task that was
lost twice in a row (or once, with one attempt left) starts only when nothing else is in flight, and alone for a moment:
then whoever kills workers kills one that runs nothing else, and nobody wears out a neighbour's attempts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tasklib.core.outcome import Outcome, Released
from tasklib.worker.in_flight import Execution, InFlight

TRIAL_SECONDS = 2.0
"""What has run for so long may have others beside it: a task may take hours."""
DRAIN_SECONDS = 1.25 * TRIAL_SECONDS
"""So long nothing is claimed at most, for what runs to end or to have run for long enough."""
HOLD_SECONDS = 10.0
"""So long such a task is put off where that did not help."""


class Isolation:
    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._lone: Execution | None = None
        self._drain_until: float | None = None
        self._expected = False
        """The next claim may well bring such a task: it asks for one task."""

    def closed_for(self) -> float:
        """Seconds for which nothing is to be claimed; 0: go on."""
        now = time.monotonic()
        if self._lone is not None:
            left = TRIAL_SECONDS if self._lone.started is None else self._lone.started + TRIAL_SECONDS - now
            if self._lone in self._in_flight and left > 0:
                return left
            self._lone = None
        if self._drain_until is not None and now < self._drain_until and not self._clear(now):
            return self._drain_until - now
        return 0.0

    def room(self, wanted: int, prefetch: int) -> tuple[int, int]:
        return (min(wanted, 1), 0) if self._expected else (wanted, prefetch)

    def admit(self, claimed: Sequence[Execution]) -> tuple[int, Outcome]:
        """How many of those that were claimed together start, and what becomes of the rest. One that must run alone
        starts as the only one that was claimed, and with nothing beside it that it could take along."""
        drained, self._drain_until = self._drain_until is not None, None
        place = next((place for place, execution in enumerate(claimed) if _must_run_alone(execution)), None)
        self._expected = place is not None
        if place is None:
            return len(claimed), Released()
        if len(claimed) == 1:
            now = time.monotonic()
            if self._clear(now, claimed[0]):
                self._lone = claimed[0]
                return 1, Released()
            if drained or self._in_vain(now):
                self._expected = False
                return 0, Released(HOLD_SECONDS)
        self._drain_until = time.monotonic() + DRAIN_SECONDS
        return place, Released()

    def _clear(self, now: float, but: Execution | None = None) -> bool:
        """Whatever is in flight has proved itself, and could afford to be lost."""
        return not any(
            execution is not but and (_is_young(execution, now) or execution.claim.is_last)
            for execution in self._in_flight
        )

    def _in_vain(self, now: float) -> bool:
        """Something is in the way that may well stay for long."""
        return any(execution.claim.is_last and not _is_young(execution, now) for execution in self._in_flight)


def _must_run_alone(execution: Execution) -> bool:
    """What has a process of its own takes nobody along."""
    return execution.claim.isolated and execution.task_type.options.executor != "process"


def _is_young(execution: Execution, now: float) -> bool:
    """Or over, and not settled: its outcome would be lost."""
    return execution.started is None or execution.ended is not None or now - execution.started < TRIAL_SECONDS
