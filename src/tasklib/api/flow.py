"""`with flow("import 42") as f`: what is submitted in the block is stored together at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import Token
from types import TracebackType
from typing import Self
from uuid import UUID

from tasklib.api.decorator import insert_blocking
from tasklib.api.handle import taken_over
from tasklib.api.sync import run_sync
from tasklib.api.waiting import wait_for_task
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import FlowNotSent, TaskLibError, WaitTimeout
from tasklib.core.flows import FlowSummary
from tasklib.core.ids import as_task_id
from tasklib.core.options import check_key, check_name
from tasklib.core.task import NewTask, Task
from tasklib.engine import flows
from tasklib.engine.bulk import Action
from tasklib.engine.collecting import Collector, collecting
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine
from tasklib.stores.values import Inserted


class Flow:
    """Tasks that belong together, by the id of their first. Each method has an `_async` twin."""

    def __init__(self, flow_id: UUID | None, engine: Engine) -> None:
        self._id = flow_id
        self._engine = engine

    @property
    def id(self) -> UUID:
        if self._id is None:
            raise FlowNotSent("this flow was not sent: it has no tasks")
        return self._id

    async def status_async(self) -> FlowSummary:
        return await flows.summary(self._engine, self._stored())

    def status(self) -> FlowSummary:
        """How it stands: `status` in one word, and `counts`, its tasks by state."""
        return run_sync(self.status_async())

    async def tasks_async(self) -> list[Task]:
        return await flows.tasks_of(self._engine, self._stored())

    def tasks(self) -> list[Task]:
        """All of them, oldest first; those that were added while it ran, too."""
        return run_sync(self.tasks_async())

    async def wait_async(self, timeout: Seconds | None = None) -> FlowSummary:
        flow_id, limit = self._stored(), in_seconds(timeout)
        loop = asyncio.get_running_loop()
        end = None if limit is None else loop.time() + limit
        while (task := await flows.newest_unfinished(self._engine, flow_id)) is not None:
            try:
                await wait_for_task(self._engine, task.id, None if end is None else max(0.0, end - loop.time()))
            except WaitTimeout as error:
                state = error.state or task.state  # where no time was left to look again
                text = f"flow {flow_id} was not finished within {limit} s: {task.name} {task.id} is {state}"
                raise WaitTimeout(text, task_id=task.id, state=state) from None
        return await self.status_async()

    def wait(self, timeout: Seconds | None = None) -> FlowSummary:
        """Until all its tasks are over, whatever became of them. Raises WaitTimeout."""
        return run_sync(self.wait_async(timeout))

    async def cancel_async(self) -> int:
        return await flows.act(self._engine, Action.CANCEL, self._stored())

    def cancel(self) -> int:
        """Cancels what is not over, and asks what runs to stop. Returns how many tasks that were."""
        return run_sync(self.cancel_async())

    async def retry_async(self) -> int:
        return await flows.act(self._engine, Action.RETRY, self._stored())

    def retry(self) -> int:
        """Runs anew what failed, with all attempts; what was cancelled because of it waits again. Returns how many had
        failed."""
        return run_sync(self.retry_async())

    def _stored(self) -> UUID:
        return self.id

    def __repr__(self) -> str:
        return f"<flow {self._id}>"


class flow(Flow):  # noqa: N801  (it is used like a function)
    """`with flow("import 42") as f`, or `async with`: collects what is submitted in the block, through any API, and
    stores all of it at the block's end, in one transaction. If the block raises nothing is stored.

    `idempotency_key`: if a flow with this key is there already, that is the flow. `connection`: in the transaction of
    this connection, as with a submit."""

    def __init__(
        self, name: str | None = None, *, idempotency_key: str | None = None, connection: object | None = None
    ) -> None:
        super().__init__(None, default_engine())
        self.name = None if name is None else check_name(name)
        key = None if idempotency_key is None else check_key(idempotency_key)
        self._collector = Collector(self._engine, self.name, key)
        self._connection = connection
        self._entered: Token[Collector | None] | None = None
        self._used = False
        self.created = False
        """Whether it was stored. False: not yet, or its idempotency key was known."""

    @property
    def id(self) -> UUID:
        """That of its first task: known once that was submitted."""
        return self._collector.id if self._id is None else self._id

    def _stored(self) -> UUID:
        if self._id is None:
            raise FlowNotSent(f"this flow {self._collector.refusal}")
        return self._id

    # -- the block ----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if collecting.get() is not None:
            raise TaskLibError("a flow cannot stand inside another flow's block; submit all of it in one")
        if self._used:
            raise TaskLibError("this flow was used before; make a new one with flow(...)")
        self._used = True
        self._entered = collecting.set(self._collector)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = self._left(error)
        if tasks is not None:
            self._answered(insert_blocking(self._engine, tasks, self._connection))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = self._left(error)
        if tasks is not None:
            if self._connection is None:
                self._answered(await self._engine.insert(tasks))
            else:
                self._answered(await self._engine.insert_on_async(self._connection, tasks))

    def _left(self, error: BaseException | None) -> list[NewTask] | None:
        """What is to be sent; None: nothing, as the block has raised."""
        assert self._entered is not None
        collecting.reset(self._entered)
        if error is not None:
            self._collector.refusal = f"was not sent: the block of its flow has raised {type(error).__name__}"
            return None
        self._collector.refusal = "was not sent: its flow could not be stored"
        return self._collector.batch()

    def _answered(self, inserted: Sequence[Inserted]) -> None:
        """A task may stand for one that was given: by its own key, or all of them by the flow's."""
        answers = {task.id: answer for task, answer in zip(self._collector.tasks, inserted, strict=True)}
        first = answers[self._collector.id]
        self._id, self.created = first.id, first.created
        if not first.created and len(answers) > 1 and {each.id for each in inserted} == {first.id}:
            self._collector.refusal = "was not sent: a flow with this idempotency_key is there, and has fewer tasks"
            return
        self._collector.sent = True
        for handle in self._collector.handles:
            taken_over(handle, answers[handle.id])


def get_flow(flow_id: UUID | str) -> Flow:
    """A flow by its id, in the default queue. What is asked of one that is not there raises FlowNotFound."""
    return Flow(as_task_id(flow_id), default_engine())
