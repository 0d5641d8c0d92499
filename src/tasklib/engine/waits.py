"""Handlers that wait for tasks of their own queue, each in a slot of its worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TypeAlias
from uuid import UUID

from tasklib.core.task import Task, TaskState, is_terminal

Waiting: TypeAlias = tuple[UUID, int]
"""The claim whose handler waits: the task's id and version."""


class Waits:
    """Of one worker. A handler may wait for several tasks at once: its slot is one all the same."""

    def __init__(self, worker_id: str, slots: Callable[[], int], names: Callable[[], Collection[str]]) -> None:
        self._worker_id = worker_id
        self._slots = slots
        self._names = names
        self._lock = threading.Lock()
        self.awaited: dict[Waiting, list[UUID]] = {}

    def begin(self, waiting: Waiting, awaited: UUID) -> None:
        with self._lock:
            self.awaited.setdefault(waiting, []).append(awaited)

    def awaited_by_all(self, waiting: Waiting) -> list[UUID]:
        """What the slots wait for, if all of them wait and this one began last: it is the one to give way."""
        with self._lock:
            if len(self.awaited) < self._slots() or next(reversed(self.awaited), None) != waiting:
                return []
            return [task_id for each in self.awaited.values() for task_id in each]

    def end(self, waiting: Waiting, awaited: UUID) -> None:
        with self._lock:
            mine = self.awaited.get(waiting, [])
            if awaited in mine:
                mine.remove(awaited)
            if not mine:
                self.awaited.pop(waiting, None)

    def forget(self, waiting: Waiting) -> None:
        """A handler that was given up, and has its slot no more."""
        with self._lock:
            self.awaited.pop(waiting, None)

    def is_stuck(self, awaited: Task | None) -> bool:
        """Whether a task needs a slot of this worker to get on. One that another worker runs does not."""
        if awaited is None or is_terminal(awaited) or awaited.name not in self._names():
            return False
        return awaited.state != TaskState.RUNNING or awaited.worker_id == self._worker_id
