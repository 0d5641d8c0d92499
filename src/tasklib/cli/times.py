"""Durations as people write them, and instants as people read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import typer

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw]?)", re.ASCII)
_STEPS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


def duration(text: str | float) -> float:
    """Seconds from `90`, `90s`, `5m`, `2h`, `30d` or `1w`. Typer passes defaults through here too."""
    if isinstance(text, (int, float)):
        return float(text)
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r:.60} is not a duration; write it like 90s, 5m, 2h, 30d or 1w")
    return float(match[1]) * _UNITS[match[2] or "s"]


def instant(text: str) -> datetime:
    """An ISO 8601 time that says its zone."""
    try:
        value = datetime.fromisoformat(text.strip())
    except ValueError:
        value = None
    if value is None or value.tzinfo is None:
        problem = "is not an ISO 8601 time" if value is None else "has no time zone"
        raise typer.BadParameter(f"{text!r:.60} {problem}; write it like 2030-12-31T08:00:00Z")
    return value


def span(seconds: float) -> str:
    """A length of time, in the unit that suits it."""
    size = abs(seconds)
    for length, unit in _STEPS:
        if size >= length:
            rounded = size / length
            return f"{rounded:.1f} {unit}" if rounded < 10 and unit != "min" else f"{rounded:.0f} {unit}"
    return f"{size:.0f} s" if size >= 10 or size == int(size) else f"{size:.1f} s"


def relative(value: datetime, now: datetime) -> str:
    seconds = (now - value).total_seconds()
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(seconds)}"


def absolute(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def both(value: datetime, now: datetime) -> str:
    return f"{relative(value, now)} ({absolute(value)})"


def iso(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
