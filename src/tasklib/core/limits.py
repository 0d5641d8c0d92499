"""Pause, rates and concurrency: how many of each name a claim may take now. Pure; the same for every engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

ALL = ""
"""The name under which the controls for all types are kept."""

EPSILON = 1e-6
"""So much below one token is one: sums of a tenth never quite reach it, and clocks round."""


class Unset:
    """Marks a control that is to stay as it is."""


UNSET = Unset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlChange:
    name: str = ALL
    paused: bool | Unset = UNSET
    operator_rate: float | Unset | None = UNSET
    """None clears the operator's value; 0 means: no limit, whatever the code says."""
    default_rate: float | Unset | None = UNSET
    concurrency: int | Unset | None = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """Pause and limits of one type, or of all, as people see them."""

    name: str = ALL
    paused: bool = False
    rate: float | None = None
    """Starts a second for the whole fleet: the operator's value if set, else the code's default. None: no limit."""
    concurrency: int | None = None
    """Running at once in the whole fleet."""
    operator_rate: float | None = None
    default_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """What is kept of one type's controls, or of all types'."""

    name: str
    paused: bool = False
    operator_rate: float | None = None
    default_rate: float | None = None
    concurrency: int | None = None
    tokens: float | None = None
    refilled_at: datetime | None = None
    """When `tokens` were in the bucket. None, here or there: it is full."""

    @property
    def rate(self) -> float | None:
        """The operator's value if set, else the code's; zero means: no limit."""
        chosen = self.default_rate if self.operator_rate is None else self.operator_rate
        return chosen or None

    @property
    def limited(self) -> bool:
        return self.rate is not None or self.concurrency is not None

    def tokens_at(self, now: datetime) -> float:
        """What is in the bucket. It holds at most one second's worth, and a new or changed rate starts with that."""
        rate = self.rate or 0.0
        most = max(1.0, rate)
        if self.tokens is None or self.refilled_at is None:
            return most
        return min(most, self.tokens + max(0.0, (now - self.refilled_at).total_seconds()) * rate)

    def changed(self, change: ControlChange) -> Control:
        """With what the change gives; the rest stays. A new rate starts with a full bucket."""
        names = ("paused", "operator_rate", "default_rate", "concurrency")
        given = {name: getattr(change, name) for name in names}
        new = replace(self, **{name: value for name, value in given.items() if not isinstance(value, Unset)})
        return new if new.rate == self.rate else replace(new, tokens=None, refilled_at=None)

    def public(self) -> Controls:
        return Controls(
            name=self.name,
            paused=self.paused,
            rate=self.rate,
            concurrency=self.concurrency,
            operator_rate=self.operator_rate,
            default_rate=self.default_rate,
        )


class Limits:
    """What the controls allow at one instant."""

    def __init__(self, controls: Mapping[str, Control], now: datetime, running: Mapping[str, int]) -> None:
        self._controls = controls
        self._now = now
        self._running = running

    def paused(self, name: str) -> bool:
        return any(each in self._controls and self._controls[each].paused for each in (name, ALL))

    def limited(self, name: str) -> bool:
        return name in self._controls and self._controls[name].limited

    def cap(self, name: str) -> int | None:
        """How many may start now; None where nothing limits them."""
        control = self._controls.get(name)
        if control is None:
            return None
        if control.paused:
            return 0
        caps = []
        if control.rate is not None:
            caps.append(math.floor(control.tokens_at(self._now) + EPSILON))
        if control.concurrency is not None:
            running = sum(self._running.values()) if name == ALL else self._running.get(name, 0)
            caps.append(max(0, control.concurrency - running))
        return min(caps) if caps else None

    def allows(self, name: str) -> bool:
        """Whether one of this name may start now."""
        return all(cap is None or cap > 0 for cap in (self.cap(ALL), self.cap(name)))

    def next_token_in(self, names: Iterable[str]) -> float | None:
        """Seconds until a bucket that is empty now has a token again."""
        waits = []
        for name in (ALL, *names):
            control = self._controls.get(name)
            if control is None or control.paused or control.rate is None:
                continue
            missing = 1.0 - control.tokens_at(self._now)
            if missing > EPSILON:
                waits.append(missing / control.rate)
        return min(waits, default=None)

    def used(self, taken: Mapping[str, int]) -> list[tuple[str, float | None]]:
        """The limits that so many claims of each name were made under, and what is left in their buckets; None: they
        have none."""
        used = []
        for name, control in self._controls.items():
            number = sum(taken.values()) if name == ALL else taken.get(name, 0)
            if number and control.limited:
                used.append((name, None if control.rate is None else control.tokens_at(self._now) - number))
        return used
