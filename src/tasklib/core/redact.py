"""Keeps secrets out of what people read: the one place that masks them, in values and in text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

MASK = "***"

SECRET_KEYS = (
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "access_key",
    "private_key",
    "credential",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "pin",
    "card",
    "dsn",
    "connection_string",
)
"""Values under keys that hold one of these words are masked: in any case, with any separators, in the plural too.
`dbPassword` and `card_number` are such keys; `tokenizer`, `author` and `cardinality` are not."""

_REMEMBERED = 64
_LONG = 5
"""A word this long also ends a longer one (`authtoken`); a shorter one stands alone (`pin`, not `spin`)."""

_NEVER = "(?!)"
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\da-zA-Z_]+")

# The text may be hostile: each pattern begins where a run of letters does and gives nothing back, so that the cost
# grows with the length alone.
_SCHEME = re.compile(r"(?<![\w+.-])[\w+.-]*+://")
_URL_END = re.compile(r"\s|,(?=[\w+.-]{1,31}://)|$")
_USER = re.compile(r"[^/?#:@]*+")
_HOST = re.compile(r"(?:\[[^\]@]*+\]|[^/?#:@\[]*+)(?::\d{1,5})?(?=[/?#]|$)")
_PORT = re.compile(r"\d{0,5}(?!\w)")
_WEB = frozenset({"http", "https", "ws", "wss"})
_NATS = frozenset({"nats", "tls"})

_KEY = re.compile(r"(?<![\w.-])(?P<key>[\w.-]++)(?P<quote>\\?[\"'])?(?P<gap>\s{0,3})(?P<sign>[!=]?=|:)\s{0,3}")
_QUOTED = re.compile(
    r"""[bfru]{0,2}(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\\"[^"]*+")[^\s,;&)}\]]*+|[bfru]{0,2}["'\[{][^\n]*+""",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"[^\s&]*+")
_ITEM = re.compile(r"[^\s,}\]]*+")
_HEADER = re.compile(
    r"(?P<head>(?i:\bauthorization: ?(?:basic|bearer|digest|token)|\bcookie:(?= ?\w+=)) ?(?=\w))[^\n'\"]++"
)
_BEARER = re.compile(r"(?P<head>\bBearer )(?=\w)[^\s'\"]++")

Form = Literal["one", "many"] | None


def redact(value: Any, keys: Iterable[str] = SECRET_KEYS) -> Any:
    """A copy of plain JSON values without secrets, at any depth: what lies under a secret key, and what `mask_text`
    finds in text, names of keys among it."""
    return _redact(value, tuple(keys))


def mask_text(text: str, keys: tuple[str, ...] = SECRET_KEYS) -> str:
    """The text without passwords and tokens in URLs, without the values of secret keys (`password=...`, and as JSON and
    reprs write them), and without what an Authorization header says."""
    if "://" in text:
        text = _mask_urls(text)
    if keys and ("=" in text or ":" in text):
        text = _HEADER.sub(rf"\g<head>{MASK}", _mask_pairs(text, keys))
    return _BEARER.sub(rf"\g<head>{MASK}", text) if "Bearer " in text else text


