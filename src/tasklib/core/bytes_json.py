"""Bytes inside JSON: how the claim API stores a payload or a result that is not a JSON value.

Bytes are `{"$bytes": "aGVsbG8="}`, in base64. A JSON value that happens to look like that is put into `{"$json": ...}`,
so that what comes back is always what went in.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

BYTES = "$bytes"
PLAIN = "$json"


def pack(value: Any) -> Any:
    """The value as JSON has it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {BYTES: base64.b64encode(value).decode()}
    return {PLAIN: value} if _is_marked(value) else value


def unpack(value: Any) -> Any:
    """What was packed. A value that only looks packed, from another API, stays as it is."""
    if not _is_marked(value):
        return value
    ((mark, inner),) = value.items()
    if mark == PLAIN:
        return inner if _is_marked(inner) else value
    try:
        return base64.b64decode(inner, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return value


def _is_marked(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in (BYTES, PLAIN)
