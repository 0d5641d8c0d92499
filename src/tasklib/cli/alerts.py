"""The command `alerts`."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from tasklib.cli.command import command
from tasklib.cli.exits import Exit
from tasklib.cli.output import Column, styled
from tasklib.cli.session import Session
from tasklib.cli.times import relative
from tasklib.core.alerts import Alert, AlertRule, AlertState, Reading, look
from tasklib.core.durations import span
from tasklib.core.errors import InvalidConfig
from tasklib.engine.alert_file import AlertFile, read_alert_file
from tasklib.engine.alert_sending import send
from tasklib.engine.alerts import sample_message, see
from tasklib.engine.engine import Engine

PROMETHEUS_RULES = Path(__file__).parents[1] / "server" / "alerts.rules.yml"
_STYLES = {"ok": "green", "pending": "yellow", "firing": "red", "clearing": "yellow"}


def register(app: typer.Typer) -> None:
    command(app, "alerts", example="tasklib alerts --test")(alerts)


def alerts(
    session: Session,
    test: Annotated[bool, typer.Option("--test", help="Send a test message, and say whether it arrived.")] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print rules for Prometheus that say the same, as a file for it.")
    ] = False,
) -> None:
    """Show the alert rules, their states, and what they find now.

    The rules are in the file that the variable TASKLIB_ALERTS_FILE names. Workers and `tasklib serve` check them.
    """
    if prometheus:
        text = PROMETHEUS_RULES.read_text("utf-8")
        session.out.data({"rules": text}) if session.out.as_json else session.out.line(text.rstrip())
        return
    path = session.config.alerts_file
    if path is None:
        raise InvalidConfig("alerts_file: no rules are set; name a file in TASKLIB_ALERTS_FILE", field="alerts_file")
    file = read_alert_file(path)
    if test:
        _test(session, file)
        return
    found = session.run(lambda engine: _look(engine, file))
    if session.out.as_json:
        session.out.data({"target": file.shown_target, "rules": [_data(each) for each in found.rules]})
        return
    columns = [Column("RULE"), Column("WHEN"), Column("STATE"), Column("SINCE", optional=True), Column("NOW")]
    session.out.table(columns, [_row(each, found.now) for each in found.rules])
    session.out.hint(f"Told to the {file.shown_target}.")


class _Rule(NamedTuple):
    rule: AlertRule
    reading: Reading
    alert: Alert | None
    """None: it was never checked, or never held."""


class _Found(NamedTuple):
    rules: list[_Rule]
    now: datetime


async def _look(engine: Engine, file: AlertFile) -> _Found:
    store = await engine.store()
    kept = {alert.name: alert for alert in await store.alerts()}
    seen = await see(engine, file)
    rules = [_Rule(rule, look(rule, seen), kept.get(rule.name)) for rule in file.rules]
    return _Found(rules, await store.now())


def _row(found: _Rule, now: datetime) -> list[Any]:
    rule, reading, alert = found
    state = AlertState.OK.value if alert is None else alert.state
    since = "" if alert is None else relative(alert.since, now)
    told = "" if alert is None or alert.told else f"; not told yet, {alert.tries} tries"
    return [rule.name, _condition(rule), styled(state, _STYLES.get(state, "")), since, reading.text + told]


def _condition(rule: AlertRule) -> str:
    """The rule as a line."""
    words = [rule.when.value]
    if rule.type is not None:
        words.append(f"of {rule.type}")
    if rule.when == "backlog_age":
        words.append(f"above {span(rule.above)}")
    elif rule.when != "no_worker":
        words.append(f"above {rule.above:g}")
    return f"{' '.join(words)} for {span(rule.lasting)}"


def _data(found: _Rule) -> dict[str, Any]:
    rule, reading, alert = found
    return {
        **rule.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "for": rule.lasting,
        "state": AlertState.OK.value if alert is None else alert.state,
        "since": None if alert is None else alert.since,
        "fired_at": None if alert is None else alert.fired_at,
        "over_at": None if alert is None else alert.over_at,
        "told": alert is None or alert.told,
        "tries": 0 if alert is None else alert.tries,
        "holds": reading.breached,
        "text": reading.text,
    }


def _test(session: Session, file: AlertFile) -> None:
    failure = asyncio.run(send(file, sample_message(file, session.config.shown_url)))
    if failure is not None:
        session.out.error(f"the {file.shown_target} was not told: {failure}", "alert_not_told", Exit.FAILED)
        raise typer.Exit(Exit.FAILED)
    if session.out.as_json:
        session.out.data({"target": file.shown_target, "told": True})
    else:
        session.out.line(f"The {file.shown_target} has taken the test message.")
