"""RemoteQueue: the queue over HTTP, for programs that have no way to its database."""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote
from uuid import UUID

from tasklib.api.options import RemoteOptions, to_json
from tasklib.api.sync import run_sync
from tasklib.core import codec, errors
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import InvalidInput, MissingExtra, StoreUnavailable, TaskLibError, TaskNotFound
from tasklib.core.ids import as_task_id
from tasklib.core.options import check_name
from tasklib.core.redact import mask_text
from tasklib.core.task import Task, TaskState, is_terminal, not_finished

if TYPE_CHECKING:
    import httpx

LARGEST_BODY_BYTES = 256 * 1024 * 1024
"""The server has limits of its own; no setting of it allows more than this."""
LONGEST_WAIT_SECONDS = 20.0
"""One request waits no longer than this; a longer wait is several."""
_WHOLE = "payload,result,error,history"
"""Lists cut these where nobody asks for them."""


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

    def __reduce__(self) -> tuple[Any, ...]:
        told = {"created": self.created, "validated": self.validated, "replaced": self.replaced}
        return partial(RemoteTask, str(self), **told), ()


class RemoteQueue:
    """Submits and looks after tasks through the REST API. Each method has an `_async` twin."""

    def __init__(self, url: str, *, token: str, timeout: Seconds = 30.0, transport: Any = None) -> None:
        """`transport`: an httpx transport to use instead of the network, for tests."""
        try:  # when first wanted: everybody imports tasklib, few talk to it over HTTP
            self._httpx: Any = import_module("httpx")
        except ImportError as error:
            raise MissingExtra("client", "httpx", "RemoteQueue") from error
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = in_seconds(timeout)
        self._transport = transport
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"RemoteQueue({mask_text(self._url)!r})"

    # -- submit -------------------------------------------------------------------------------------------------------

    async def submit_async(self, name: str, payload: Any, **options: Unpack[RemoteOptions]) -> RemoteTask:
        # Checked here as by any other API, and in its words. Each part by itself: what goes around them on the way
        # is no part of what is limited.
        check_name(name)
        text = codec.encode(payload, field="payload", limit=LARGEST_BODY_BYTES)
        body = f'{{"type":{json.dumps(name)},"payload":{text},"options":{to_json(options)}}}'
        answer = await self._call("POST", "/api/tasks", body=body)
        told = {"validated": answer["validated"], "replaced": answer.get("replaced", False)}
        return RemoteTask(answer["id"], created="payload" not in answer, **told)

    def submit(self, name: str, payload: Any, **options: Unpack[RemoteOptions]) -> RemoteTask:
        """Stores a task; returns once the server has committed it. With a key it is safe to send again."""
        return run_sync(self.submit_async(name, payload, **options))

    # -- look ---------------------------------------------------------------------------------------------------------

    async def get_async(self, task_id: UUID | str) -> Task | None:
        try:
            return _task(await self._call("GET", f"/api/tasks/{as_task_id(task_id)}"))
        except TaskNotFound:
            return None

    def get(self, task_id: UUID | str) -> Task | None:
        return run_sync(self.get_async(task_id))

    async def list_async(
        self, *, state: str | None = None, name: str | None = None, limit: int = 50, cursor: UUID | None = None
    ) -> list[Task]:
        status = "processing" if state == TaskState.RUNNING else state
        query = {"status": status, "type": name, "limit": limit, "cursor": cursor, "fields": _WHOLE}
        answer = await self._call("GET", "/api/tasks", query=query)
        return [_task(found) for found in answer["tasks"]]

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
            query = {"waitSeconds": round(min(left, LONGEST_WAIT_SECONDS, self._timeout * 0.8), 3)}
            task = _task(await self._call("GET", f"/api/tasks/{as_task_id(task_id)}", query=query))
            if is_terminal(task):
                return task
            if end is not None and time.monotonic() >= end:
                raise not_finished(task.id, task, limit)

    def wait(self, task_id: UUID | str, timeout: Seconds | None = None) -> Task:
        """The finished task. The server answers when it has finished: no polling."""
        return run_sync(self.wait_async(task_id, timeout))

    async def stats_async(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self._call("GET", "/api/tasks/stats")
        return answer

    def stats(self) -> dict[str, Any]:
        return run_sync(self.stats_async())

    # -- operate ------------------------------------------------------------------------------------------------------

    async def retry_async(self, task_id: UUID | str) -> None:
        await self._call("POST", f"/api/tasks/{as_task_id(task_id)}/retry")

    def retry(self, task_id: UUID | str) -> None:
        """A failed task anew, with all its attempts."""
        run_sync(self.retry_async(task_id))

    async def cancel_async(self, task_id: UUID | str) -> None:
        await self._call("POST", f"/api/tasks/{as_task_id(task_id)}/cancel")

    def cancel(self, task_id: UUID | str) -> None:
        """Cancels a waiting task, or asks a running one to stop."""
        run_sync(self.cancel_async(task_id))

    async def delete_async(self, task_id: UUID | str) -> None:
        await self._call("DELETE", f"/api/tasks/{as_task_id(task_id)}")

    def delete(self, task_id: UUID | str) -> None:
        """Deletes a finished task."""
        run_sync(self.delete_async(task_id))

    # -- life ---------------------------------------------------------------------------------------------------------

    async def close_async(self) -> None:
        """Closes this loop's connections; those of other loops go with their loops."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def close(self) -> None:
        run_sync(self.close_async())

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _call(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: str | None = None
    ) -> Any:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        given = {key: value for key, value in (query or {}).items() if value is not None}
        try:
            answer = await self._client().request(
                method, f"{self._url}{quote(path)}", params=given, content=body, headers=headers, timeout=self._timeout
            )
        except self._httpx.HTTPError as error:
            raise StoreUnavailable(
                mask_text(f"{self._url} cannot be reached: {type(error).__name__} {error}")
            ) from error
        if answer.is_success:
            return codec.decode(answer.content) if answer.content else None
        raise _problem(answer.status_code, answer.content, path)

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = self._httpx.AsyncClient(transport=self._transport)
        return client


_ERRORS = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, TaskLibError) and kind is not MissingExtra
}


def _problem(status: int, content: bytes, path: str) -> TaskLibError:
    """The error that the engine raised over there: found in a fixed table by its code, never made from a name."""
    try:
        problem = codec.decode(content)
        code, detail = str(problem.get("code")), str(problem.get("detail") or problem.get("title"))
        field = problem.get("field")
    except (TaskLibError, AttributeError):
        code, detail, field = "", content[:200].decode("utf-8", "replace"), None
    kind = _ERRORS.get(code)
    if kind is TaskNotFound or (kind is None and status == 404):
        return TaskNotFound(path.split("/")[3] if path.count("/") > 2 else path)
    if kind is not None and issubclass(kind, errors.TaskValidationError):
        return errors.TaskValidationError(detail, errors=[], field=field)
    if kind is not None and issubclass(kind, InvalidInput):
        return kind(detail, field=field)
    if kind is not None:
        return kind(detail)
    if status == 413:
        return errors.InvalidValue(detail, field="payload")
    if status in (502, 503, 504):
        return StoreUnavailable(detail)
    return TaskLibError(f"HTTP {status}: {detail}")


def _task(shown: dict[str, Any]) -> Task:
    """The record behind its JSON form."""
    state = TaskState.RUNNING if shown["status"] == "processing" else shown["status"]
    finished = shown["completedAt"] is not None
    begun = state in (TaskState.RUNNING, TaskState.COMPLETED) or (state == TaskState.FAILED and finished)
    return Task(
        id=UUID(shown["id"]),
        name=shown["type"],
        state=str(state),
        scheduled_at=_instant(shown["runAfter"]) or _need(shown["createdAt"]),
        created_at=_need(shown["createdAt"]),
        updated_at=_need(shown["updatedAt"]),
        started_at=_instant(shown["lastAttemptAt"]),
        completed_at=_instant(shown["completedAt"]),
        next_retry_at=_instant(shown["nextRetryAt"]),
        kwargs=shown["payload"],
        result={"value": shown["result"]} if state == TaskState.COMPLETED else None,
        error=shown["error"],
        retry_count=shown["attempts"] - begun,
        max_retries=shown["maxAttempts"] - 1,
        worker_id=shown["workerId"],
        locked_until=_instant(shown["lockedUntil"]),
        timeout_seconds=shown["timeoutSeconds"],
        priority=shown["priority"],
        tags=shown["tags"],
        cancel_requested_at=_instant(shown["cancelRequestedAt"]),
        version=shown["version"],
        idempotency_key=shown["idempotencyKey"],
        history=shown["history"],
        last_worker_id=shown.get("lastWorkerId"),
        run_ms=shown.get("runMs"),
        unique_key=shown.get("uniqueKey"),
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _need(text: str) -> datetime:
    return datetime.fromisoformat(text)
