"""Pause, rates and concurrency, as the control rows have them: how many of each name a claim may take now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tasklib.stores.base import Controls
from tasklib.stores.sqlite.rows import seconds_between

ALL = ""
"""The name under which the controls for all types are kept."""


@dataclass(frozen=True, slots=True)
class Control:
    """One control row."""

    name: str
    paused: bool
    operator_rate: float | None
    default_rate: float | None
    concurrency: int | None
    tokens: float | None
    refilled_at: str | None

    @classmethod
    def read(cls, row: Sequence[Any]) -> Control:
        return cls(row[0], bool(row[1]), *row[2:7])

    @property
    def rate(self) -> float | None:
        """The operator's value if set, else the code's; zero means: no limit."""
        chosen = self.default_rate if self.operator_rate is None else self.operator_rate
        return chosen or None

    @property
    def limited(self) -> bool:
        return self.rate is not None or self.concurrency is not None

    def tokens_at(self, now: str) -> float:
        """What is in the bucket. It holds at most one second's worth, and a new or changed rate starts with it full."""
        rate = self.rate or 0.0
        cap = max(1.0, rate)
        if self.tokens is None or self.refilled_at is None:
            return cap
        elapsed = max(0.0, seconds_between(self.refilled_at, now))
        return min(cap, self.tokens + elapsed * rate)

    def public(self) -> Controls:
        return Controls(
            name=self.name,
            paused=self.paused,
            rate=self.rate,
            concurrency=self.concurrency,
            operator_rate=self.operator_rate,
            default_rate=self.default_rate,
        )


class Permits:
    """What the controls allow at one instant."""

    def __init__(self, controls: Iterable[Control], now: str, running: dict[str, int]) -> None:
        self._controls = {control.name: control for control in controls}
        self._now = now
        self._running = running

    @property
    def paused(self) -> bool:
        return ALL in self._controls and self._controls[ALL].paused

    @property
    def all_limited(self) -> bool:
        return self.limited(ALL)

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
            # A hair below one is one: sums of a tenth never quite reach it.
            caps.append(math.floor(control.tokens_at(self._now) + 1e-9))
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
            if missing > 1e-9:
                waits.append(missing / control.rate)
        return min(waits, default=None)

    def tokens_left(self, taken: dict[str, int]) -> list[tuple[str, float]]:
        """The buckets to write back, after so many of each name were taken."""
        left = []
        for name, control in self._controls.items():
            used = sum(taken.values()) if name == ALL else taken.get(name, 0)
            if used and control.rate is not None:
                left.append((name, control.tokens_at(self._now) - used))
        return left