def _redact(value: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return mask_text(value, keys)
    if isinstance(value, Mapping):
        return {
            mask_text(str(name), keys): MASK if _is_secret(name, item, keys) else _redact(item, keys)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_redact(item, keys) for item in value]
    return value


def _is_secret(name: object, value: object, keys: tuple[str, ...]) -> bool:
    """Nothing, yes and no are no secrets, and a number under a plural is a count: `max_tokens`."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return False
    form = _form(str(name), keys)
    return form == "one" or (form == "many" and not isinstance(value, (int, float)))


def names_secret(name: str, keys: tuple[str, ...] = SECRET_KEYS) -> bool:
    """Whether a name speaks of a secret, whatever is under it."""
    return _form(name, keys) is not None


def secret_pattern(keys: tuple[str, ...]) -> str:
    """The same as a regular expression, for databases: for names in small letters, an underscore around each word."""
    return _pattern(keys).pattern.replace("?P<plural>", "")


def _form(name: str, keys: tuple[str, ...]) -> Form:
    """Whether a name speaks of a secret, or of several."""
    # The same few names come again and again. Long ones are not remembered: they may be as long as a payload.
    return _known(name, keys) if len(name) <= _REMEMBERED else _found(name, keys)


@lru_cache(maxsize=2048)
def _known(name: str, keys: tuple[str, ...]) -> Form:
    return _found(name, keys)


def _found(name: str, keys: tuple[str, ...]) -> Form:
    found = _pattern(keys).search(f"_{'_'.join(_WORD.findall(name))}_".lower()) if keys else None
    return None if found is None else "many" if found["plural"] else "one"


@lru_cache(maxsize=64)
def _pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    """For names as `_found` writes them: words in small letters, an underscore around each."""
    words = ("".join(_WORD.findall(key)).lower() for key in keys)
    ways = ["_?".join(word) if len(word) >= _LONG else f"_{word}" for word in words if word]
    return re.compile(f"(?:{'|'.join(ways or [_NEVER])})(?P<plural>s?)_")


def _mask_pairs(text: str, keys: tuple[str, ...]) -> str:
    parts: list[str] = []
    done = 0
    for found in _KEY.finditer(text):
        start, is_item = found.end(), found["sign"] == ":"
        if found.start() < done or (is_item and not found["quote"]):  # without quotes it is prose: `token: too short`
            continue
        if _form(found["key"], keys) is None:
            continue
        value = _QUOTED.match(text, start)
        if value is None and (is_item or not found["gap"]):  # with a gap it is a line of code: `token = next(tokens)`
            value = (_ITEM if is_item else _ARGUMENT).match(text, start)
        if value is not None and _is_secret(found["key"], _read(value[0]), keys):
            parts += (text[done:start], MASK)
            done = value.end()
    return "".join([*parts, text[done:]])


def _read(text: str) -> object:
    """A value as far as it matters here: nothing, yes, no, a number, or anything else."""
    plain = text.strip("\"',;)")
    if plain.lower() in ("", "none", "null", "true", "false"):
        return None
    return 1 if plain.isdecimal() else plain


def _mask_urls(text: str) -> str:
    parts: list[str] = []
    done, end, at = 0, 0, -1
    for found in _SCHEME.finditer(text):
        start = found.end()
        if start < done:
            continue
        if start >= end:
            ended = _URL_END.search(text, start)
            end = len(text) if ended is None else ended.start()
            at = text.rfind("@", start, end)  # the last: a password may hold others
        if at >= start:
            secret, until = _secret_start(_scheme(found[0]), text, start, end, at), at
        else:
            secret, until = _cut_password_start(text, start, end), end
        if secret is not None:
            parts += (text[done:secret], MASK)
            done = until
    return "".join([*parts, text[done:]])


def _scheme(head: str) -> str:
    """`https` of `git+https://`, and `nats` where a text such as `field.` stands before it."""
    return re.split(r"[+.-]", head.removesuffix("://"))[-1].lower()


def _secret_start(scheme: str, text: str, start: int, end: int, at: int) -> int | None:
    """Where the secret begins that ends at the `@`. A user's name alone is a token where URLs have those."""
    if scheme in _WEB and _HOST.match(text, start, end):
        return None
    user = _USER.match(text, start, at)
    assert user is not None  # it may be empty
    sign = text[user.end()]
    if sign == ":":
        return user.end() + 1
    if scheme in _NATS or (scheme in _WEB and sign == "@"):
        return start
    colon = text.find(":", user.end(), at) if sign == "@" else -1  # an address as the user's name
    return None if colon < 0 else colon + 1


def _cut_password_start(text: str, start: int, end: int) -> int | None:
    """Where a password begins whose URL was cut off before the `@`: what follows a host's colon is a port."""
    user = _USER.match(text, start, end)
    assert user is not None  # it may be empty
    colon = user.end()
    if colon == end or text[colon] != ":" or text[start] == "[" or _PORT.match(text, colon + 1, end):
        return None
    return colon + 1
