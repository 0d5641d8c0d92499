"""Alerts: what a rule asks of the queue, and when it fires and is over. Pure; `engine/alerts.py` looks and tells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tasklib.core.alert_state import Alert as Alert
from tasklib.core.alert_state import AlertState as AlertState
from tasklib.core.durations import read_duration, span
from tasklib.core.redact import mask_text

LONGEST_TRY_SECONDS = 900.0
FIRST_TRY_SECONDS = 15.0


def _duration(value: Any) -> Any:
    return read_duration(value) if isinstance(value, str) else value


Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0, le=7 * 86400, allow_inf_nan=False)]


class Condition(StrEnum):
    """What a rule can be about. A further one is a name here, a row in `_LOOKS`, and what it takes in `_TAKES`."""

    BACKLOG_AGE = "backlog_age"
    FAILURE_RATE = "failure_rate"
    NO_WORKER = "no_worker"
    LOST_WORKERS = "lost_workers"
    FAILED_SCHEDULE = "failed_schedule"


_TAKES: Mapping[Condition, Collection[str]] = {
    Condition.BACKLOG_AGE: ("type", "above"),
    Condition.FAILURE_RATE: ("type", "above", "within", "at_least"),
    Condition.NO_WORKER: ("type",),
    Condition.LOST_WORKERS: ("above", "within"),
    Condition.FAILED_SCHEDULE: ("schedule",),
}


class AlertRule(BaseModel):
    """One rule, as the operator writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str = Field(min_length=1, max_length=100)
    when: Condition
    type: str | None = Field(default=None, min_length=1, max_length=255)
    """Of this task type; None: of any."""
    schedule: str | None = Field(default=None, min_length=1, max_length=255)
    """This one; None: any."""
    above: Annotated[float, BeforeValidator(_duration), Field(ge=0, allow_inf_nan=False)] = 0.0
    """Seconds, a share of attempts, or a number of workers."""
    within: Duration = Field(default=300.0, ge=60)
    """How far back it looks."""
    at_least: int = Field(default=20, ge=1)
    """With fewer attempts than this a share says nothing."""
    lasting: Duration = Field(default=60.0, alias="for")
    """How long it must hold before it fires, and must not hold before it is over: so it cannot flap faster."""

    @model_validator(mode="after")
    def _check(self) -> AlertRule:
        taken = _TAKES[self.when]
        for name in ("type", "schedule", "above", "within", "at_least"):
            if name in self.model_fields_set and name not in taken:
                raise ValueError(f"{name}: a rule for {self.when} does not take it; it takes {', '.join(taken)}, for")
        if "above" not in self.model_fields_set and self.when in (Condition.BACKLOG_AGE, Condition.FAILURE_RATE):
            raise ValueError(f"above: a rule for {self.when} needs it")
        if self.when is Condition.FAILURE_RATE and self.above >= 1:
            raise ValueError("above: a failure rate is a share of all attempts, less than 1: 0.05 for one in twenty")
        return self


class Attempts(NamedTuple):
    ended: int
    failed: int
    """Of these, those that failed, whether another follows or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What rules look at, all of one moment."""

    oldest_due: Mapping[str, float] = field(default_factory=dict)
    """By type that has something due: for how many seconds."""
    attempts: Mapping[float, Mapping[str, Attempts]] = field(default_factory=dict)
    """By how far back was looked, and by type."""
    live: Sequence[Collection[str]] = ()
    """The types of each live worker."""
    lost: Sequence[float] = ()
    """For how many seconds each lost worker has been taken for dead."""
    failing: Collection[str] = ()
    """Schedules whose latest run that ended has failed."""


class Reading(NamedTuple):
    """What a rule found."""

    breached: bool
    text: str


def look(rule: AlertRule, seen: Seen) -> Reading:
    found = _LOOKS[rule.when](rule, seen)
    return found._replace(text=mask_text(found.text))  # names of types are anybody's words


def _backlog_age(rule: AlertRule, seen: Seen) -> Reading:
    ages = {name: age for name, age in seen.oldest_due.items() if rule.type in (None, name)}
    if not ages:
        return Reading(False, "nothing is due")
    name, age = max(ages.items(), key=lambda item: item[1])
    late = sum(age > rule.above for age in ages.values())
    more = f", and {late - 1} more types wait longer than {span(rule.above)}" if late > 1 else ""
    return Reading(age > rule.above, f"the oldest due task of {name} has waited for {span(age)}{more}")


