"""Small helpers on raw ASGI scopes, for the middleware."""

from __future__ import annotations

from starlette.types import Message, Scope, Send


def route_path(scope: Scope) -> str:
    """The path as our own routes see it, without the prefix we are mounted under."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :]
    return path


def header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)


class Watched:
    """A `send` that remembers whether an answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.began = False

    async def __call__(self, message: Message) -> None:
        self.began = self.began or message["type"] == "http.response.start"
        await self._send(message)
