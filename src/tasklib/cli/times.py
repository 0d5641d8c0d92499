"""Durations as people write them, and instants as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from tasklib.core.durations import read_duration
from tasklib.core.durations import span as span


def duration(text: str | float) -> float:
    """Seconds from `90`, `90s`, `5m`, `2h`, `30d` or `1w`. Typer passes defaults through here too."""
    if isinstance(text, (int, float)):
        return float(text)
    try:
        return read_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


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


def relative(value: datetime, now: datetime) -> str:
    seconds = (now - value).total_seconds()
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(seconds)}"


def absolute(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def both(value: datetime, now: datetime) -> str:
    return f"{relative(value, now)} ({absolute(value)})"


def iso(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
