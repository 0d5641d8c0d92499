"""What one request may cost: bytes, seconds, streams, submits."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, MutableMapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklib.core import codec
from tasklib.core.errors import InvalidInput
from tasklib.server.asgi import Watched, header, route_path
from tasklib.server.problems import ProblemError

STREAMS = frozenset({"/api/events", "/api/tasks/export"})
"""The paths whose answers may take long."""


class TimeLimit:
    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or route_path(scope) in STREAMS:
            await self.app(scope, receive, send)
            return
        watched = Watched(send)
        limit = asyncio.timeout(self.seconds)
        try:
            async with limit:
                await self.app(scope, receive, watched)
        except TimeoutError:
            if watched.began or not limit.expired():
                raise
            detail = f"the request took longer than {self.seconds:g} s"
            raise ProblemError(503, "request_timeout", detail, headers={"Retry-After": "5"}) from None


class BodyLimit:
    """Reads the body, no more than is allowed, and checks that it is JSON before anybody interprets it."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self.app(scope, receive, send)
            return
        body = await self._read(scope, receive)
        if body:
            _check_type(scope)
            try:
                codec.decode(body.decode(), field="body")
            except UnicodeDecodeError:
                raise InvalidInput("body: not valid UTF-8", field="body") from None
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        length = header(scope, b"content-length")
        if length is not None and length.isdigit() and int(length) > self.max_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        while True:
            message: MutableMapping[str, Any] = await receive()
            if message["type"] == "http.disconnect":
                raise ProblemError(400, "disconnected", "the client went away")
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > self.max_bytes:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> ProblemError:
        return ProblemError(413, "body_too_large", f"the body is larger than {self.max_bytes:,} bytes")


def _has_body(scope: Scope) -> bool:
    length = header(scope, b"content-length")
    return header(scope, b"transfer-encoding") is not None or (length is not None and length.strip(b"0") != b"")


def _check_type(scope: Scope) -> None:
    given = (header(scope, b"content-type") or b"").partition(b";")[0].strip().lower()
    if given != b"application/json":
        raise ProblemError(415, "unsupported_media_type", "a body must be sent as Content-Type: application/json")


class SubmitRate:
    """A token bucket for each caller, in this process."""

    def __init__(self, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        if self._rate is None:
            return
        now = self._clock()
        most = max(1.0, self._rate)
        left, at = self._left.get(caller, (most, now))
        left = min(most, left + (now - at) * self._rate)
        if left < 1:
            wait = math.ceil((1 - left) / self._rate)
            detail = f"more than {self._rate:g} submits a second"
            raise ProblemError(429, "too_many_submits", detail, headers={"Retry-After": str(wait)})
        self._left[caller] = (left - 1, now)


class StreamCap:
    def __init__(self, most: int) -> None:
        self._most = most
        self.open = 0

    def enter(self) -> None:
        if self.open >= self._most:
            detail = f"{self._most} live streams are open already"
            raise ProblemError(429, "too_many_streams", detail, headers={"Retry-After": "10"})
        self.open += 1

    def leave(self) -> None:
        self.open -= 1
