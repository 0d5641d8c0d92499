"""Alert rules: what they find, and that they fire once and are over once, however the queue flaps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasklib.core.alerts import (
    LONGEST_TRY_SECONDS,
    Alert,
    AlertRule,
    AlertState,
    Attempts,
    Reading,
    Seen,
    advance,
    arrived,
    look,
    trying,
)
from tests.secrets import SECRET_TEXTS, SECRET_URLS

START = datetime(2030, 1, 1, tzinfo=UTC)
SEEN = Seen(
    oldest_due={"mail": 400.0, "report": 30.0},
    attempts={300.0: {"mail": Attempts(90, 2), "report": Attempts(10, 8)}, 60.0: {"mail": Attempts(3, 3)}},
    live=[("mail", "image"), ("mail",)],
    lost=[10.0, 299.0, 4000.0],
    failing=["nightly", "weekly"],
)


def rule(**fields: object) -> AlertRule:
    return AlertRule.model_validate({"name": "r", **fields})


@pytest.mark.parametrize(
    ("fields", "holds", "text"),
    [
        ({"when": "backlog_age", "above": "5m"}, True, "the oldest due task of mail has waited for 7 min"),
        ({"when": "backlog_age", "above": 10}, True, "7 min, and 1 more types wait longer than 10 s"),
        ({"when": "backlog_age", "above": 400}, False, "mail"),
        ({"when": "backlog_age", "above": 20, "type": "report"}, True, "of report has waited for 30 s"),
        ({"when": "backlog_age", "above": 0, "type": "image"}, False, "nothing is due"),
        (
            {"when": "failure_rate", "above": 0.05},
            True,
            "10 of 100 attempts within 5 min failed (10.0%), 8 of them of report",
        ),
        ({"when": "failure_rate", "above": 0.1}, False, "10 of 100"),
        ({"when": "failure_rate", "above": 0.05, "type": "mail"}, False, "2 of 90"),
        ({"when": "failure_rate", "above": 0.05, "type": "image"}, False, "0 of 0"),
        ({"when": "failure_rate", "above": 0.5, "within": "1m"}, False, "3 of 3"),
        ({"when": "failure_rate", "above": 0.5, "within": "1m", "at_least": 3}, True, "3 of 3"),
        ({"when": "no_worker"}, True, "no live worker serves report"),
        ({"when": "no_worker", "type": "image"}, False, "2 workers are live"),
        ({"when": "no_worker", "type": "video"}, True, "no live worker serves video"),
        ({"when": "lost_workers"}, True, "2 workers are lost within 5 min"),
        ({"when": "failed_schedule"}, True, "the last run of the schedule nightly failed, and that of 1 more"),
        ({"when": "failed_schedule", "schedule": "weekly"}, True, "the last run of the schedule weekly failed"),
        ({"when": "failed_schedule", "schedule": "hourly"}, False, "did not fail"),
        ({"when": "lost_workers", "above": 2}, False, "2 workers"),
        ({"when": "lost_workers", "above": 2, "within": "2h"}, True, "3 workers are lost within 2.0 h"),
    ],
)
def test_what_a_rule_finds(fields: dict[str, object], holds: bool, text: str):
    reading = look(rule(**fields), SEEN)
    assert (reading.breached, text in reading.text) == (holds, True), reading


@pytest.mark.parametrize("name", [text for text in (*SECRET_URLS, *SECRET_TEXTS) if len(text) <= 255])
def test_nothing_of_the_corpus_is_told(name: str):
    """Names of types and of schedules are anybody's words."""
    seen = Seen(oldest_due={name: 400.0}, attempts={300.0: {name: Attempts(10, 8)}}, live=[()], failing=[name])
    for fields in ({"when": "backlog_age", "above": 10}, {"when": "failure_rate", "above": 0.1}):
        assert "geheim" not in look(rule(**fields), seen).text
    for condition in ("no_worker", "failed_schedule"):
        reading = look(rule(when=condition), seen)
        assert (reading.breached, "geheim" in reading.text) == (True, False)


