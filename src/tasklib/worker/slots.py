"""A worker's concurrency: one number of permits, shared by the lanes that run tasks.

A lane is a way of running: threads, coroutines, child processes. Claims wait in their lane, in order; whoever has
waited longest gets the next permit.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from tasklib.worker.flight import Flight, Stop


class Lane(Protocol):
    waiting: deque[Flight]

    def start(self) -> None:
        """Run what waits at the head: one permit is the lane's until it calls `Slots.finished`."""
        ...

    def interrupt(self, flight: Flight, reason: Stop) -> None:
        """Make a running flight end, as far as this lane can."""
        ...

    def abandon(self, flight: Flight) -> None:
        """Go on without a flight that would not end."""
        ...

    def close(self) -> None: ...


class Slots:
    def __init__(self, size: int) -> None:
        self.size = size
        self._free = size
        self._withheld = 0
        self._lock = threading.Lock()
        self._lanes: tuple[Lane, ...] = ()

    def open(self, lanes: Sequence[Lane]) -> None:
        self._lanes = tuple(lanes)

    @property
    def waiting(self) -> int:
        return sum(len(lane.waiting) for lane in self._lanes)

    @property
    def free(self) -> int:
        """How many more could start at once."""
        return max(0, self._free - self.waiting)

    @property
    def running(self) -> int:
        return self.size - self._free

    @property
    def head(self) -> int | None:
        """The number of the flight that is to start next."""
        lane = self._first()
        try:
            return None if lane is None else lane.waiting[0].sequence
        except IndexError:  # started this moment
            return None

    def resize(self, size: int) -> None:
        """More permits, or fewer: then those beyond the new number go as they are given back."""
        with self._lock:
            self._free += size - self.size
            self.size = size
        self.fill()

    def fill(self, most: int | None = None) -> None:
        """Gives free permits to those who wait, `most` of them if it is said."""
        for _ in count() if most is None else range(most):
            with self._lock:
                lane = self._first() if self._free > 0 else None
                if lane is None:
                    return
                self._free -= 1
            lane.start()

    def finished(self, lane: Lane) -> bool:
        """A permit's flight has ended. True: the lane keeps the permit and goes on with its next."""
        if lane.waiting and self._free >= 0 and self._first() is lane:
            return True
        with self._lock:
            self._free += 1
        self.fill(1)
        return False

    def withhold(self) -> None:
        """A permit stays with a flight that would not end."""
        with self._lock:
            self._withheld += 1

    def restore(self) -> None:
        """Such a flight has ended after all: a permit that is withheld is free again."""
        with self._lock:
            if not self._withheld:
                return
            self._withheld -= 1
            self._free += 1
        self.fill(1)

    @property
    def exhausted(self) -> bool:
        """All are withheld: nothing can start any more."""
        return self._withheld >= self.size

    def withdraw(self) -> list[Flight]:
        """Takes back everything that has not started."""
        taken = []
        for lane in self._lanes:
            while True:
                try:
                    taken.append(lane.waiting.pop())
                except IndexError:
                    break
        return taken

    def _first(self) -> Lane | None:
        if len(self._lanes) == 1:
            return self._lanes[0] if self._lanes[0].waiting else None
        best, lowest = None, None
        for lane in self._lanes:
            try:
                sequence = lane.waiting[0].sequence
            except IndexError:
                continue
            if lowest is None or sequence < lowest:
                best, lowest = lane, sequence
        return best
