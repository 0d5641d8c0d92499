"""How answers travel: compressed where that helps, and not again where the client has them already."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from functools import lru_cache

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklib.server.asgi import accepts, route_path
from tasklib.server.headers import ASSETS
from tasklib.server.limits import STREAMS

SMALLEST = 1000
"""Bytes; what is smaller gains nothing."""
LEVEL = 5
AS_IT_IS = frozenset({*STREAMS, "/api/login", "/api/session"})
"""Streams have no end to wait for. What tells of a session is not compressed: the size of what is compressed tells of
its content."""
_LONG = 100_000
"""Bytes; to compress so much takes milliseconds, which other requests need not wait for."""


class Representation:
    """Tags are weak, because compressed or not an answer has the same one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "HEAD" or route_path(scope) in AS_IT_IS:
            await self.app(scope, receive, send)
            return
        start: Message = {}
        parts: list[bytes] = []

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                body = await _represent(scope, start, b"".join(parts))
                await send(start)
                await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, collect)


async def _represent(scope: Scope, start: Message, body: bytes) -> bytes:
    """The body to send; the headers are changed in place."""
    asked = Headers(scope=scope)
    headers = MutableHeaders(raw=start["headers"])
    start["headers"] = headers.raw
    tag = headers.get("etag")
    if tag is None and scope["method"] == "GET" and start["status"] == 200:
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if tag is not None:
        headers["etag"] = tag if tag.startswith("W/") else f"W/{tag}"
        if start["status"] == 200 and _has_it(asked.get("if-none-match", ""), tag):
            start["status"] = 304
    large = start["status"] in (200, 201) and len(body) >= SMALLEST
    if large or tag is not None:
        headers.add_vary_header("Accept-Encoding")
    if start["status"] == 304:
        for name in ("content-length", "content-type"):
            del headers[name]
        return b""
    if large and "content-encoding" not in headers and accepts(scope, "gzip"):
        is_file = route_path(scope).startswith(ASSETS)
        body = _compressed_file(body) if is_file else await _compressed(body)
        headers["content-encoding"] = "gzip"
        headers["content-length"] = str(len(body))
        del headers["accept-ranges"]
    return body


async def _compressed(body: bytes) -> bytes:
    return await asyncio.to_thread(gzip.compress, body, LEVEL) if len(body) > _LONG else gzip.compress(body, LEVEL)


@lru_cache(maxsize=64)
def _compressed_file(body: bytes) -> bytes:
    return gzip.compress(body)


def _has_it(tags: str, tag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in tags.split(",")]
    return "*" in known or tag.removeprefix("W/") in known
