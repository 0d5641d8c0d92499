"""Checks the alert rules for the whole fleet: of all who try, one looks at a time, and one tells."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tasklib.core.alerts import (
    Alert,
    AlertRule,
    AlertState,
    Attempts,
    Condition,
    Seen,
    advance,
    arrived,
    look,
    trying,
)
from tasklib.core.errors import TRANSIENT
from tasklib.engine.alert_file import AlertFile, read_alert_file
from tasklib.engine.alert_sending import send
from tasklib.engine.diagnose import WorkerState, worker_state
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import AlertStore

log = logging.getLogger("tasklib.alerts")

CHECK_SECONDS = 15.0
LATE_SECONDS = 5.0
"""How much longer than its deadline a message may take before another sends it, too."""
TURN = ""
"""The name under which it is kept when rules were checked last. No rule has it."""


class AlertWatch:
    def __init__(self, engine: Engine, file: AlertFile) -> None:
        self._engine = engine
        self._file = file

    async def run(self) -> None:
        """For who has no janitor: checks until cancelled."""
        while True:
            try:
                await self.check()
            except TRANSIENT as error:
                log.warning("alert rules cannot be checked: %s", error)
            await asyncio.sleep(CHECK_SECONDS * random.uniform(0.8, 1.2))

    async def check(self) -> None:
        """Looks, unless somebody has just done so, and tells what is new or has not arrived."""
        store = await self._engine.store()
        now = await store.now()
        kept = {alert.name: alert for alert in await store.alerts()}
        turn = kept.get(TURN)
        if turn is not None and timedelta(0) <= now - turn.since < timedelta(seconds=0.9 * CHECK_SECONDS):
            return
        turn = turn or Alert(name=TURN, state=AlertState.OK, since=now)
        if not await _write(store, replace(turn, since=now)):
            return
        seen = await see(self._engine, self._file)
        sending = []
        for rule in self._file.rules:
            before = kept.get(rule.name) or Alert(name=rule.name, state=AlertState.OK, since=now)
            after = advance(rule, before, look(rule, seen), now)
            if due := after.is_due(now):
                after = trying(after, now, self._file.timeout + LATE_SECONDS)
            if after is before or not await _write(store, after):
                continue
            if after.fired_at != before.fired_at:
                log.warning("alert %s fires: %s", rule.name, after.text)
            elif after.over_at != before.over_at:
                log.info("alert %s is over: %s", rule.name, after.text)
            if due:
                sending.append(self._tell(store, rule, replace(after, version=after.version + 1)))
        for ended in await asyncio.gather(*sending, return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended

    async def _tell(self, store: AlertStore, rule: AlertRule, alert: Alert) -> None:
        failure = await send(self._file, message_of(rule, alert, self._engine.config.shown_url))
        if failure is None:
            await _write(store, arrived(alert))
            return
        log.warning("alert %s was not told to the %s: %s", rule.name, self._file.shown_target, failure)


def alert_watch(engine: Engine) -> AlertWatch | None:
    """None: the settings name no rules. Raises InvalidConfig."""
    path = engine.config.alerts_file
    return None if path is None else AlertWatch(engine, read_alert_file(path))


async def see(engine: Engine, file: AlertFile) -> Seen:
    """What the rules of the file look at."""
    dead_after = engine.config.dead_after_seconds
    stats, workers = await engine.stats(), await engine.workers()
    lost = [each for each in workers if worker_state(each, dead_after) is WorkerState.LOST]
    windows = {rule.within for rule in file.rules if rule.when is Condition.FAILURE_RATE}
    return Seen(
        oldest_due={
            name: max(0.0, each.oldest_due_seconds)
            for name, each in stats.items()
            if each.oldest_due_seconds is not None
        },
        attempts={window: await _attempts(engine, window) for window in windows},
        live=[each.names for each in workers if worker_state(each, dead_after) is WorkerState.LIVE],
        lost=[each.seconds_since_seen - dead_after for each in lost],
        failing=await _failing(engine, file),
    )


async def _failing(engine: Engine, file: AlertFile) -> Collection[str]:
    """Only where a rule asks for it: it reads tasks."""
    rules = [rule for rule in file.rules if rule.when is Condition.FAILED_SCHEDULE]
    if not rules:
        return ()
    wanted = {rule.schedule for rule in rules}
    schedules = await engine.schedules.all()
    return await engine.schedules.failing([each for each in schedules if None in wanted or each.name in wanted])


async def _attempts(engine: Engine, window: float) -> Mapping[str, Attempts]:
    found: dict[str, Attempts] = {}
    for point in await engine.series(window):
        if point.state in ("completed", "failed", "retried"):
            ended, failed = found.get(point.name, (0, 0))
            found[point.name] = Attempts(ended + point.count, failed + point.count * (point.state != "completed"))
    return found


def message_of(rule: AlertRule, alert: Alert, queue: str) -> dict[str, Any]:
    """What a webhook or a command is given, as JSON."""
    assert alert.fired_at is not None
    status, over = ("firing", "") if alert.over_at is None else ("resolved", "over; ")
    return {
        "id": f"{rule.name}/{alert.fired_at.isoformat()}/{status}",
        "alert": rule.name,
        "status": status,
        "text": f"{rule.name}: {over}{alert.text}",
        "started_at": _iso(alert.fired_at),
        "resolved_at": None if alert.over_at is None else _iso(alert.over_at),
        "rule": rule.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "queue": queue,
    }


def sample_message(file: AlertFile, queue: str) -> dict[str, Any]:
    text = f"a test message; {len(file.rules)} rules are set"
    return {"id": "test", "alert": "test", "status": "test", "text": text, "queue": queue}


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


async def _write(store: AlertStore, alert: Alert) -> bool:
    """False: somebody else was first."""
    return await store.put_alert(replace(alert, version=alert.version + 1))
