"""Flows over HTTP: `with remote.flow("import 42") as f`. In the words of `flow`, but what is submitted in it is
submitted through it, and has an id once the block has ended: the server gives them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack
from uuid import UUID

from tasklib.api.options import RemoteOptions, to_json
from tasklib.api.rest_client import WHOLE, RestClient, task_of
from tasklib.api.sync import run_sync
from tasklib.core import codec
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import FlowNotSent, InvalidOption, TaskLibError, WaitTimeout
from tasklib.core.flows import FlowSummary
from tasklib.core.options import check_awaited, check_key, check_name, check_on, check_waits
from tasklib.core.outputs import Output, TaskReference, taken_out
from tasklib.core.task import Task

if TYPE_CHECKING:
    from tasklib.api.remote import RemoteQueue

_PAGE = 100


class RemoteFlow:
    """A flow by its id. Each method has an `_async` twin."""

    def __init__(self, queue: RemoteQueue, api: RestClient, flow_id: UUID | None) -> None:
        self._queue = queue
        self._api = api
        self._id = flow_id

    @property
    def id(self) -> UUID:
        if self._id is None:
            raise FlowNotSent("this flow has no id before the end of its block")
        return self._id

    async def status_async(self) -> FlowSummary:
        return _summary(await self._api.call("GET", f"/api/flows/{self.id}"))

    def status(self) -> FlowSummary:
        """How it stands: `status` in one word, and `counts`, its tasks by state."""
        return run_sync(self.status_async())

    async def tasks_async(self) -> list[Task]:
        query: dict[str, Any] = {"flow": self.id, "limit": _PAGE, "fields": WHOLE}
        found: list[Task] = []
        while True:
            answer = await self._api.call("GET", "/api/tasks", query=query)
            found += map(task_of, answer["tasks"])
            query["cursor"] = answer["nextCursor"]
            if query["cursor"] is None:
                return found[::-1]

    def tasks(self) -> list[Task]:
        """All of them, oldest first; those that were added while it ran, too."""
        return run_sync(self.tasks_async())

    async def wait_async(self, timeout: Seconds | None = None) -> FlowSummary:
        limit = in_seconds(timeout)
        end = None if limit is None else time.monotonic() + limit
        while (task := await self._unfinished()) is not None:
            try:
                await self._queue.wait_async(task.id, None if end is None else max(0.0, end - time.monotonic()))
            except WaitTimeout as error:
                state = error.state or task.state  # where no time was left to look again
                text = f"flow {self.id} was not finished within {limit} s: {task.name} {task.id} is {state}"
                raise WaitTimeout(text, task_id=task.id, state=state) from None
        return await self.status_async()

    def wait(self, timeout: Seconds | None = None) -> FlowSummary:
        """Until all its tasks are over, whatever became of them. Raises WaitTimeout."""
        return run_sync(self.wait_async(timeout))

    async def cancel_async(self) -> int:
        return await self._act("cancel")

    def cancel(self) -> int:
        """Cancels what is not over, and asks what runs to stop. Returns how many tasks that were."""
        return run_sync(self.cancel_async())

    async def retry_async(self) -> int:
        return await self._act("retry")

    def retry(self) -> int:
        """Runs anew what failed, with all attempts; what was cancelled because of it waits again. Returns how many had
        failed."""
        return run_sync(self.retry_async())

    async def _unfinished(self) -> Task | None:
        """The newest that is still to end."""
        for asked in ({"status": ["pending", "processing"]}, {"status": "failed", "finished": "false"}):
            answer = await self._api.call("GET", "/api/tasks", query={"flow": self.id, "limit": 1, **asked})
            if answer["tasks"]:
                return task_of(answer["tasks"][0])
        return None

    async def _act(self, action: str) -> int:
        done: int = 0
        step: dict[str, Any] = {}
        while True:
            body = json.dumps(step)
            answer = await self._api.call("POST", f"/api/flows/{self.id}/{action}", body=body)
            done += int(answer["done"])
            if not answer["more"]:
                return done
            step = {"cursor": answer["nextCursor"], "bulkId": answer["bulkId"]}

    def __repr__(self) -> str:
        return f"<flow {self._id} of {self._queue!r}>"


class RemoteFlowTask:
    """A task of a flow that is being put together. Its id is known when the block has ended."""

    def __init__(self, flow: RemoteFlowBlock, ref: str) -> None:
        self._flow = flow
        self.ref = ref

    @property
    def id(self) -> UUID:
        return self._flow.id_of(self.ref)

    @property
    def output(self) -> Any:
        """Its result, for another submit of the flow, among the payload."""
        return Output(self)

    def __repr__(self) -> str:
        return f"<task {self.ref} of a flow>"


class RemoteFlowBlock(RemoteFlow):
    """`with remote.flow(...)`, or `async with`: all that is submitted through it is sent at the block's end, and stored
    all or none. If the block raises nothing is sent."""

    def __init__(self, queue: RemoteQueue, api: RestClient, name: str | None, idempotency_key: str | None) -> None:
        super().__init__(queue, api, None)
        self.name = None if name is None else check_name(name)
        self._key = None if idempotency_key is None else check_key(idempotency_key)
        self._parts: list[str] = []
        self._ids: dict[str, UUID] = {}
        self._open = True
        self._refusal = "is not sent before the end of its flow's block"
        self.created = False
        """Whether it was stored. False: not yet, or its idempotency key was known."""

    def submit(self, name: str, payload: Any, **options: Unpack[RemoteOptions]) -> RemoteFlowTask:
        """A task of this flow. `after` takes tasks of it, and ids of tasks that are in the queue already."""
        if not self._open:
            raise TaskLibError("the block of this flow has ended; make a new one")
        check_name(name)
        given: dict[str, Any] = dict(options)
        after, on = given.pop("after", None), given.pop("on", None)
        if given.get("before") is not None:
            raise InvalidOption("before: not inside a flow: say after= of the other task", field="before")
        plain, inputs = taken_out(payload)
        on = None if on is None else check_on(on)
        check_waits(on, after, inputs)
        task = RemoteFlowTask(self, f"{len(self._parts)} {name}"[:255])
        part: dict[str, Any] = {
            "ref": task.ref,
            "type": name,
            "after": [self._named(each) for each in _awaited(after)],
            "on": on,
            "inputs": {place: self._named(each) for place, each in inputs.items()},
        }
        text = codec.encode(plain, field="payload")
        self._parts.append(f'{json.dumps(part)[:-1]},"payload":{text},"options":{to_json(given)}}}')
        return task

    def _named(self, task: TaskReference | UUID) -> str:
        if isinstance(task, RemoteFlowTask) and task._flow is self:
            return task.ref
        return str(task if isinstance(task, UUID) else task.id)

    def id_of(self, ref: str) -> UUID:
        if ref not in self._ids:
            raise FlowNotSent(f"task {ref!r} {self._refusal}")
        return self._ids[ref]

    async def _send(self, error: BaseException | None) -> None:
        self._open = False
        if error is not None:
            self._refusal = f"was not sent: the block of its flow has raised {type(error).__name__}"
            return
        if not self._parts:
            raise InvalidOption("flow: nothing was submitted in it", field="flow")
        self._refusal = "was not sent: its flow could not be stored"
        about = json.dumps({"name": self.name, "idempotencyKey": self._key})[:-1]
        body = f'{about},"tasks":[{",".join(self._parts)}]}}'
        answer = await self._api.call("POST", "/api/flows", body=body)
        self._refusal = "is not known: its flow's idempotency_key was, and that flow has other tasks"
        self._id = UUID(answer["id"])
        self._ids = {ref: UUID(task_id) for ref, task_id in answer["tasks"].items()}
        self.created = answer["created"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run_sync(self._send(error))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._send(error)


def _awaited(after: Any) -> list[Any]:
    if not isinstance(after, Iterable) or isinstance(after, (str, bytes, Mapping, Output)):
        return [] if after is None else list(check_awaited(after, "after"))
    return [each if isinstance(each, RemoteFlowTask) else check_awaited([each], "after")[0] for each in after]


def _summary(shown: Mapping[str, Any]) -> FlowSummary:
    counts = {"running" if name == "processing" else name: number for name, number in shown["counts"].items()}
    return FlowSummary(UUID(shown["id"]), shown["name"], datetime.fromisoformat(shown["createdAt"]), counts)
