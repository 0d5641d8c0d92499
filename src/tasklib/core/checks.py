"""Checks that several kinds of values have in common: the same limits and the same words."""

from __future__ import annotations

from tasklib.core import codec
from tasklib.core.durations import in_seconds
from tasklib.core.errors import InvalidOption

KEY_LIMIT = 255
INT32 = 2**31 - 1
LONGEST_DELAY_SECONDS = 100 * 366 * 86400.0


def check_delay(value: object, field: str = "delay_seconds") -> float:
    value = in_seconds(value)
    # Compared and not converted: NaN fails the comparison, and an integer may be too large for a float.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LONGEST_DELAY_SECONDS:
        limits = f"a number of seconds from 0 to {LONGEST_DELAY_SECONDS:.0f} (100 years)"
        raise InvalidOption(f"{field} must be {limits}, got {shown(value)}", field=field)
    return float(value)


def check_whole(field: str, value: object, low: int, high: int, unit: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidOption(
            f"{field} must be a whole number from {low} to {high}{unit}, got {shown(value)}", field=field
        )
    return value


def check_text(field: str, value: object, limit: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= limit:
        length = f" ({len(value)} characters)" if isinstance(value, str) else ""
        raise InvalidOption(f"{field} must be text of 1 to {limit} characters, got {shown(value)}{length}", field=field)
    problem = codec.text_problem(value)
    if problem:
        raise InvalidOption(f"{field} {problem}", field=field)
    return value


def shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
