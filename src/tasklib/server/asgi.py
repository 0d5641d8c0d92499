"""Small helpers on raw ASGI scopes, for the middleware."""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Message, Scope, Send


class AnyText(Convertor[str]):
    """`{name:text}` in a route: what `path` takes, and line breaks, which names may have, too."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("text", AnyText())


def route_path(scope: Scope) -> str:
    """The path as our own routes see it, without the prefix we are mounted under."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :]
    return path


def header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)


def accepts(scope: Scope, coding: str) -> bool:
    """Whether the client takes answers in this encoding."""
    accepted = (header(scope, b"accept-encoding") or b"").decode("latin-1")
    for each in accepted.lower().split(","):
        name, _, weight = each.replace(" ", "").partition(";q=")
        if name == coding:
            return weight.strip("0.") != "" or not weight  # q=0 refuses it
    return False


class Watched:
    """A `send` that remembers whether an answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.began = False

    async def __call__(self, message: Message) -> None:
        self.began = self.began or message["type"] == "http.response.start"
        await self._send(message)
