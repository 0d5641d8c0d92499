"""When a failed task runs again, and after which exceptions: one pure policy for all APIs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import ClassVar, TypeAlias

from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import InvalidOption, TaskDefinitionError
from tasklib.core.outcome import Fail, Retry, Snooze, TaskStopped

LONGEST_DELAY = 6 * 3600.0
Exceptions: TypeAlias = type[BaseException] | Iterable[type[BaseException]]
_DECIDED = (Retry, Fail, Snooze, TaskStopped)
"""What they mean is fixed."""


@dataclass(frozen=True, slots=True, init=False)
class RetryPolicy:
    """`base * multiplier ** (retry - 1)` seconds, at most `cap`, spread by `jitter` (0.2 is ±20 %)."""

    base: float
    multiplier: float
    cap: float
    jitter: float

    QUEUE: ClassVar[RetryPolicy]
    AT_ONCE: ClassVar[RetryPolicy]

    def __init__(
        self, base: Seconds = 5.0, multiplier: float = 2.0, cap: Seconds = LONGEST_DELAY, jitter: float = 0.0
    ) -> None:
        for field, value, high in (
            ("base", in_seconds(base), 1e9),
            ("multiplier", multiplier, 1e6),
            ("cap", in_seconds(cap), 1e9),
            ("jitter", jitter, 1),
        ):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not 0 <= value <= high:
                limits = f"a number from 0 to {high:g}"
                raise InvalidOption(f"retry policy: {field} must be {limits}, got {value!r}", field=f"retry.{field}")
            object.__setattr__(self, field, value)

    def delay(self, retry: int, spread: float = 0.0) -> float:
        """Seconds before the given retry (1 is the first). `spread`, from -1 to 1, places it within the jitter."""
        try:
            # As a float: whole numbers would grow to millions of digits before they meet the cap.
            plain = self.base * float(self.multiplier) ** (retry - 1)
        except OverflowError:
            plain = self.cap if self.base else 0.0
        return max(0.0, min(plain, self.cap) * (1.0 + self.jitter * spread))

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> RetryPolicy:
        """The policy kept in a row. Unknown or broken content gives the defaults: the row may be hand-edited."""
        try:
            fields = json.loads(text)
            return cls(**{name: fields[name] for name in ("base", "multiplier", "cap", "jitter") if name in fields})
        except (ValueError, TypeError):
            return cls()


RetryPolicy.QUEUE = RetryPolicy(base=10.0, multiplier=4.0, jitter=0.2)
RetryPolicy.AT_ONCE = RetryPolicy(base=0.0, multiplier=1.0, cap=0.0)


def check_exceptions(given: Exceptions, field: str) -> tuple[type[BaseException], ...]:
    """`retry_for` and `no_retry_for` of a task type: a class, or several."""
    kinds = (given,) if isinstance(given, type) else tuple(given) if isinstance(given, Iterable) else (given,)
    for kind in kinds:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise TaskDefinitionError(f"{field}: takes classes of exceptions, got {kind!r:.60}", field=field)
        if issubclass(kind, _DECIDED):
            reason = f"a handler decides by raising {kind.__name__}, so that it cannot be in a list"
            raise TaskDefinitionError(f"{field}: {reason}", field=field)
    if not kinds:
        raise TaskDefinitionError(f"{field}: names no exception; max_retries=0 is what is never retried", field=field)
    return kinds
