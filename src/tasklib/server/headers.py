"""Headers that every answer carries."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklib.server.asgi import route_path

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)

_ALWAYS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
ASSETS = "/assets/"
BUILT_ASSETS = "/assets/app/"
"""Their names change with their content."""


class SecureHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = route_path(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                caching = (b"cache-control", _caching(path, message["status"]))
                message["headers"] = [*message.get("headers", ()), *_ALWAYS, caching]
            await send(message)

        await self.app(scope, receive, with_headers)


def _caching(path: str, status: int) -> bytes:
    if path.startswith(BUILT_ASSETS) and status in (200, 304):
        return b"public, max-age=31536000, immutable"
    return b"no-cache" if path.startswith(ASSETS) else b"no-store"
