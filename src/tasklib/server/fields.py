"""Field types of the API: what JSON gives, nothing converted silently."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic.functional_validators import AfterValidator

from tasklib.core.checks import INT32, KEY_LIMIT, LONGEST_DELAY_SECONDS
from tasklib.core.codec import text_problem
from tasklib.core.options import NAME_LIMIT
from tasklib.stores.values import EndedCursor

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # to JSON 3.0 is the integer 3
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number")
    return value


def _text(value: str) -> str:
    found = text_problem(value)
    if found:
        raise ValueError(found)
    return value


def _instant(value: Any) -> Any:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        raise ValueError("must be an ISO 8601 time with its zone, like 2025-01-15T10:00:00Z (in a URL write + as %2B)")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("there is no such time") from None


def read_cursor(text: str) -> UUID | EndedCursor:
    ended, _, task_id = text.rpartition("_")
    return EndedCursor(_EPOCH + timedelta(microseconds=int(ended)), UUID(task_id)) if ended else UUID(task_id)


def written_cursor(cursor: UUID | EndedCursor | None) -> str | None:
    if isinstance(cursor, EndedCursor):
        return f"{(cursor.completed_at - _EPOCH) // timedelta(microseconds=1)}_{cursor.id}"
    return None if cursor is None else str(cursor)


def _flag(value: Any) -> Any:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _shortest(value: float) -> float:
    return int(value) if value.is_integer() else value


def split_by_comma(value: Any) -> Any:
    """`a,b` and `b` as a, b and b."""
    return [part for text in value for part in text.split(",")] if isinstance(value, list) else value


Shortest = Annotated[float, PlainSerializer(_shortest, return_type=int | float, when_used="json")]
"""Written as 10, not as 10.0."""
Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT), AfterValidator(_text)]
Key = Annotated[str, Field(min_length=1, max_length=KEY_LIMIT), AfterValidator(_text)]
ShortId = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{12}$")]
SearchText = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_text)]
Attempts = Annotated[Whole, Field(ge=0, le=INT32)]
Priority = Annotated[Whole, Field(ge=-INT32 - 1, le=INT32)]
Seconds = Annotated[Whole, Field(ge=1, le=INT32)]
Length = Annotated[Number, Field(gt=0, le=LONGEST_DELAY_SECONDS)]
Rate = Annotated[Number, Field(ge=0, le=1e6)]
TypeRate = Annotated[Number, Field(gt=0, le=1e6)]
Concurrency = Annotated[Whole, Field(ge=1, le=1_000_000)]
Instant = Annotated[
    datetime, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"}, mode="validation")
]
Cursor = Annotated[str, Field(pattern=r"^([0-9]{1,17}_)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]
"""An id; in the order of ends, microseconds since 1970 and an id."""
