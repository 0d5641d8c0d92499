"""Pause, rates and concurrency, as the controls have them: how many of each name a claim may take now."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from tasklib.stores.base import Controls

ALL = ""
"""The name under which the controls for all types are kept."""


@dataclass(frozen=True, slots=True)
class Control:
    """One control entry. Its revision guards every claim under a limit, so limits are exact for the whole fleet."""

    name: str
    paused: bool = False
    operator_rate: float | None = None
    default_rate: float | None = None
    concurrency: int | None = None
    tokens: float | None = None
    refilled: int | None = None
    """When `tokens` were in the bucket: microseconds since 1970."""

    @classmethod
    def decode(cls, name: str, text: str | bytes) -> Control:
        fields = json.loads(text)
        fields.pop("name", None)
        return cls(name, **fields)

    def encode(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def rate(self) -> float | None:
        """The operator's value if set, else the code's; zero means: no limit."""
        chosen = self.default_rate if self.operator_rate is None else self.operator_rate
        return chosen or None

    @property
    def limited(self) -> bool:
        return self.rate is not None or self.concurrency is not None

    def tokens_at(self, now: int) -> float:
        """What is in the bucket. It holds at most one second's worth, and a new or changed rate starts with it full."""
        rate = self.rate or 0.0
        most = max(1.0, rate)
        if self.tokens is None or self.refilled is None:
            return most
        elapsed = max(0, now - self.refilled) / 1_000_000
        return min(most, self.tokens + elapsed * rate)

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

    def __init__(self, controls: Mapping[str, Control], now: int, running: Mapping[str, int]) -> None:
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
            # A hair below one is one: sums of a tenth never quite reach it.
            caps.append(math.floor(control.tokens_at(self._now) + 1e-6))
        if control.concurrency is not None:
            running = sum(self._running.values()) if name == ALL else self._running.get(name, 0)
            caps.append(max(0, control.concurrency - running))
        return min(caps) if caps else None

    def next_token_in(self, names: Iterable[str]) -> float | None:
        """Seconds until a bucket that is empty now has a token again."""
        waits = []
        for name in (ALL, *names):
            control = self._controls.get(name)
            if control is None or control.paused or control.rate is None:
                continue
            missing = 1.0 - control.tokens_at(self._now)
            if missing > 1e-6:
                waits.append(missing / control.rate)
        return min(waits, default=None)

    def used(self, taken: Mapping[str, int]) -> list[tuple[str, float | None]]:
        """The limits that so many claims of each name were made under, and what is left in their buckets."""
        used = []
        for name, control in self._controls.items():
            number = sum(taken.values()) if name == ALL else taken.get(name, 0)
            if number and control.limited:
                left = None if control.rate is None else control.tokens_at(self._now) - number
                used.append((name, left))
        return used
