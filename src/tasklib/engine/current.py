"""What a handler can learn of the task it is running."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from tasklib.core.errors import TaskLibError
from tasklib.core.schedules import slot_of

log = logging.getLogger("tasklib.worker")


@dataclass(frozen=True, slots=True)
class RunningTask:
    """The task that this code runs in."""

    id: UUID
    name: str
    attempt: int
    """1 for the first."""
    tags: dict[str, Any]
    deadline: float | None
    """On `time.monotonic()`; None without a timeout."""
    is_last: bool = False
    """No attempt comes after this one."""
    _arguments: Callable[[], Any] = field(default=dict, repr=False)
    _queue: str = field(default="", repr=False)
    """The database URL of its worker."""
    _lost: Callable[[], bool] = field(default=lambda: False, repr=False)
    _cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)

    @property
    def arguments(self) -> Any:
        """As the handler takes them: keyword arguments, or the payload. Made anew each time: to change them changes
        nothing of the run."""
        return self._arguments()

    @property
    def slot(self) -> datetime | None:
        """The time for which a schedule submitted it. None: no schedule did."""
        return slot_of(self.tags)

    @property
    def seconds_left(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def lease_lost(self) -> bool:
        """True once another worker may have this task: nothing done from here on will be recorded."""
        return self._lost()

    @property
    def cancel_requested(self) -> bool:
        return self._cancelled()


running: ContextVar[Callable[[], RunningTask] | None] = ContextVar("tasklib_running", default=None)


def current_task() -> RunningTask:
    """The task that is running here. Raises outside of one."""
    make = running.get()
    if make is None:
        raise TaskLibError("current_task() was called outside of a running task")
    return make()


def warn_of_waiting(awaited: UUID, queue: str) -> None:
    """To be called before waiting for a task: a handler that waits for one of its own queue holds a slot meanwhile."""
    make = running.get()
    waiting = None if make is None else make()
    if waiting is not None and waiting._queue == queue:
        log.warning(
            "task %s (%s) waits for task %s inside its handler: its slot is taken meanwhile, and if no other is free "
            "both wait for ever; raise Snooze to look again later, or let the awaited task submit what comes next",
            waiting.id,
            waiting.name,
            awaited,
        )