def test_what_a_name_hides_is_masked():
    seen = Seen(oldest_due={"sync postgresql://ada:geheim@h/db": 90.0})
    assert "ada:***@h" in look(rule(when="backlog_age", above=0), seen).text


def test_no_worker_at_all_and_none_that_is_wanted():
    assert look(rule(when="no_worker"), Seen()).breached
    assert not look(rule(when="no_worker"), Seen(live=[("mail",)])).breached, "nothing is due that it does not serve"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"when": "backlog"}, "when"),
        ({"when": "backlog_age"}, "above: a rule for backlog_age needs it"),
        ({"when": "backlog_age", "above": "soon"}, "not a duration"),
        ({"when": "backlog_age", "above": 1, "within": "5m"}, "within: a rule for backlog_age does not take it"),
        ({"when": "failure_rate", "above": 5}, "less than 1"),
        ({"when": "no_worker", "above": 1}, "above: a rule for no_worker does not take it"),
        ({"when": "lost_workers", "type": "mail"}, "type: a rule for lost_workers"),
        ({"when": "no_worker", "for": -1}, "for"),
        ({"when": "no_worker", "name": ""}, "name"),
        ({"when": "no_worker", "fro": 1}, "fro"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(fields: dict[str, object], named: str):
    with pytest.raises(ValidationError, match=named):
        rule(**fields)


@given(
    st.lists(st.tuples(st.booleans(), st.floats(1, 200)), max_size=60),
    st.sampled_from([0.0, 60.0, 300.0]),
)
def test_it_fires_once_and_is_over_once_and_never_flaps_faster_than_for(
    checks: list[tuple[bool, float]], lasting: float
):
    """Whatever is found, and however far apart the checks are."""
    watched = rule(**{"when": "no_worker", "for": lasting})
    alert, now = Alert(name="r", state=AlertState.OK, since=START), START
    told: list[tuple[str, datetime]] = []
    held_since: datetime | None = None
    clear_since: datetime | None = START
    for holds, seconds in checks:
        now += timedelta(seconds=seconds)
        held_since = (held_since or now) if holds else None
        clear_since = None if holds else (clear_since or now)
        before = alert
        alert = advance(watched, alert, Reading(holds, "what was found"), now)
        if alert.told:
            continue
        assert alert.is_due(now)
        told.append(("resolved" if alert.over_at else "firing", now))
        steady = held_since if told[-1][0] == "firing" else clear_since
        assert steady is not None
        assert now - steady >= timedelta(seconds=lasting), "it held all the while"
        assert alert != before
        alert = arrived(alert)
    assert [status for status, _ in told] == ["firing", "resolved"] * (len(told) // 2) + ["firing"] * (len(told) % 2)
    times = [moment for _, moment in told]
    assert all(later - first >= timedelta(seconds=lasting) for first, later in pairwise(times))


def test_a_message_is_tried_again_less_and_less_often_and_the_latest_news_win():
    watched = rule(**{"when": "no_worker", "for": 0})
    alert = advance(watched, Alert(name="r", state="ok", since=START), Reading(True, "none"), START)
    now, pauses = START, []
    for _ in range(9):
        assert alert.is_due(now)
        alert = trying(alert, now, seconds=20)
        assert not alert.is_due(now + timedelta(seconds=19)), "it may still be on its way"
        assert alert.try_at is not None
        pauses.append((alert.try_at - now).total_seconds())
        now = alert.try_at
    assert pauses == [20, 30, 60, 120, 240, 480, *[LONGEST_TRY_SECONDS] * 3]
    over = advance(watched, alert, Reading(False, "one is live"), now)
    assert (over.is_due(now), over.tries, over.over_at, over.fired_at) == (True, 0, now, START)
    again = advance(watched, over, Reading(True, "none"), now + timedelta(seconds=1))
    assert (again.over_at, again.fired_at, again.told) == (None, now + timedelta(seconds=1), False)
    assert replace(arrived(again), told=False) == replace(again, tries=0, try_at=None)
