"""The server's clock, as well as it can be known here.

Time is counted by this machine's monotonic clock, so that setting the wall clock changes nothing. Every answer that
carries the server's time says between which bounds the truth lies; the clock is moved only as far as they demand. Where
both clocks agree within one round trip it is therefore not moved at all, and all stores of a machine have one time.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_START = time.time() - time.monotonic()


class Clock:
    def __init__(self, offset: float) -> None:
        self.offset = offset
        """Seconds added for tests."""
        self._shift = _START
        """What the monotonic clock is behind the server's by."""

    @property
    def correction(self) -> float:
        """What this machine's wall clock was wrong by, at least."""
        return self._shift - _START

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=time.monotonic() + self._shift + self.offset)

    def micros(self) -> int:
        return int((time.monotonic() + self._shift + self.offset) * 1_000_000)

    def learn(self, server: str, sent: float, received: float) -> None:
        """`server` is the time in an answer to a question sent and answered at these monotonic times."""
        moment = (instant(server) - EPOCH).total_seconds()
        self._shift = min(max(self._shift, moment - received), moment - sent + 0.000_001)


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
