"""Suspects: tasks that were lost with their workers again and again start apart from all others.

One that kills its worker takes along what runs beside it, and what fell together falls due together. So a task that was
lost twice in a row (or once, with one attempt left) starts only when nothing else is in flight, and alone for a moment:
then whoever kills workers kills one that runs nothing else, and nobody wears out a neighbour's attempts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tasklib.core.outcome import Outcome, Released, Snoozed
from tasklib.worker.flight import Flight, Flights

TRIAL_SECONDS = 2.0
"""What has run for so long may have others beside it: a task may take hours."""
DRAIN_SECONDS = 1.25 * TRIAL_SECONDS
"""So long nothing is claimed at most, for what runs to end or to have run for long enough."""
HOLD_SECONDS = 10.0
"""So long a suspect is put off where that did not help."""


class Apart:
    def __init__(self, flights: Flights) -> None:
        self._flights = flights
        self._lone: Flight | None = None
        self._drain_until: float | None = None
        self._expected = False
        """The next claim may well bring a suspect: it asks for one task."""

    def closed_for(self) -> float:
        """Seconds for which nothing is to be claimed; 0: go on."""
        now = time.monotonic()
        if self._lone is not None:
            left = TRIAL_SECONDS if self._lone.started is None else self._lone.started + TRIAL_SECONDS - now
            if self._lone in self._flights and left > 0:
                return left
            self._lone = None
        if self._drain_until is not None and now < self._drain_until and not self._clear(now):
            return self._drain_until - now
        return 0.0

    def room(self, wanted: int, prefetch: int) -> tuple[int, int]:
        return (min(wanted, 1), 0) if self._expected else (wanted, prefetch)

    def admit(self, claimed: Sequence[Flight]) -> tuple[int, Outcome]:
        """How many of those that were claimed together start, and what becomes of the rest. A suspect starts as the
        only one that was claimed, and with nothing beside it that it could take along."""
        drained, self._drain_until = self._drain_until is not None, None
        place = next((place for place, flight in enumerate(claimed) if _is_suspect(flight)), None)
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
                return 0, Snoozed(HOLD_SECONDS)
        self._drain_until = time.monotonic() + DRAIN_SECONDS
        return place, Released()

    def _clear(self, now: float, but: Flight | None = None) -> bool:
        """Whatever is in flight has proved itself, and could afford to be lost."""
        return not any(
            flight is not but and (_is_young(flight, now) or flight.claim.is_last) for flight in self._flights
        )

    def _in_vain(self, now: float) -> bool:
        """Something is in the way that may well stay for long."""
        return any(flight.claim.is_last and not _is_young(flight, now) for flight in self._flights)


def _is_suspect(flight: Flight) -> bool:
    """What has a process of its own takes nobody along."""
    return flight.claim.apart and flight.task_type.options.executor != "process"


def _is_young(flight: Flight, now: float) -> bool:
    """Or over, and not settled: its outcome would be lost."""
    return flight.started is None or flight.ended is not None or now - flight.started < TRIAL_SECONDS
