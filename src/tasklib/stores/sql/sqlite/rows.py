"""Rows and values: how times and ids are written in SQLite, and how they are read back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_LAST_SECOND = datetime.max.replace(microsecond=0, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(value: float) -> str:
    """A duration as one of SQLite's time modifiers."""
    return f"{value:+.3f} seconds"


@lru_cache
def instant(text: str) -> datetime:
    """A time as the tables have it. A column that is not checked may have been edited into another form. Rows that were
    written together have the same times."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return _EPOCH
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def written(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def rounded_up(value: datetime) -> datetime:
    """To whole milliseconds, as times are kept."""
    return value + timedelta(microseconds=-value.microsecond % 1000) if value < _LAST_SECOND else value


def waited_ms(start_day: str) -> str:
    """In SQL, how long a task had waited when it started, which is given as SQLite counts days."""
    return f"max(0, cast(round(86400000 * ({start_day} - julianday(scheduled_at))) AS INTEGER))"


def seconds_between(earlier: str, later: str) -> float:
    return (instant(later) - instant(earlier)) / timedelta(seconds=1)
