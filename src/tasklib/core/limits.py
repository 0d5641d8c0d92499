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
    """What to change of the controls of one type, or of all: what is UNSET stays."""

    name: str = ALL
    paused: bool | Unset = UNSET
    operator_rate: float | Unset | None = UNSET
    """None clears the operator's value; 0 means: no limit, whatever the code says."""
    default_rate: float | Unset | None = UNSET
    concurrency: int | Unset | None = UNSET
    by: str | None = None
    """Who asks for it, to be kept with a pause; None: code."""
    at: datetime | None = None
    """When it was asked for; None: now."""


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
    paused_by: str | None = None
    """Who paused it. None: it is not paused, or code did."""
    paused_at: datetime | None = None


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
    paused_by: str | None = None
    paused_at: datetime | None = None

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

    def spent(self, number: int, now: datetime) -> Control:
        """After so many starts."""
        if self.rate is None:
            return self
        return replace(self, tokens=self.tokens_at(now) - number, refilled_at=max(now, self.refilled_at or now))

    def changed(self, change: ControlChange, now: datetime) -> Control:
        """With what the change gives; the rest stays. A new rate starts with a full bucket. A pause of what is paused
        leaves who did it first."""
        names = ("paused", "operator_rate", "default_rate", "concurrency")
        given = {name: getattr(change, name) for name in names}
        new = replace(self, **{name: value for name, value in given.items() if not isinstance(value, Unset)})
        if new.paused is not self.paused:
            by, at = (change.by, change.at or now) if new.paused else (None, None)
            new = replace(new, paused_by=by, paused_at=at)
        return new if new.rate == self.rate else replace(new, tokens=None, refilled_at=None)

    def public(self) -> Controls:
        return Controls(
            name=self.name,
            paused=self.paused,
            rate=self.rate,
            concurrency=self.concurrency,
            operator_rate=self.operator_rate,
            default_rate=self.default_rate,
            paused_by=self.paused_by,
            paused_at=self.paused_at,
        )


class Limits:
    """What the controls allow at one instant, and what is left of it as claims are made."""

    def __init__(self, controls: Iterable[Control], now: datetime, running: Mapping[str, int]) -> None:
        self._controls = {control.name: control for control in controls if control.paused or control.limited}
        self._now = now
        self._running = dict(running)
        """How many run, by name; under `ALL` how many there are of all together."""

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
            caps.append(max(0, control.concurrency - self._running.get(name, 0)))
        return min(caps) if caps else None

    def allows(self, name: str) -> bool:
        """Whether one of this name may start now."""
        return all(cap is None or cap > 0 for cap in (self.cap(ALL), self.cap(name)))

    def rationed(self, names: Iterable[str]) -> bool:
        """Whether a claim of these names may start something, and would use up a limit with it."""
        return any((self.limited(name) or self.limited(ALL)) and self.allows(name) for name in names)

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

    def full(self, names: Iterable[str]) -> bool:
        """Whether something has to end before more of one of these names can start."""
        for name in (ALL, *names):
            control = self._controls.get(name)
            if control is None or control.paused or control.concurrency is None:
                continue
            if self._running.get(name, 0) >= control.concurrency:
                return True
        return False

    def spend(self, taken: Mapping[str, int]) -> list[Control]:
        """So many claims of each name were made: the limits that they were made under, with what is left in their
        buckets."""
        spent = []
        for name, number in {**taken, ALL: sum(taken.values())}.items():
            self._running[name] = self._running.get(name, 0) + number
            if number and self.limited(name):
                spent.append(self._controls[name].spent(number, self._now))
        self._controls |= {control.name: control for control in spent}
        return spent
