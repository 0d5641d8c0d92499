"""The states of alert rules."""

from __future__ import annotations

from dataclasses import asdict

from tasklib.core.alert_state import Alert
from tasklib.stores.sql.columns import ALERT
from tasklib.stores.sql.steps import Query, Steps


def alerts() -> Steps[list[Alert]]:
    found: list[Alert] = yield Query("alerts", ALERT)
    return found


def put_alert(alert: Alert) -> Steps[bool]:
    return bool((yield Query("put_alert", **asdict(alert))))
