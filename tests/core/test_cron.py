"""Times against a walk over the minutes, where clocks are changed; and what is refused when it is defined."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tasklib.core.cron import Timing, cron, every, timing_of
from tasklib.core.errors import InvalidOption

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
ALL_ZONES = "TASKLIB_ALL_ZONES" in os.environ
"""Every change of every zone, for `make model`: one of those that clocks show alike. Otherwise one of each kind."""

AT = {
    "30 2 * * *": lambda at: (at.hour, at.minute) == (2, 30),
    "0 * * * *": lambda at: at.minute == 0,
    "*/20 0-3 * * *": lambda at: at.hour <= 3 and at.minute % 20 == 0,
    "10 */2 * * *": lambda at: at.hour % 2 == 0 and at.minute == 10,
    "*/7 * * * *": lambda at: at.minute % 7 == 0,
    "15 0 L * *": lambda at: (at.hour, at.minute) == (0, 15) and (at + timedelta(days=1)).day == 1,
}


def local(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def changes(zone: ZoneInfo) -> Iterator[datetime]:
    """Every minute at which the zone's clocks are changed from 2020 to 2030."""
    at, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
    while at < end:
        later = at + 24 * HOUR
        if at.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            low, high = at, later
            while high - low > MINUTE:
                middle = low + (high - low) // 2 // MINUTE * MINUTE
                same = middle.astimezone(zone).utcoffset() == at.astimezone(zone).utcoffset()
                low, high = (middle, high) if same else (low, middle)
            yield high
        at = later


def kinds_of_changes() -> list[tuple[str, datetime]]:
    found: dict[object, tuple[str, datetime]] = {}
    names = (
        sorted(available_timezones())
        if ALL_ZONES
        else [
            *(
                "Europe/Berlin",
                "Europe/London",
                "America/New_York",
                "America/Havana",
                "America/Santiago",
                "America/Asuncion",
            ),
            *("Africa/Casablanca", "Africa/Cairo", "Asia/Beirut", "Asia/Tehran", "Asia/Gaza", "Australia/Lord_Howe"),
            *("Pacific/Auckland", "Pacific/Chatham", "America/St_Johns", "Antarctica/Troll", "Antarctica/Casey"),
            *("America/Nuuk", "Asia/Amman", "Europe/Dublin", "Pacific/Norfolk", "Africa/Juba", "America/Sao_Paulo"),
        ]
    )
    for name in names:
        zone = ZoneInfo(name)
        for at in changes(zone):
            before, after = local(at - MINUTE, zone), local(at, zone)
            kind = (before, after) if ALL_ZONES else (before.time(), after.time())
            found.setdefault(kind, (name, at))
    return list(found.values())


def walked(
    fits: Callable[[datetime], bool], zone: ZoneInfo, minutes: list[datetime], *, elapsed: bool
) -> list[datetime]:
    """The times by looking at every minute. By elapsed time: each that fits what the clock shows. Otherwise: when the
    clock first shows what fits, or when it first shows something later."""
    shown = [local(at, zone) for at in minutes]
    if elapsed:
        return [at for at, face in zip(minutes, shown, strict=True) if fits(face)]
    found, highest = [], shown[0] - MINUTE
    for at, face in zip(minutes, shown, strict=True):
        passed = highest + MINUTE
        while passed <= face:
            if fits(passed):
                found.append(at)
            passed += MINUTE
        highest = max(highest, face)
    return sorted(set(found))


@pytest.mark.timeout(0 if ALL_ZONES else 120)  # two minutes for every zone, where nothing else runs
def test_times_where_clocks_are_changed_are_those_of_a_walk_over_the_minutes():
    looked_at = kinds_of_changes()
    assert len(looked_at) > 15
    for name, change in looked_at:
        zone, start = ZoneInfo(name), change - 24 * HOUR
        minutes = [start + number * MINUTE for number in range(45 * 60)]
        for expression, fits in AT.items():
            elapsed = expression.split()[1].startswith("*")
            expected = walked(fits, zone, minutes, elapsed=elapsed)
            timing, found, at = cron(expression, timezone=name), [], minutes[0] - MINUTE
            while (at := timing.next(at)) <= minutes[-1]:
                found.append(at)
            assert found == expected, f"{expression} in {name} around {change}"
            # From anywhere, not only from one of its own times: what is next does not depend on where one begins.
            for begin in minutes[:: 60 * 6 + 1]:
                begin += timedelta(seconds=17.5)
                place = bisect_right(expected, begin)
                if place < len(expected):
                    assert timing.next(begin) == expected[place], f"{expression} in {name} after {begin}"


def times(timing: Timing, start: str, number: int, zone: str = "UTC") -> list[str]:
    at, found = datetime.fromisoformat(start), []
    for _ in range(number):
        at = timing.next(at)
        found.append(f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M%z}")
    return found


