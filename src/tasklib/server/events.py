"""/api/events: live figures as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Mapping

from fastapi import APIRouter
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tasklib.server.docs import problems
from tasklib.server.service import Served

router = APIRouter(prefix="/api", tags=["figures"])


class Stream(StreamingResponse):
    """Says when it is over, however it ended."""

    def __init__(
        self,
        content: AsyncIterable[str],
        over: Callable[[], None],
        *,
        media_type: str = "text/event-stream",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, headers={"X-Accel-Buffering": "no", **(headers or {})}, media_type=media_type)
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._over()


@router.get(
    "/events",
    operation_id="stream_events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **problems(429)},
)
async def events(service: Served) -> Stream:
    """Events `stats` and `controls` at once, then `changes` and `controls` when something changes: `changes` has the
    totals and, in `byType`, the types that have changed (null: gone). `problem` while the database is away."""
    service.streams.enter()
    return Stream(service.feed.stream(service.settings.stream_seconds), service.streams.leave)
