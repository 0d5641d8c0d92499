"""Durations: seconds as a number, or a timedelta, wherever one is asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

Seconds: TypeAlias = float | timedelta
WholeSeconds: TypeAlias = int | timedelta


def in_seconds(value: Any) -> Any:
    """A timedelta as seconds, as a whole number if it is one; anything else as it is, to be checked."""
    if not isinstance(value, timedelta):
        return value
    seconds = value.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
