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
from tasklib.engine.parents import Parents
from tasklib.engine.waits import Waits

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
    flow_id: UUID | None = None
    """The flow it is in: the id of the flow's first task."""
    _arguments: Callable[[], Any] = field(default=dict, repr=False)
    _queue: str = field(default="", repr=False)
    """The database URL of its worker."""
    _version: int = field(default=0, repr=False)
    _waits: Waits | None = field(default=None, repr=False)
    """Of its worker. None: in a child process, whose worker does not see what it waits for."""
    _parents: Callable[[], Parents] | None = field(default=None, repr=False)
    _lost: Callable[[], bool] = field(default=lambda: False, repr=False)
    _cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)

    @property
    def arguments(self) -> Any:
        """As the handler takes them: keyword arguments, or the payload. Made anew each time: to change them changes
        nothing of the run."""
        return self._arguments()

    def parents(self) -> Parents:
        """The tasks that it waited for, and what became of them: iterate over it with `for`, or with `async for` in an
        `async def` task. However many there are, a few hundred at a time are read."""
        if self._parents is None:
            raise TaskLibError("current_task().parents() is not to be had here")
        return self._parents()

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


def flow_of_handler(queue: str) -> UUID | None:
    """The flow of the task that runs here. None: none of this queue does, or it is in no flow."""
    make = running.get()
    task = None if make is None else make()
    return None if task is None or task._queue != queue else task.flow_id


def warn_of_waiting(awaited: UUID, queue: str) -> RunningTask | None:
    """To be called before waiting for a task: a handler that waits for one of its own queue holds a slot meanwhile.
    The task of that handler; None: no handler of this queue waits here."""
    make = running.get()
    waiting = None if make is None else make()
    if waiting is None or waiting._queue != queue:
        return None
    log.warning(
        "task %s (%s) waits for task %s inside its handler: its slot is taken meanwhile, and if no other is free both "
        "wait for ever; give the awaited task's .output to the task that needs it, or submit that with after=[...], or "
        "raise Snooze to look again later",
        waiting.id,
        waiting.name,
        awaited,
    )
    return waiting
