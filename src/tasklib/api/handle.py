"""What a typed submit returns: the task, and its result in the type the function promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar
from uuid import UUID

from tasklib.api.sync import run_sync
from tasklib.api.waiting import wait_for_task
from tasklib.core.durations import Seconds
from tasklib.core.errors import TaskCancelled, TaskFailed
from tasklib.core.redact import mask_text
from tasklib.core.registry import TaskType
from tasklib.core.task import Task, is_completed, is_failed
from tasklib.engine.engine import Engine

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class TaskHandle(Generic[R_co]):
    """A submitted task. Each method has an `_async` twin."""

    id: UUID
    created: bool
    """False: the idempotency key or the unique key was known, and this is the task it stands for."""
    _task_type: TaskType = field(repr=False)
    _engine: Engine = field(repr=False)
    replaced: bool = False
    """That task had not started, and has taken over what was submitted."""

    async def get_async(self) -> Task:
        return await self._engine.get_or_raise(self.id)

    def get(self) -> Task:
        """The task as it is now."""
        return run_sync(self.get_async())

    async def wait_async(self, timeout: Seconds | None = None) -> Task:
        return await wait_for_task(self._engine, self.id, timeout)

    def wait(self, timeout: Seconds | None = None) -> Task:
        """The finished task, whatever it came to. Raises WaitTimeout."""
        return run_sync(self.wait_async(timeout))

    async def result_async(self, timeout: Seconds | None = None) -> R_co:
        task = await self.wait_async(timeout)
        if is_completed(task):
            value: R_co = self._task_type.decode_result((task.result or {}).get("value"))
            return value
        kind = TaskFailed if is_failed(task) else TaskCancelled
        reason = f": {mask_text(task.error)}" if task.error else ""
        raise kind(f"task {task.id} ({task.name}) {task.state}{reason}", task_id=task.id, state=task.state)

    def result(self, timeout: Seconds | None = None) -> R_co:
        """What the function returned. Raises WaitTimeout, or TaskFailed or TaskCancelled with the error's text, or
        InvalidValue if the stored result does not fit the function's annotation (any more)."""
        return run_sync(self.result_async(timeout))

    async def cancel_async(self) -> Task:
        return await self._engine.cancel(self.id)

    def cancel(self) -> Task:
        """Cancels it, or asks it to stop if it is running."""
        return run_sync(self.cancel_async())
