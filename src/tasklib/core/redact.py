"""Keeps secrets out of what people read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

MASK = "***"

SECRET_KEYS = ("password", "passwd", "secret", "token", "api_key", "private_key", "authorization", "cookie", "dsn")
"""Values under keys like these are masked: in any case, with any separators, and as part of a longer key."""

# Up to the `@` that ends the authority. A password may hold `/`, `?` or `#` unescaped: then up to the last `@`, unless
# what stands there is a port. Every part is bounded: the text may be hostile, and must not cost more than its length.
_URL_PASSWORD = re.compile(
    r"(?P<head>[a-zA-Z][a-zA-Z0-9+.-]{0,31}://[^\s/:@]{0,256}):"
    r"(?:[^\s/?#'\"]{0,512}@|(?!\d{1,5}(?:[/?#]|$))[^\s'\"]{0,512}@)"
)
_QUERY_PASSWORD = re.compile(r"(?P<head>[?&](?:\w{0,32}password|passwd|pwd|secret|token)=)[^&\s'\"]*", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_REMEMBERED = 64
_SHORTEST_PART = 5
"""A secret key this long is found inside any word; a shorter one is a word of its own (`dsn`, not `friends_name`)."""


def mask_urls(text: str) -> str:
    """The text with passwords in URLs masked."""
    if "://" not in text and "=" not in text:
        return text
    return _QUERY_PASSWORD.sub(rf"\g<head>{MASK}", _URL_PASSWORD.sub(rf"\g<head>:{MASK}@", text))


def redact(value: Any, keys: Iterable[str] = SECRET_KEYS) -> Any:
    """A copy of plain JSON values in which whatever lies under a secret key is masked, at any depth."""
    return _redact(value, _joined(tuple(keys)))


@lru_cache(maxsize=64)
def _joined(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key.replace("_", "").lower() for key in keys)


def _redact(value: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {name: MASK if _is_secret(name, keys) and item else _redact(item, keys) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_redact(item, keys) for item in value]
    return value


def _is_secret(name: object, keys: tuple[str, ...]) -> bool:
    # The same few names come again and again. Long ones are not remembered: they may be as long as a payload.
    return _known(name, keys) if type(name) is str and len(name) <= _REMEMBERED else _found(name, keys)


@lru_cache(maxsize=2048)
def _known(name: str, keys: tuple[str, ...]) -> bool:
    return _found(name, keys)


def _found(name: object, keys: tuple[str, ...]) -> bool:
    words = [word.lower() for word in _WORD.findall(str(name))]
    joined = "".join(words)
    return any(key in joined if len(key) >= _SHORTEST_PART else key in words for key in keys)
