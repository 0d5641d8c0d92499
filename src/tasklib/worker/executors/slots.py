"""A worker's concurrency: one number of permits, shared by the executors that run tasks.

An executor is a way of running: threads, coroutines, child processes. Claims wait in their executor, in order; whoever
has waited longest gets the next permit.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from tasklib.worker.in_flight import Execution, Stop


class Executor(Protocol):
    waiting: deque[Execution]

    def start(self) -> None:
        """Run what waits at the head: one permit is the executor's until it calls `Slots.finished`."""
        ...

    def interrupt(self, execution: Execution, reason: Stop) -> None:
        """Make a running execution end, as far as this executor can."""
        ...

    def abandon(self, execution: Execution) -> None:
        """Go on without an execution that would not end."""
        ...

    def close(self) -> None: ...


class Slots:
    def __init__(self, size: int) -> None:
        self.size = size
        self._free = size
        self._withheld = 0
        self._lock = threading.Lock()
        self._executors: tuple[Executor, ...] = ()

    def open(self, executors: Sequence[Executor]) -> None:
        self._executors = tuple(executors)

    @property
    def waiting(self) -> int:
        return sum(len(executor.waiting) for executor in self._executors)

    @property
    def free(self) -> int:
        """How many more could start at once."""
        return max(0, self._free - self.waiting)

    @property
    def running(self) -> int:
        return self.size - self._free

    @property
    def head(self) -> Execution | None:
        """The execution that is to start next: of those that wait, the one that has waited longest."""
        executor = self._first()
        try:
            return None if executor is None else executor.waiting[0]
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
                executor = self._first() if self._free > 0 else None
                if executor is None:
                    return
                self._free -= 1
            executor.start()

    def finished(self, executor: Executor) -> bool:
        """A permit's execution has ended. True: the executor keeps the permit and goes on with its next."""
        if executor.waiting and self._free >= 0 and self._first() is executor:
            return True
        with self._lock:
            self._free += 1
        self.fill(1)
        return False

    def withhold(self) -> None:
        """A permit stays with an execution that would not end."""
        with self._lock:
            self._withheld += 1

    def restore(self) -> None:
        """Such an execution has ended after all: a permit that is withheld is free again."""
        with self._lock:
            if not self._withheld:
                return
            self._withheld -= 1
            self._free += 1
        self.fill(1)

    @property
    def working(self) -> int:
        """All but those that are withheld."""
        return self.size - self._withheld

    @property
    def exhausted(self) -> bool:
        """All are withheld: nothing can start any more."""
        return self.working <= 0

    def withdraw(self) -> list[Execution]:
        """Takes back everything that has not started."""
        taken = []
        for executor in self._executors:
            while True:
                try:
                    taken.append(executor.waiting.pop())
                except IndexError:
                    break
        return taken

    def _first(self) -> Executor | None:
        if len(self._executors) == 1:
            return self._executors[0] if self._executors[0].waiting else None
        best, lowest = None, None
        for executor in self._executors:
            try:
                sequence = executor.waiting[0].sequence
            except IndexError:
                continue
            if lowest is None or sequence < lowest:
                best, lowest = executor, sequence
        return best
