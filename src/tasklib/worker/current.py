"""What a handler can learn of the task it is running."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tasklib.core.errors import TaskLibError


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
    _lost: Callable[[], bool] = field(default=lambda: False, repr=False)
    _cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)

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
