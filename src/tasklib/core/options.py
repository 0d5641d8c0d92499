"""Options of a submit, checked one by one: the same limits and the same words through every API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tasklib.core import codec
from tasklib.core.durations import Seconds, WholeSeconds, in_seconds
from tasklib.core.errors import InvalidOption
from tasklib.core.retry import RetryPolicy

NAME_LIMIT = 255
KEY_LIMIT = 255
INT32 = 2**31 - 1
LONGEST_DELAY_SECONDS = 100 * 366 * 86400.0
TAGS_LIMIT = 16 * 1024
DEFAULT_QUEUE = "default"
"""Of task types that say no other."""

RESERVED = frozenset(
    {"delay_seconds", "run_at", "max_retries", "timeout_seconds", "priority", "tags", "idempotency_key", "connection"}
)
"""Names that a submit takes for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What a caller may say about one submit. None: the task type's own value, or the configuration's."""

    delay_seconds: Seconds | None = None
    run_at: datetime | None = None
    max_retries: int | None = None
    timeout_seconds: WholeSeconds | None = None
    priority: int | None = None
    tags: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    retry: RetryPolicy | None = None

    def __post_init__(self) -> None:
        if self.delay_seconds is not None:
            check_delay(self.delay_seconds)
            if self.run_at is not None:
                raise InvalidOption("give delay_seconds or run_at, not both", field="run_at")
        if self.run_at is not None:
            check_run_at(self.run_at)
        if self.max_retries is not None:
            check_max_retries(self.max_retries)
        if self.timeout_seconds is not None:
            check_timeout(self.timeout_seconds)
        if self.priority is not None:
            check_whole("priority", self.priority, -INT32 - 1, INT32)
        if self.idempotency_key is not None:
            check_key(self.idempotency_key)
        if self.retry is not None and not isinstance(self.retry, RetryPolicy):
            raise InvalidOption(f"retry must be a RetryPolicy, got {_shown(self.retry)}", field="retry")


OPTION_NAMES = RESERVED | set(SubmitOptions.__slots__)


def check_name(name: object, field: str = "name") -> str:
    return _text(field, name, NAME_LIMIT)


def check_key(key: object) -> str:
    return _text("idempotency_key", key, KEY_LIMIT)


def check_delay(value: object, field: str = "delay_seconds") -> float:
    value = in_seconds(value)
    # Compared and not converted: NaN fails the comparison, and an integer may be too large for a float.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LONGEST_DELAY_SECONDS:
        limits = f"a number of seconds from 0 to {LONGEST_DELAY_SECONDS:.0f} (100 years)"
        raise InvalidOption(f"{field} must be {limits}, got {_shown(value)}", field=field)
    return float(value)


def check_run_at(value: object, field: str = "run_at") -> datetime:
    if not isinstance(value, datetime):
        raise InvalidOption(f"{field} must be a datetime, got {_shown(value)}", field=field)
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidOption(f"{field} must have a time zone, for example datetime.now(UTC)", field=field)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidOption(f"{field} is out of range: {_shown(value)}", field=field) from None


def check_max_retries(value: object) -> int:
    return check_whole("max_retries", value, -1, INT32 - 1, "; -1 is unlimited")


def check_timeout(value: object) -> int:
    return check_whole("timeout_seconds", in_seconds(value), 1, INT32, " seconds")


def check_tags(value: object) -> str:
    """Tags as JSON text."""
    if not isinstance(value, Mapping):
        raise InvalidOption(f"tags must be a mapping of text to JSON values, got {_shown(value)}", field="tags")
    return codec.encode(dict(value), field="tags", limit=TAGS_LIMIT)


def check_whole(field: str, value: object, low: int, high: int, unit: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidOption(
            f"{field} must be a whole number from {low} to {high}{unit}, got {_shown(value)}", field=field
        )
    return value


def _text(field: str, value: object, limit: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= limit:
        length = f" ({len(value)} characters)" if isinstance(value, str) else ""
        raise InvalidOption(
            f"{field} must be text of 1 to {limit} characters, got {_shown(value)}{length}", field=field
        )
    problem = codec.text_problem(value)
    if problem:
        raise InvalidOption(f"{field} {problem}", field=field)
    return value


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
