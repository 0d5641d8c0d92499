"""What a typed submit returns: the task, and its result in the type the function promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from tasklib.api.sync import run_sync
from tasklib.api.waiting import wait_for_task
from tasklib.core.durations import Seconds
from tasklib.core.errors import InvalidOption, TaskCancelled, TaskFailed
from tasklib.core.outputs import Output
from tasklib.core.redact import mask_text
from tasklib.core.registry import TaskType
from tasklib.core.task import Task, is_completed, is_failed
from tasklib.engine.collecting import Collector, collecting
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Submitted
from tasklib.stores.values import Inserted

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
    _flow: Collector | None = field(default=None, repr=False)
    """In which it was submitted."""

    @property
    def output(self) -> R_co:
        """Its result, for another submit: `clean.submit(raw.output)` waits for this task and gets what it returned.
        Until then it can be handed on, alone or inside of lists and dicts, and nothing else."""
        return cast(R_co, Output(self))

    def check_usable_in(self, queue: str, field: str) -> None:
        """Raises if another task there cannot wait for this one."""
        if self._engine.config.database_url != queue:
            raise InvalidOption(f"{field}: task {self.id} is in another queue", field=field)
        if self._flow is not None and self._flow is not collecting.get():
            self._flow.check_usable(self.id)

    def _stored(self) -> UUID:
        if self._flow is not None:
            self._flow.check_usable(self.id)
        return self.id

    async def get_async(self) -> Task:
        return await self._engine.get_or_raise(self._stored())

    def get(self) -> Task:
        """The task as it is now."""
        return run_sync(self.get_async())

    async def wait_async(self, timeout: Seconds | None = None) -> Task:
        return await wait_for_task(self._engine, self._stored(), timeout)

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
        return await self._engine.cancel(self._stored())

    def cancel(self) -> Task:
        """Cancels it, or asks it to stop if it is running."""
        return run_sync(self.cancel_async())


def new_handle(inserted: Inserted | Submitted, task_type: TaskType, engine: Engine) -> TaskHandle[Any]:
    """Of what was just stored, or taken by the flow that is being put together here."""
    flow = collecting.get()
    handle: TaskHandle[Any] = TaskHandle(inserted.id, inserted.created, task_type, engine, inserted.replaced, flow)
    if flow is not None:
        flow.handles.append(handle)
    return handle


def taken_over(handle: TaskHandle[Any], answer: Inserted) -> None:
    """The handle of a task whose key was known is that of the task which stands for it."""
    if not answer.created:
        for name in ("id", "created", "replaced"):
            object.__setattr__(handle, name, getattr(answer, name))