def test_the_times_that_people_ask_about():
    berlin = "Europe/Berlin"
    night = cron("30 2 * * *", timezone=berlin)
    assert times(night, "2026-03-28T12:00Z", 2, berlin) == ["2026-03-29 03:00+0200", "2026-03-30 02:30+0200"]
    assert times(night, "2026-10-24T12:00Z", 2, berlin) == ["2026-10-25 02:30+0200", "2026-10-26 02:30+0100"]
    hourly = cron("@hourly", timezone=berlin)
    assert times(hourly, "2026-10-24T23:00Z", 3, berlin) == [
        "2026-10-25 02:00+0200",
        "2026-10-25 02:00+0100",
        "2026-10-25 03:00+0100",
    ]
    assert times(cron("0 0 29 2 *"), "2025-01-01T00:00Z", 2) == ["2028-02-29 00:00+0000", "2032-02-29 00:00+0000"]
    assert times(cron("0 0 L * *"), "2027-02-01T00:00Z", 2) == ["2027-02-28 00:00+0000", "2027-03-31 00:00+0000"]
    assert times(cron("0 9 * JAN-MAR mon,wed"), "2026-03-30T10:00Z", 2) == [
        "2027-01-04 09:00+0000",
        "2027-01-06 09:00+0000",
    ]
    assert times(every(minutes=15), "2026-01-01T00:07Z", 2) == ["2026-01-01 00:15+0000", "2026-01-01 00:30+0000"]
    words = [cron("30 3 * * 1-5", timezone=berlin), every(hours=1), every(seconds=90), every(timedelta(days=2))]
    assert [timing.words for timing in words] == [
        "at 03:30 on weekdays, Europe/Berlin",
        "every hour",
        "every 90 seconds",
        "every 2 days",
    ]


@pytest.mark.parametrize("timing", [cron("*/5 * * * *", timezone="Asia/Tokyo"), every(seconds=300), cron("0 4 1 * *")])
def test_the_latest_of_many_times_are_found_without_a_look_at_all(timing: Timing):
    first = timing.next(datetime(2020, 1, 1, tzinfo=UTC))
    last = first
    for _ in range(49):
        last = timing.next(last)
    assert timing.count(first, last, 1000) == 50
    assert timing.count(first, last, 20) == 20
    assert timing.latest(first, last, 1) == [last]
    found = timing.latest(first, last + timedelta(seconds=1), 1000)
    assert (len(found), found[0], found[-1]) == (50, first, last)
    assert timing.latest(first, last, 3) == found[-3:]
    assert timing.latest(first, first + timedelta(days=3650), 1)[0] > first


def test_plain_values_give_the_same_timing_back():
    for timing in (
        cron("@weekly", timezone="Asia/Tokyo", missed="all", late=60, overlap="skip", jitter=timedelta(minutes=1)),
        every(seconds=90, missed="none"),
        cron("5 4 * * *"),
    ):
        assert timing_of(timing.as_json()) == timing


@pytest.mark.parametrize(
    ("field", "words", "make"),
    [
        ("cron", "'61' is not a minute", lambda: cron("61 * * * *")),
        ("cron", "'25' is not an hour", lambda: cron("0 25 * * *")),
        ("cron", "has 6 fields, not five", lambda: cron("0 0 3 * * 1")),
        ("cron", "never fires", lambda: cron("0 0 30 2 *")),
        ("cron", "never fires", lambda: cron("0 0 31 APR,JUN *")),
        ("cron", "'*/0' is not a minute", lambda: cron("*/0 * * * *")),
        ("cron", "'@reboot' is not one of", lambda: cron("@reboot")),
        ("cron", "must be text", lambda: cron(None)),  # type: ignore[arg-type]
        ("cron", "must be text of 1 to 255", lambda: cron("0 " * 200)),
        ("timezone", "'Mars/Base' is not a time zone", lambda: cron("0 0 * * *", timezone="Mars/Base")),
        ("timezone", "is not a time zone", lambda: cron("0 0 * * *", timezone="../../etc/passwd")),
        ("timezone", "is not a time zone", lambda: cron("0 0 * * *", timezone="Europe")),
        ("timezone", "an interval has none", lambda: timing_of({"every": 60, "timezone": "UTC"})),
        ("every", "1 to 31622400 seconds, got 0", lambda: every()),
        ("every", "1 to 31622400 seconds, got 0", lambda: every(0)),
        ("seconds", "got -1", lambda: every(seconds=-1)),
        ("every", "got nan", lambda: every(float("nan"))),
        ("every", "got '5'", lambda: timing_of({"every": "5"})),
        ("missed", "latest, all, none", lambda: cron("0 0 * * *", missed="some")),  # type: ignore[arg-type]
        ("overlap", "allow, skip, wait, replace", lambda: every(5, overlap="x")),  # type: ignore[arg-type]
        ("late", "got 0", lambda: every(5, late=0)),
        ("jitter", "got -5", lambda: every(5, jitter=-5)),
        ("cron", "give either cron or every", lambda: timing_of({})),
        ("cron", "give either cron or every", lambda: timing_of({"cron": "0 0 * * *", "every": 5})),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_defined(field: str, words: str, make: Callable[[], object]):
    with pytest.raises(InvalidOption) as refused:
        make()
    assert refused.value.field == field
    assert words in str(refused.value)