def _failure_rate(rule: AlertRule, seen: Seen) -> Reading:
    counts = {name: each for name, each in seen.attempts[rule.within].items() if rule.type in (None, name)}
    ended = sum(each.ended for each in counts.values())
    failed = sum(each.failed for each in counts.values())
    text = f"{failed} of {ended} attempts within {span(rule.within)} failed"
    if not failed:
        return Reading(False, text)
    worst = max(counts, key=lambda name: counts[name].failed)
    text += f" ({failed / ended:.1%}), {counts[worst].failed} of them of {worst}"
    return Reading(ended >= rule.at_least and failed / ended > rule.above, text)


def _no_worker(rule: AlertRule, seen: Seen) -> Reading:
    """Without a type: there is none at all, or something is due that none of them serves."""
    if rule.type is None and not seen.live:
        return Reading(True, "no worker is live")
    served = {name for names in seen.live for name in names}
    wanted = sorted(seen.oldest_due) if rule.type is None else [rule.type]
    unserved = [name for name in wanted if name not in served]
    if not unserved:
        return Reading(False, f"{_number(len(seen.live), 'worker')} live")
    more = f" and {len(unserved) - 1} more types that have tasks due" if len(unserved) > 1 else ""
    return Reading(True, f"no live worker serves {unserved[0]}{more}")


def _lost_workers(rule: AlertRule, seen: Seen) -> Reading:
    lost = sum(age <= rule.within for age in seen.lost)
    return Reading(lost > rule.above, f"{_number(lost, 'worker')} lost within {span(rule.within)}")


def _failed_schedule(rule: AlertRule, seen: Seen) -> Reading:
    failing = sorted(name for name in seen.failing if rule.schedule in (None, name))
    if not failing:
        return Reading(False, "no schedule's last run failed" if rule.schedule is None else "its last run did not fail")
    more = f", and that of {len(failing) - 1} more" if len(failing) > 1 else ""
    return Reading(True, f"the last run of the schedule {failing[0]} failed{more}")


_LOOKS: Mapping[Condition, Callable[[AlertRule, Seen], Reading]] = {
    Condition.BACKLOG_AGE: _backlog_age,
    Condition.FAILURE_RATE: _failure_rate,
    Condition.NO_WORKER: _no_worker,
    Condition.LOST_WORKERS: _lost_workers,
    Condition.FAILED_SCHEDULE: _failed_schedule,
}


def _number(count: int, noun: str) -> str:
    return f"1 {noun} is" if count == 1 else f"{count} {noun}s are"


# -- from one check to the next ---------------------------------------------------------------------------------------


def advance(rule: AlertRule, alert: Alert, reading: Reading, now: datetime) -> Alert:
    """The state after a check; the same if nothing has changed."""
    fired = alert.state in (AlertState.FIRING, AlertState.CLEARING)
    between = AlertState.CLEARING if fired else AlertState.PENDING
    if reading.breached == fired:
        if alert.state != between:
            return alert
        return replace(alert, state=AlertState.FIRING if fired else AlertState.OK, since=alert.fired_at or now)
    if rule.lasting and alert.state != between:
        return replace(alert, state=between, since=now)
    if now - alert.since < timedelta(seconds=rule.lasting):
        return alert
    news = replace(alert, since=now, text=reading.text, told=False, tries=0, try_at=None)
    return (
        replace(news, state=AlertState.OK, over_at=now)
        if fired
        else replace(news, state=AlertState.FIRING, fired_at=now, over_at=None)
    )


def trying(alert: Alert, now: datetime, seconds: float) -> Alert:
    """While its message is being sent, which takes `seconds` at most, and where that fails until the next try."""
    pause = max(seconds, min(FIRST_TRY_SECONDS * 2**alert.tries, LONGEST_TRY_SECONDS))
    return replace(alert, tries=alert.tries + 1, try_at=now + timedelta(seconds=pause))


def arrived(alert: Alert) -> Alert:
    return replace(alert, told=True, tries=0, try_at=None)
