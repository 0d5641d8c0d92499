"""The one JSON contract for payloads, results, tags and errors: the same on every backend and through every API.

What comes back is what went in, up to JSON's own normalisation (key order is not kept, -0.0 is 0.0).
What could not come back so is refused here, before anything is written.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from tasklib.core.errors import InvalidValue
from tasklib.core.redact import mask_text

MAX_DEPTH = 64
MAX_BYTES = 1024 * 1024
MAX_DIGITS = 4300
"""Integers are kept exactly up to this many digits, the most that Python itself turns into text."""
ERROR_LIMIT = 16 * 1024

_CUT = "\n... cut ...\n"
_MARGIN = 32 * 1024
"""Characters beside a cut that are masked and dropped. No secret is half as long."""

_TOO_LONG = 10**MAX_DIGITS
# A number that a database may hand back in another notation: with an exponent, or negative zero. What looks a little
# like the first is found in a quarter of the time.
_EXPONENT = re.compile(r"[0-9][eE][-+0-9]")
_UNSETTLED_NUMBER = re.compile(r"[:\[,\s]-?\d+(?:\.\d+)?[eE]|^-?\d+(?:\.\d+)?[eE]|-0(?:\.0*)?(?![\d.])")
# NUL, and escapes of surrogates, which are fine in pairs only.
_UNSETTLED_TEXT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_LONG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")


def encode(value: Any, *, field: str, limit: int = MAX_BYTES) -> str:
    """Plain JSON values (None, bool, int, float, str, list, tuple, dict with text keys) as JSON text."""
    return _dump(_settled(value, field, 0), field, limit)


def vet(text: str, *, field: str, limit: int = MAX_BYTES) -> str:
    """JSON text that a serialiser made, checked against the same contract. Cheap for what is ordinary."""
    if (
        len(text) * 4 > limit
        or not _is_plain(text)
        or _openings(text) > MAX_DEPTH
        or (len(text) > MAX_DIGITS and _LONG_NUMBER.search(text))
    ):
        _check_size(text, field, limit)
        return encode(decode(text, field=field), field=field, limit=limit)
    return text


def vet_all(texts: list[str], *, field: str, limit: int = MAX_BYTES) -> list[str]:
    """Each of them vetted. Cheaper than one by one: what is plain in all together is plain in each."""
    longest = max(map(len, texts), default=0)
    if (
        longest * 4 > limit
        or longest > MAX_DIGITS
        or not _is_plain("\n".join(texts))
        or (longest > MAX_DEPTH and max(map(_openings, texts)) > MAX_DEPTH)
    ):
        return [vet(text, field=field, limit=limit) for text in texts]
    return texts


def decode(text: str | bytes, *, field: str = "value") -> Any:
    """JSON text to plain values. NaN and infinities are not JSON and are refused."""

    def refuse(constant: str) -> NoReturn:
        raise InvalidValue(f"{field}: {constant} is not a JSON value", field=field)

    try:
        return json.loads(text, parse_constant=refuse)
    except InvalidValue:
        raise
    except RecursionError:
        raise _too_deep(field) from None
    except ValueError as error:
        if "digits" in str(error):
            raise _too_long(field) from None
        raise InvalidValue(f"{field}: not valid JSON: {error}", field=field) from None


def check_keys(value: Any, *, field: str) -> None:
    """Refuses keys that are not text where no type says how to read them back; a serialiser would make them text."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidValue(f"{field}: keys must be text, got {key!r:.80}", field=field)
            check_keys(item, field=f"{field}.{key:.80}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            check_keys(item, field=f"{field}[{index}]")


def clip_error(text: str, limit: int = ERROR_LIMIT) -> str:
    """An error text that any backend can hold: no NUL, no lone surrogates, at most `limit` bytes, its end kept."""
    edge = limit + 2 * _MARGIN
    if len(text) > 2 * edge:
        # To search megabytes for secrets holds the interpreter for a second. So the middle goes first; and once the
        # rest is masked, all that may hold half a secret, which is not known for one.
        text = mask_text(text[:edge])[:-_MARGIN] + _CUT + mask_text(text[-edge:])[_MARGIN:]
    data = _storable(text)
    if len(data) > limit:
        data = _storable(mask_text(text))  # half a password would not be known for one
    if len(data) <= limit:
        return data.decode()
    mark = _CUT.encode()
    head = (limit - len(mark)) // 4
    tail = limit - len(mark) - head
    return (data[:head] + mark + data[-tail:]).decode("utf-8", "ignore")


def _storable(text: str) -> bytes:
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")


def text_problem(text: str) -> str | None:
    """Why a piece of text cannot be stored everywhere, or None."""
    if "\0" in text:
        return "contains a NUL character"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "contains a lone surrogate"
    return None


def _settled(value: Any, field: str, depth: int) -> Any:
    """The value as every backend will give it back; raises where that cannot be had."""
    kind = type(value)
    if kind is str:
        if not value.isascii() or "\0" in value:
            problem = text_problem(value)
            if problem:
                raise InvalidValue(f"{field}: text {problem}", field=field)
        return value
    if kind is int:
        if not -_TOO_LONG < value < _TOO_LONG:
            raise _too_long(field)
        return value
    if value is None or kind is bool:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise InvalidValue(f"{field}: {value!r} is not a JSON value", field=field)
        return value
    if isinstance(value, dict):
        if depth >= MAX_DEPTH:
            raise _too_deep(field)
        settled = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidValue(f"{field}: keys must be text, got {key!r:.80}", field=field)
            name = _settled(str.__str__(key), field, depth)  # first, because it becomes part of the field's name
            settled[name] = _settled(item, f"{field}.{name:.80}", depth + 1)
        return settled
    if isinstance(value, (list, tuple)):
        if depth >= MAX_DEPTH:
            raise _too_deep(field)
        return [_settled(item, f"{field}[{index}]", depth + 1) for index, item in enumerate(value)]
    # A subclass, such as an enum's member, whose own str() may say something else.
    if isinstance(value, str):
        return _settled(str.__str__(value), field, depth)
    if isinstance(value, int):
        return _settled(int.__int__(value), field, depth)
    if isinstance(value, float):
        return _settled(float.__float__(value), field, depth)
    raise InvalidValue(f"{field}: {type(value).__name__} is not a JSON value", field=field)


def _is_plain(text: str) -> bool:
    """JSON text without anything that needs a closer look, wherever it stands."""
    return not (
        ("\\u" in text and _UNSETTLED_TEXT.search(text))
        or "NaN" in text
        or "Infinity" in text
        or (("-0" in text or _EXPONENT.search(text)) and _UNSETTLED_NUMBER.search(text))
        or not (text.isascii() or text_problem(text) is None)
    )


def _openings(text: str) -> int:
    """JSON text is nested no deeper than this."""
    return text.count("[") + text.count("{")


def _dump(value: Any, field: str, limit: int) -> str:
    text = _render(value)
    _check_size(text, field, limit)
    return text


def _render(value: Any) -> str:
    """Settled values as JSON text. Only a tree that holds an unusual float is written by hand."""
    if not _has_unusual_float(value):
        return _ENCODER.encode(value)
    if isinstance(value, dict):
        pairs = ",".join(f"{_ENCODER.encode(key)}:{_render(item)}" for key, item in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_render, value))}]"
    return _plain(value)


def _has_unusual_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_unusual_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_unusual_float, value))
    return type(value) is float and (value == 0 or "e" in repr(value))


def _plain(value: float) -> str:
    """A float without exponent and without negative zero, so that every database keeps it a float."""
    if value == 0:
        return "0.0"
    if abs(value) >= 1:
        return format(value, ".1f")
    mantissa, exponent = repr(value).split("e")
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    return f"{sign}0.{'0' * (-int(exponent) - 1)}{digits}"


def _check_size(text: str, field: str, limit: int) -> None:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise InvalidValue(f"{field}: {size:,} bytes of JSON, the limit is {limit:,}", field=field)


def _too_deep(field: str) -> InvalidValue:
    root = re.split(r"[.\[]", field, maxsplit=1)[0]
    return InvalidValue(f"{root}: nested deeper than {MAX_DEPTH} levels (or a cycle)", field=root)


def _too_long(field: str) -> InvalidValue:
    return InvalidValue(f"{field}: an integer of more than {MAX_DIGITS:,} digits", field=field)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
