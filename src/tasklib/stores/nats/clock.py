"""The server's clock, as well as it can be known here.

Time is counted by this machine's monotonic clock, so that setting the wall clock changes nothing. Every answer that
carries the server's time says between which bounds the truth lies, and the quickest says it best: bounds are kept, and
only widen as clocks drift apart. The clock is moved only as far as they demand. Where both clocks agree within one
round trip it is therefore not moved at all, and all stores of a machine have one time. What must not happen too early,
the start of a task that was put off and the end of somebody's lease, goes by the earliest time that the bounds allow.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DRIFT = 0.0005
"""As far apart as two clocks get in a second while they are kept right, at most."""


def wall_shift(tries: int = 20) -> float:
    """What the monotonic clock is behind the wall clock by. The quickest of several looks counts: a process that loses
    its turn between the two is off by as long as that took."""
    looks = []
    for _ in range(tries):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        looks.append((after - before, wall - (before + after) / 2))
    return min(looks)[1]


_START = wall_shift()


class Clock:
    def __init__(self, offset: float) -> None:
        self.offset = offset
        """Seconds added for tests."""
        self._shift = _START
        """What the monotonic clock is behind the server's by."""
        self._bounds = (-math.inf, math.inf)
        """Of what it really is behind by, as it was known then."""
        self._learned = time.monotonic()

    @property
    def correction(self) -> float:
        """What this machine's wall clock is wrong by, at least."""
        return self._shift - wall_shift()

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=time.monotonic() + self._shift + self.offset)

    def micros(self) -> int:
        return int((time.monotonic() + self._shift + self.offset) * 1_000_000)

    def earliest(self) -> datetime:
        """No later than the server's time now."""
        now = time.monotonic()
        low = self._widened(now)[0]
        return EPOCH + timedelta(seconds=now + (self._shift if low == -math.inf else low) + self.offset)

    def earliest_micros(self) -> int:
        return micros(self.earliest())

    def learn(self, server: str, sent: float, received: float) -> None:
        """`server` is the time in an answer to a question sent and answered at these monotonic times."""
        moment = (instant(server) - EPOCH).total_seconds()
        low, high = moment - received, moment - sent + 0.000_001
        known_low, known_high = self._widened(received)
        if low <= known_high and known_low <= high:  # else the server's clock was set, or it is another server's
            low, high = max(low, known_low), min(high, known_high)
        self._bounds, self._learned = (low, high), received
        self._shift = min(max(self._shift, low), high)

    def _widened(self, now: float) -> tuple[float, float]:
        drift = _DRIFT * max(0.0, now - self._learned)
        return self._bounds[0] - drift, self._bounds[1] + drift


def instant(text: str) -> datetime:
    """A time as records and servers have it; the latter count nanoseconds."""
    if len(text) > 27 and text.endswith("Z"):
        text = text[:26] + "Z"
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return EPOCH


def written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def later(start: datetime, seconds: float) -> datetime:
    """The end of the calendar for what would be beyond it."""
    try:
        return start + timedelta(seconds=seconds)
    except OverflowError:
        return LAST if seconds > 0 else EPOCH
