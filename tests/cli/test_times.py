"""Durations as people write them, instants as people read them."""

from datetime import UTC, datetime, timedelta

import pytest
import typer

from tasklib.cli.times import absolute, duration, relative, span

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5m", 90),
        ("2h", 7200),
        ("30d", 2_592_000),
        ("1w", 604_800),
        ("250ms", 0.25),
        ("0", 0),
    ],
)
def test_durations(text: str, seconds: float):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "1y", "1e3", "inf", "nan", "1 2", "5m!", "٣s"])
def test_no_durations(text: str):
    with pytest.raises(typer.BadParameter):
        duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.25, "0.2 s"), (4.5, "4.5 s"), (59, "59 s"), (90, "2 min"), (5400, "1.5 h"), (90_000, "1.0 d")],
)
def test_spans(seconds: float, text: str):
    assert span(seconds) == text


def test_relative_and_absolute():
    assert relative(NOW - timedelta(minutes=5), NOW) == "5 min ago"
    assert relative(NOW + timedelta(seconds=30), NOW) == "in 30 s"
    assert absolute(NOW) == "2030-01-02 03:04:05Z"
