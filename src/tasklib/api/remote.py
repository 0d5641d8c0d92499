"""RemoteQueue: the queue over HTTP, for programs that have no way to its database."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack
from uuid import UUID

from tasklib.api.options import RemoteOptions, to_json
from tasklib.api.remote_flow import RemoteFlow, RemoteFlowBlock
from tasklib.api.remote_schedules import RemoteSchedule, RemoteSchedules
from tasklib.api.rest_client import WHOLE, RestClient, task_of
from tasklib.api.sync import run_sync
from tasklib.core import codec
from tasklib.core.cron import Timing
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import TaskNotFound
from tasklib.core.ids import as_task_id
from tasklib.core.options import check_name
from tasklib.core.outputs import Output, taken_out
from tasklib.core.redact import mask_text
from tasklib.core.task import Task, TaskState, is_terminal, not_finished

LARGEST_BODY_BYTES = 256 * 1024 * 1024
"""The server has limits of its own; no setting of it allows more than this."""
LONGEST_WAIT_SECONDS = 20.0
"""One request waits no longer than this; a longer wait is several."""


class RemoteTask(UUID):
    """The id of a task that was submitted over HTTP, and what the server said of the submit."""

    __slots__ = ("created", "replaced", "validated")
    created: bool
    replaced: bool
    """False: the idempotency key was known, and this is the task it stands for."""
    validated: bool
    """False: the arguments were not checked, because no worker has told what the type takes."""

    def __init__(self, task_id: str, *, created: bool, validated: bool, replaced: bool = False) -> None:
        super().__init__(task_id)
        object.__setattr__(self, "created", created)
        object.__setattr__(self, "replaced", replaced)
        object.__setattr__(self, "validated", validated)

    @property
    def id(self) -> UUID:
        return UUID(int=self.int)

    @property
    def output(self) -> Any:
        """Its result, for the payload of another submit, which then waits for this task."""
        return Output(self)

    def __reduce__(self) -> tuple[Any, ...]:
        told = {"created": self.created, "validated": self.validated, "replaced": self.replaced}
        return partial(RemoteTask, str(self), **told), ()


class RemoteQueue:
    """Submits and looks after tasks through the REST API. Each method has an `_async` twin."""

    def __init__(self, url: str, *, token: str, timeout: Seconds = 30.0, transport: Any = None) -> None:
        """`transport`: an httpx transport to use instead of the network, for tests."""
        self._api = RestClient(url, token, timeout, transport)

    def __repr__(self) -> str:
        return f"RemoteQueue({mask_text(self._api.url)!r})"

    # -- submit -------------------------------------------------------------------------------------------------------

    async def submit_async(self, name: str, payload: Any, **options: Unpack[RemoteOptions]) -> RemoteTask:
        # Checked here as by any other API, and in its words. Each part by itself: what goes around them on the way
        # is no part of what is limited.
        check_name(name)
        payload, inputs = taken_out(payload)
        text = codec.encode(payload, field="payload", limit=LARGEST_BODY_BYTES)
        body = f'{{"type":{json.dumps(name)},"payload":{text},"options":{to_json(options, inputs)}}}'
        answer = await self._api.call("POST", "/api/tasks", body=body)
        told = {"validated": answer["validated"], "replaced": answer.get("replaced", False)}
        return RemoteTask(answer["id"], created="payload" not in answer, **told)

    def submit(self, name: str, payload: Any, **options: Unpack[RemoteOptions]) -> RemoteTask:
        """Stores a task; returns once the server has committed it. With a key it is safe to send again."""
        return run_sync(self.submit_async(name, payload, **options))

    def flow(self, name: str | None = None, *, idempotency_key: str | None = None) -> RemoteFlowBlock:
        """`with remote.flow("import 42") as f:` sends what is submitted by `f.submit(...)` at the block's end."""
        return RemoteFlowBlock(self, self._api, name, idempotency_key)

    def get_flow(self, flow_id: UUID | str) -> RemoteFlow:
        """A flow by its id. What is asked of one that is not there raises FlowNotFound."""
        return RemoteFlow(self, self._api, as_task_id(flow_id))

    # -- schedules ----------------------------------------------------------------------------------------------------

    @property
    def schedules(self) -> RemoteSchedules:
        """`remote.schedules["weekly"].pause()`, `remote.schedules.all()`."""
        return RemoteSchedules(self._api)

    async def schedule_async(
        self, schedule: str, timing: Timing, name: str, payload: Any, **options: Unpack[RemoteOptions]
    ) -> RemoteSchedule:
        found = self.schedules[schedule]
        await found.put_async(timing, name, payload, to_json(options))
        return found

    def schedule(
        self, schedule: str, timing: Timing, name: str, payload: Any, **options: Unpack[RemoteOptions]
    ) -> RemoteSchedule:
        """`remote.schedule("weekly", cron("0 8 * * 1"), "report", {"customer": 42})` submits this at these times, from
        now on. It wins over what workers' code says of a schedule with this name, until it is cleared."""
        return run_sync(self.schedule_async(schedule, timing, name, payload, **options))

    # -- look ---------------------------------------------------------------------------------------------------------

    async def get_async(self, task_id: UUID | str) -> Task | None:
        try:
            return task_of(await self._api.call("GET", f"/api/tasks/{as_task_id(task_id)}"))
        except TaskNotFound:
            return None

    def get(self, task_id: UUID | str) -> Task | None:
        return run_sync(self.get_async(task_id))

    async def list_async(
        self, *, state: str | None = None, name: str | None = None, limit: int = 50, cursor: UUID | None = None
    ) -> list[Task]:
        status = "processing" if state == TaskState.RUNNING else state
        query = {"status": status, "type": name, "limit": limit, "cursor": cursor, "fields": WHOLE}
        answer = await self._api.call("GET", "/api/tasks", query=query)
        return [task_of(found) for found in answer["tasks"]]

    def list(
        self, *, state: str | None = None, name: str | None = None, limit: int = 50, cursor: UUID | None = None
    ) -> Sequence[Task]:
        """The newest tasks that match; `cursor` is the id to continue behind."""
        return run_sync(self.list_async(state=state, name=name, limit=limit, cursor=cursor))

    async def wait_async(self, task_id: UUID | str, timeout: Seconds | None = None) -> Task:
        limit: float | None = in_seconds(timeout)
        end = None if limit is None else time.monotonic() + limit
        while True:
            left = LONGEST_WAIT_SECONDS if end is None else max(0.0, end - time.monotonic())
            query = {"waitSeconds": round(min(left, LONGEST_WAIT_SECONDS, self._api.timeout * 0.8), 3)}
            task = task_of(await self._api.call("GET", f"/api/tasks/{as_task_id(task_id)}", query=query))
            if is_terminal(task):
                return task
            if end is not None and time.monotonic() >= end:
                raise not_finished(task.id, task, limit)

    def wait(self, task_id: UUID | str, timeout: Seconds | None = None) -> Task:
        """The finished task. The server answers when it has finished: no polling."""
        return run_sync(self.wait_async(task_id, timeout))

    async def stats_async(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self._api.call("GET", "/api/tasks/stats")
        return answer

    def stats(self) -> dict[str, Any]:
        return run_sync(self.stats_async())

    # -- operate ------------------------------------------------------------------------------------------------------

    async def retry_async(self, task_id: UUID | str) -> None:
        await self._api.call("POST", f"/api/tasks/{as_task_id(task_id)}/retry")

    def retry(self, task_id: UUID | str) -> None:
        """A failed task anew, with all its attempts."""
        run_sync(self.retry_async(task_id))

    async def cancel_async(self, task_id: UUID | str) -> None:
        await self._api.call("POST", f"/api/tasks/{as_task_id(task_id)}/cancel")

    def cancel(self, task_id: UUID | str) -> None:
        """Cancels a waiting task, or asks a running one to stop."""
        run_sync(self.cancel_async(task_id))

    async def delete_async(self, task_id: UUID | str) -> None:
        await self._api.call("DELETE", f"/api/tasks/{as_task_id(task_id)}")

    def delete(self, task_id: UUID | str) -> None:
        """Deletes a finished task."""
        run_sync(self.delete_async(task_id))

    # -- life ---------------------------------------------------------------------------------------------------------

    async def close_async(self) -> None:
        """Closes this loop's connections; those of other loops go with their loops."""
        await self._api.close()

    def close(self) -> None:
        run_sync(self.close_async())
