"""Durations: seconds as a number, or a timedelta, wherever one is asked for."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, TypeAlias

Seconds: TypeAlias = float | timedelta
WholeSeconds: TypeAlias = int | timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_STEPS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw]?)", re.ASCII)


def in_seconds(value: Any) -> Any:
    """A timedelta as seconds, as a whole number if it is one; anything else as it is, to be checked."""
    if not isinstance(value, timedelta):
        return value
    seconds = value.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def read_duration(text: str) -> float:
    """Seconds from `90`, `90s`, `5m`, `2h`, `30d` or `1w`. Raises ValueError."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r:.60} is not a duration; write it like 90s, 5m, 2h, 30d or 1w")
    return float(match[1]) * _UNITS[match[2] or "s"]


def span(seconds: float) -> str:
    """A length of time, in the unit that suits it."""
    size = abs(seconds)
    for length, unit in _STEPS:
        if size >= length:
            rounded = size / length
            return f"{rounded:.1f} {unit}" if rounded < 10 and unit != "min" else f"{rounded:.0f} {unit}"
    return f"{size:.0f} s" if size >= 10 or size == int(size) else f"{size:.1f} s"
