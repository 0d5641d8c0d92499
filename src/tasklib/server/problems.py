"""Errors as application/problem+json (RFC 9457), each with a stable code. One table says which is which status."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tasklib.core.errors import (
    TRANSIENT,
    FlowNotFound,
    InvalidInput,
    InvalidOption,
    ScheduleNotFound,
    StoreError,
    TaskConflict,
    TaskLibError,
    TaskNotFailed,
    TaskNotFound,
    TaskNotTerminal,
    TaskValidationError,
    Unsupported,
    WorkerNotFound,
    WorkerStopped,
)
from tasklib.core.redact import redact
from tasklib.server.asgi import Watched

log = logging.getLogger("tasklib.server")

MEDIA_TYPE = "application/problem+json"

STATUSES: tuple[tuple[type[TaskLibError], int], ...] = (
    (TaskNotFound, 404),
    (ScheduleNotFound, 404),
    (FlowNotFound, 404),
    (WorkerNotFound, 404),
    (WorkerStopped, 409),
    (TaskNotFailed, 400),
    (TaskNotTerminal, 400),
    (TaskConflict, 409),
    (InvalidInput, 400),
    (Unsupported, 400),
    (StoreError, 503),
)
"""The first that fits; anything else is a fault of ours."""

RETRY_AFTER_SECONDS = 2
LASTING_RETRY_AFTER_SECONDS = 30

TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict with the current state",
    413: "Too large",
    415: "Unsupported media type",
    421: "Not served under this host name",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
}

_CODES = {404: "not_found", 405: "method_not_allowed"}


class ProblemError(Exception):
    """A request that the server itself turns down, whatever the queue would say."""

    def __init__(self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = headers


def problem(
    status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    body = {
        "type": f"urn:tasklib:problem:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
        **{name: value for name, value in more.items() if value is not None},
    }
    return JSONResponse(redact(body), status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def shown_status(state: str) -> str:
    """A state in the words of this API."""
    return "processing" if state == "running" else state


def of_error(error: TaskLibError) -> JSONResponse | None:
    """The answer to an error of ours; None for one that no caller can have caused."""
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    if status is None:
        return None
    headers = None
    if status == 503:
        wait = RETRY_AFTER_SECONDS if isinstance(error, TRANSIENT) else LASTING_RETRY_AFTER_SECONDS
        headers = {"Retry-After": str(wait)}
    more: dict[str, Any] = {}
    if isinstance(error, InvalidInput):
        payload = isinstance(error, TaskValidationError)
        parts = (error.at, "payload" if payload else None, error.field)
        more["field"] = ".".join(filter(None, parts)) if error.field or payload else None
    if isinstance(error, TaskValidationError):
        at = (error.at, "payload") if error.at else ("payload",)
        more["errors"] = [_fault((*at, *_path(item.get("loc"))), item.get("msg")) for item in error.errors]
    if isinstance(error, TaskConflict) and error.state is not None:
        more["currentStatus"] = shown_status(error.state)
        more["version"], more["workerId"] = error.version, error.worker_id
    return problem(status, error.code, str(error), headers=headers, **more)


async def on_invalid_request(request: Request, error: Exception) -> JSONResponse:
    """What FastAPI's own checks refused."""
    assert isinstance(error, RequestValidationError)
    faults = [_fault(_place(item.get("loc")), item.get("msg")) for item in error.errors()]
    first = faults[0] if faults else {"field": "body", "message": "invalid"}
    detail = "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults[:10])
    return problem(400, _code(first["field"]), detail, field=first["field"], errors=faults[:100])


def _code(field: str) -> str:
    """The code that every API has for it."""
    return InvalidOption.code if field == "type" or field.startswith("options.") else InvalidInput.code


async def on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "bad_request" if error.status_code < 500 else "internal_error")
    return problem(error.status_code, code, str(error.detail), headers=error.headers)


class Problems:
    """Nothing leaves as a traceback: every error becomes an answer here, and a fault of ours a line in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        watched = Watched(send)
        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            answer = _answer(error)
            if watched.began:
                raise
            await answer(scope, receive, send)


def _answer(error: Exception) -> JSONResponse:
    if isinstance(error, ProblemError):
        return problem(error.status, error.code, str(error), headers=error.headers)
    answer = of_error(error) if isinstance(error, TaskLibError) else None
    if answer is not None:
        return answer
    log.error("a request failed unexpectedly", exc_info=error)
    return problem(500, "internal_error", "an error of the server's own; its log says more")


def _place(location: Any) -> tuple[str, ...]:
    """Where in the request: `options.maxAttempts` of a body, `limit` of a query."""
    parts = _path(location)
    return parts[1:] if len(parts) > 1 and parts[0] in ("body", "query", "path") else parts


def _path(location: Any) -> tuple[str, ...]:
    return tuple(str(part) for part in location) if isinstance(location, (list, tuple)) else ()


def _fault(path: tuple[str, ...], message: object) -> dict[str, str]:
    text = str(message).removeprefix("Value error, ")
    return {"field": ".".join(path)[:300], "message": text[:500].encode("utf-8", "replace").decode()}
