"""When something recurs: cron expressions in a time zone, and plain intervals. Frozen values that tell the next time.

Calendar and syntax are cronsim's, which is given no zone: what a wall clock shows becomes an instant here. An entry
with an hour of its own follows the wall clock: a time that does not exist fires at the end of the gap, one that exists
twice fires the first time. An entry with `*` or `*/n` for the hour goes by elapsed time: each minute of the day that
fits, so that hourly stays hourly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from tasklib.core.checks import shown
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import InvalidOption

Missed: TypeAlias = Literal["latest", "all", "none"]
Overlap: TypeAlias = Literal["allow", "skip", "wait", "replace"]

LONGEST_EXPRESSION = 255
SHORTEST_INTERVAL = 1.0
LONGEST_INTERVAL = 366 * 86400.0
LONGEST_LATE = 100 * 366 * 86400.0
LONGEST_JITTER = 86400.0

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = (
    "a minute (0 to 59)",
    "an hour (0 to 23)",
    "a day of the month (1 to 31, L for the last)",
    "a month (1 to 12, or JAN to DEC)",
    "a day of the week (0 to 7, or SUN to SAT)",
)
_SOME_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 (as clocks on walls show it)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing(ABC):
    """When a schedule fires, and what becomes of times that could not be kept."""

    missed: Missed = "latest"
    late: float | None = None
    """So many seconds after its time a slot is still worth firing. None: always."""
    overlap: Overlap = "allow"
    jitter: float = 0.0
    """Tasks fall due up to so many seconds after their slot, each slot by another time."""

    @abstractmethod
    def next(self, after: datetime) -> datetime:
        """The first time after this instant."""

    @property
    @abstractmethod
    def words(self) -> str:
        """When, for people."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """As `timing_of` takes it."""

    def count(self, first: datetime, last: datetime, most: int) -> int:
        """How many times there are from `first` to `last`, both included; `most` and no more."""
        found = 0
        at = self.next(first - _MICROSECOND)
        while at <= last and found < most:
            found += 1
            at = self.next(at)
        return found

    def latest(self, first: datetime, last: datetime, most: int) -> list[datetime]:
        """The last so many times from `first` to `last`, both included, oldest first. However long that is, no more is
        looked at than needed."""
        window = timedelta(minutes=1)
        while True:
            start = max(first, last - window)
            found: deque[datetime] = deque(maxlen=most)
            at = self.next(start - _MICROSECOND)
            while at <= last:
                found.append(at)
                at = self.next(at)
            if len(found) == most or start == first:
                return list(found)
            window *= 4

    def _common(self) -> dict[str, Any]:
        given = {"missed": self.missed, "late": self.late, "overlap": self.overlap, "jitter": self.jitter}
        return {name: value for name, value in given.items() if value != _DEFAULTS[name]}


_DEFAULTS: dict[str, Any] = {"missed": "latest", "late": None, "overlap": "allow", "jitter": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron(Timing):
    """Times as crontab says them, in a time zone."""

    expression: str
    timezone: str
    _fields: str = field(repr=False, compare=False)
    """As cronsim is given it."""

    def next(self, after: datetime) -> datetime:
        zone = _zone(self.timezone)
        at = after.astimezone(UTC)
        return _next_elapsed(self._fields, zone, at) if self._is_elapsed else _next_on_wall(self._fields, zone, at)

    @property
    def _is_elapsed(self) -> bool:
        return self._fields.split()[1].startswith("*")

    @property
    def words(self) -> str:
        fields = _NICKNAMES.get(self.expression.lower(), self.expression)
        text = CronSim(fields, _SOME_DAY).explain().replace("Monday through Friday", "weekdays")
        return f"{text[0].lower()}{text[1:]}, {self.timezone}"

    def as_json(self) -> dict[str, Any]:
        return {"cron": self.expression, "timezone": self.timezone, **self._common()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Every(Timing):
    """Multiples of the interval since 1970, so that restarts and other processes come to the same times."""

    seconds: float

    def next(self, after: datetime) -> datetime:
        interval = timedelta(seconds=self.seconds)
        return _EPOCH + ((after - _EPOCH) // interval + 1) * interval

    def count(self, first: datetime, last: datetime, most: int) -> int:
        interval = timedelta(seconds=self.seconds)
        number = (last - _EPOCH) // interval - (first - _MICROSECOND - _EPOCH) // interval
        return max(0, min(most, number))

    @property
    def words(self) -> str:
        for name, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
            if self.seconds % size == 0:
                number = int(self.seconds // size)
                return f"every {name}" if number == 1 else f"every {number} {name}s"
        return "every second" if self.seconds == 1 else f"every {self.seconds:g} seconds"

    def as_json(self) -> dict[str, Any]:
        return {"every": self.seconds, **self._common()}


def cron(
    expression: str,
    *,
    timezone: str = "UTC",
    missed: Missed = "latest",
    late: Seconds | None = None,
    overlap: Overlap = "allow",
    jitter: Seconds = 0,
) -> Cron:
    """`cron("30 3 * * 1-5", timezone="Europe/Berlin")`: minute, hour, day of month, month, day of week. Names
    (MON, JAN), ranges, steps, L for the last day of a month, MON#2, and @daily and friends are understood.

    missed: of times at which nobody was up, `"latest"` fires one, `"all"` fires each, `"none"` none.
    late: a time that is longer ago, in seconds, is not fired any more.
    overlap: while an earlier task of the schedule is not over, `"allow"` starts another beside it, `"skip"` leaves this
    time out, `"wait"` keeps one in reserve, `"replace"` the newest in its place.
    jitter: spreads the starts over so many seconds.
    """
    fields = _checked_fields(expression)
    _zone(timezone)
    common = _checked(missed, late, overlap, jitter)
    return Cron(expression=expression.strip(), timezone=timezone, _fields=fields, **common)


def every(
    interval: Seconds | None = None,
    /,
    *,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    missed: Missed = "latest",
    late: Seconds | None = None,
    overlap: Overlap = "allow",
    jitter: Seconds = 0,
) -> Every:
    """`every(minutes=15)`, `every(timedelta(hours=6))`: at multiples of the interval since 1970 in UTC, so every
    quarter of an hour is at :00, :15, :30 and :45. The other arguments are those of `cron`."""
    total = 0.0 if interval is None else _number("every", interval, SHORTEST_INTERVAL, LONGEST_INTERVAL)
    for name, value, size in (
        ("days", days, 86400),
        ("hours", hours, 3600),
        ("minutes", minutes, 60),
        ("seconds", seconds, 1),
    ):
        total += _number(name, value, 0, LONGEST_INTERVAL / size) * size
    length = _number("every", total, SHORTEST_INTERVAL, LONGEST_INTERVAL)
    return Every(seconds=round(length, 3), **_checked(missed, late, overlap, jitter))


def check_timing(timing: object) -> Timing:
    if not isinstance(timing, Timing):
        raise InvalidOption(f"schedule must be cron(...) or every(...), got {timing!r:.60}", field="schedule")
    return timing


def timing_of(given: Mapping[str, Any]) -> Timing:
    """From plain values, as files, requests and command lines have them: `cron` or `every`, and what both take."""
    common = {name: given[name] for name in _DEFAULTS if given.get(name) is not None}
    expression, interval = given.get("cron"), given.get("every")
    if (expression is None) is (interval is None):
        raise InvalidOption("cron: give either cron or every", field="cron")
    if expression is not None:
        timezone = given.get("timezone")
        return cron(expression, timezone="UTC" if timezone is None else timezone, **common)
    if given.get("timezone") is not None:
        raise InvalidOption("timezone: an interval has none; it is for cron", field="timezone")
    return every(_number("every", interval, SHORTEST_INTERVAL, LONGEST_INTERVAL), **common)


# -- checks -----------------------------------------------------------------------------------------------------------


def _checked_fields(expression: object) -> str:
    if not isinstance(expression, str) or not 1 <= len(expression) <= LONGEST_EXPRESSION:
        raise _refused(f"must be text of 1 to {LONGEST_EXPRESSION} characters, got {shown(expression)}")
    return _read_fields(expression)


@lru_cache(maxsize=4096)
def _read_fields(expression: str) -> str:
    """Remembered: a schedule is read again each time it is due."""
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() not in _NICKNAMES:
            raise _refused(f"{shown(text)} is not one of {', '.join(sorted(_NICKNAMES))}")
        text = _NICKNAMES[text.lower()]
    parts = text.upper().split()
    if len(parts) != 5:
        fields = "minute, hour, day of month, month, day of week"
        raise _refused(f"{shown(expression)} has {len(parts)} fields, not five: {fields} (for seconds use every)")
    for place, meaning in enumerate(_FIELDS):
        alone = ["*"] * 5
        alone[place] = parts[place]
        try:
            CronSim(" ".join(alone), _SOME_DAY)
        except (CronSimError, AssertionError, ValueError):
            raise _refused(f"{shown(parts[place])} is not {meaning}, in {shown(expression)}") from None
    try:
        next(CronSim(" ".join(parts), _SOME_DAY))
    except (CronSimError, StopIteration):
        raise _refused(f"{shown(expression)} never fires: there is no such day") from None
    if not parts[1].startswith("*") and parts[0].startswith("*"):
        # The hour decides how the clock is followed. To cronsim a star among the minutes would, too.
        parts[0] = f"0-59{parts[0][1:]}"
    return " ".join(parts)


def _refused(reason: str) -> InvalidOption:
    return InvalidOption(f"cron: {reason}", field="cron")


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    try:
        if isinstance(name, str) and name not in ("localtime", "posixrules"):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise InvalidOption(
        f"timezone: {shown(name)} is not a time zone; they are named as Europe/Berlin or UTC "
        "(where a system has none, install the package tzdata)",
        field="timezone",
    )


def _checked(missed: object, late: object, overlap: object, jitter: object) -> dict[str, Any]:
    for name, value, known in (("missed", missed, get_args(Missed)), ("overlap", overlap, get_args(Overlap))):
        if value not in known:
            raise InvalidOption(f"{name} must be one of {', '.join(known)}, got {shown(value)}", field=name)
    return {
        "missed": missed,
        "late": None if late is None else _number("late", late, 1, LONGEST_LATE),
        "overlap": overlap,
        "jitter": _number("jitter", jitter, 0, LONGEST_JITTER),
    }


def _number(name: str, value: Any, low: float, high: float) -> float:
    value = in_seconds(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        unit = name if name in ("days", "hours", "minutes") else "seconds"
        raise InvalidOption(f"{name} must be {low:g} to {high:.0f} {unit}, got {shown(value)}", field=name)
    return float(value)


# -- wall clocks ------------------------------------------------------------------------------------------------------


def _next_on_wall(fields: str, zone: ZoneInfo, after: datetime) -> datetime:
    for shown_time in CronSim(fields, _on_wall(after, zone)):
        at = _first_instant(shown_time, zone)
        if at > after:  # not so while the clock shows an hour for the second time
            return at
    raise _refused(f"{fields} never fires again after {after}")


def _next_elapsed(fields: str, zone: ZoneInfo, after: datetime) -> datetime:
    """Where clocks are changed nearby, what they show does not only go forward: all that may be next is looked at."""
    begin = _on_wall(after, zone)
    offsets = [(after + days).astimezone(zone).utcoffset() or timedelta() for days in (-_DAY, timedelta(), 2 * _DAY)]
    change = max(offsets) - min(offsets)
    first: datetime | None = None
    for shown_time in CronSim(fields, begin - change):
        if not change and shown_time - begin < _DAY:
            return after + (shown_time - begin)
        if first is not None and shown_time > _on_wall(first, zone) + (change or _DAY / 8):
            return first
        for at in _instants(shown_time, zone):
            if at > after and (first is None or at < first):
                first = at
    if first is None:
        raise _refused(f"{fields} never fires again after {after}")
    return first


def _on_wall(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def _first_instant(shown_time: datetime, zone: ZoneInfo) -> datetime:
    """When clocks show this for the first time; if they never do, when they jump past it."""
    found = _instants(shown_time, zone)
    if found:
        return found[0]
    # Before the gap its offset is that of fold 0, after it that of fold 1: the instants enclose the jump.
    early, late = sorted(shown_time.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    while late - early > timedelta(seconds=1):
        middle = early + (late - early) // 2
        if _on_wall(middle, zone) < shown_time:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=0)


def _instants(shown_time: datetime, zone: ZoneInfo) -> list[datetime]:
    """When clocks show this: once, twice, or never."""
    found = {shown_time.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(at for at in found if _on_wall(at, zone) == shown_time)
