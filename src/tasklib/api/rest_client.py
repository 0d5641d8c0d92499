"""The REST API from Python: requests, the errors they are answered with, and tasks from their JSON."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import UUID

from tasklib.core import codec, errors
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import (
    FlowNotFound,
    InvalidInput,
    MissingExtra,
    ScheduleNotFound,
    StoreUnavailable,
    TaskLibError,
    TaskNotFound,
)
from tasklib.core.flows import NEVER
from tasklib.core.redact import mask_text
from tasklib.core.task import Task, TaskState

if TYPE_CHECKING:
    import httpx

WHOLE = "payload,result,error,history"
"""Lists cut these where nobody asks for them."""


class RestClient:
    """One server's API, with a client for each event loop."""

    def __init__(self, url: str, token: str, timeout: Seconds, transport: Any) -> None:
        try:  # when first wanted: everybody imports tasklib, few talk to it over HTTP
            self._httpx: Any = import_module("httpx")
        except ImportError as error:
            raise MissingExtra("client", "httpx", "RemoteQueue") from error
        self.url = url.rstrip("/")
        self.timeout = in_seconds(timeout)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._transport = transport
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    async def close(self) -> None:
        """Closes this loop's connections; those of other loops go with their loops."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def call(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: str | None = None
    ) -> Any:
        """`path`: quoted."""
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        given = {key: value for key, value in (query or {}).items() if value is not None}
        try:
            answer = await self._client().request(
                method, f"{self.url}{path}", params=given, content=body, headers=headers, timeout=self.timeout
            )
        except self._httpx.HTTPError as error:
            raise StoreUnavailable(
                mask_text(f"{self.url} cannot be reached: {type(error).__name__} {error}")
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
    if kind is ScheduleNotFound:
        return ScheduleNotFound(unquote(path.split("/")[3]))
    if kind is FlowNotFound:
        return FlowNotFound(path.split("/")[3])
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


def task_of(shown: dict[str, Any]) -> Task:
    """The record behind its JSON form."""
    state = TaskState.RUNNING if shown["status"] == "processing" else shown["status"]
    finished = shown["completedAt"] is not None
    begun = state in (TaskState.RUNNING, TaskState.COMPLETED) or (state == TaskState.FAILED and finished)
    return Task(
        id=UUID(shown["id"]),
        name=shown["type"],
        state=str(state),
        scheduled_at=instant(shown["runAfter"]) or (NEVER if shown.get("waits") else need(shown["createdAt"])),
        created_at=need(shown["createdAt"]),
        updated_at=need(shown["updatedAt"]),
        started_at=instant(shown["lastAttemptAt"]),
        completed_at=instant(shown["completedAt"]),
        next_retry_at=instant(shown["nextRetryAt"]),
        kwargs=shown["payload"],
        result={"value": shown["result"]} if state == TaskState.COMPLETED else None,
        error=shown["error"],
        retry_count=shown["attempts"] - begun,
        max_retries=shown["maxAttempts"] - 1,
        worker_id=shown["workerId"],
        locked_until=instant(shown["lockedUntil"]),
        timeout_seconds=shown["timeoutSeconds"],
        priority=shown["priority"],
        tags=shown["tags"],
        cancel_requested_at=instant(shown["cancelRequestedAt"]),
        version=shown["version"],
        idempotency_key=shown["idempotencyKey"],
        history=shown["history"],
        last_worker_id=shown.get("lastWorkerId"),
        run_ms=shown.get("runMs"),
        unique_key=shown.get("uniqueKey"),
        waits=shown.get("waits", 0),
        after=shown.get("after"),
        flow_id=None if shown.get("flowId") is None else UUID(shown["flowId"]),
        fed=shown.get("feeds", {}).get("total", 0) > 0,
    )


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def need(text: str) -> datetime:
    return datetime.fromisoformat(text)
