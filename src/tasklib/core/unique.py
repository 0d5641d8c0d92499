"""Unique tasks: of one type, one for each key, until it starts, until it ends, or for a time.

The key is given up once and never taken again: a task that is retried meets its successor and neither blocks the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from tasklib.core.checks import KEY_LIMIT, check_delay, check_text, shown
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import InvalidOption

STARTED, FINISHED, ELAPSED = "started", "finished", "elapsed"
Until = Literal["started", "finished", "elapsed"]
Conflict = Literal["join", "replace"]


@dataclass(frozen=True, slots=True)
class Unique:
    """`key` stands for one task of its type. A submit that meets it joins it: nothing is stored, and the handle is that
    task's. `conflict="replace"`: what has not started takes over the newest submit's arguments and options instead.

    `until="started"`: one waits while one runs. `until="finished"`: one at all. `until="elapsed"` with `seconds`: one
    in that time, whatever becomes of it; see `throttle`. `seconds` with `until="started"` and `conflict="replace"`: it
    starts when so long none was submitted; see `debounce`."""

    key: str
    until: Until = "finished"
    conflict: Conflict = "join"
    seconds: Seconds | None = None
    """Kept as a number, as `at_most` is."""
    at_most: Seconds | None = None

    def __post_init__(self) -> None:
        check_text("unique.key", self.key, KEY_LIMIT)
        _one_of("until", self.until, (STARTED, FINISHED, ELAPSED))
        _one_of("conflict", self.conflict, ("join", "replace"))
        for name in ("seconds", "at_most"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _positive(value, f"unique.{name}"))
        if self.until == ELAPSED:
            if self.seconds is None or self.conflict != "join":
                _refuse("seconds", "until='elapsed' takes seconds, and conflict='join'; see throttle")
        elif self.seconds is not None and (self.until, self.conflict) != (STARTED, "replace"):
            _refuse("seconds", "they take until='elapsed', or until='started' and conflict='replace'; see debounce")
        if self.at_most is not None:
            if self.seconds is None or self.until == ELAPSED:
                _refuse("at_most", "it takes the seconds of a debounce")
            elif in_seconds(self.at_most) < in_seconds(self.seconds):
                _refuse("at_most", f"must be at least seconds ({self.seconds:g}), got {self.at_most:g}")


def debounce(key: str, seconds: Seconds, at_most: Seconds | None = None) -> Unique:
    """Runs once things are quiet: `seconds` after the latest submit of this key, with its arguments, and not later than
    `at_most` after the first."""
    checked = _positive(seconds, "unique.seconds")  # Unique takes None, too, and is no debounce then
    return Unique(key, until="started", conflict="replace", seconds=checked, at_most=at_most)


def throttle(key: str, seconds: Seconds) -> Unique:
    """Runs at once; submits of this key within `seconds` of that one join it."""
    return Unique(key, until="elapsed", seconds=seconds)


def delay_of(rule: Unique) -> float | None:
    """How long a debounce waits for another submit; None: it is none."""
    return None if rule.until == ELAPSED else in_seconds(rule.seconds)


class Holder(NamedTuple):
    """The task that has a key."""

    id: UUID
    name: str
    unique_key: str
    unique_until: str | None
    created_at: datetime
    started: bool
    running: bool
    over: bool
    now: datetime

    def gives_way_to(self, rule: Unique) -> bool:
        """Whether the key is free by now, for such a submit. Workers older than unique tasks clear no key: of what one
        of them runs, it is free all the same."""
        if self.unique_until == ELAPSED and rule.until == ELAPSED:
            return self.created_at + timedelta(seconds=in_seconds(rule.seconds)) <= self.now
        return self.over or (self.unique_until == STARTED and self.started)

    def is_replaced_by(self, rule: Unique) -> bool:
        return rule.conflict == "replace" and not self.running and not self.over


def key_after_claim(key: str | None, until: str | None) -> str | None:
    return None if until == STARTED else key


def key_after_end(key: str | None, until: str | None) -> str | None:
    return key if until == ELAPSED else None


def _positive(value: object, field: str) -> float:
    seconds = check_delay(value, field)
    if seconds <= 0:
        raise InvalidOption(f"{field} must be more than 0", field=field)
    return seconds


def _one_of(field: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        _refuse(field, f"must be one of {', '.join(known)}, got {shown(value)}")


def _refuse(field: str, text: str) -> None:
    raise InvalidOption(f"unique.{field}: {text}", field=f"unique.{field}")
