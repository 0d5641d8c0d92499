"""Pause and limits, as people set them. What they mean for a claim is in core/limits.py."""

from __future__ import annotations

from collections.abc import Sequence

from tasklib.core.limits import ControlChange, Controls
from tasklib.stores.sql.access import add_audit
from tasklib.stores.sql.columns import CONTROL, ControlNow
from tasklib.stores.sql.reads import now
from tasklib.stores.sql.steps import BEGIN, Notify, Query, Steps
from tasklib.stores.values import AuditEntry


def controls() -> Steps[dict[str, Controls]]:
    rows: list[ControlNow] = yield Query("controls", CONTROL)
    found = [row.control.public() for row in rows]
    return {control.name: control for control in found if control != Controls(name=control.name)}


def change_control(change: ControlChange, *, audit: Sequence[AuditEntry] = ()) -> Steps[Controls]:
    yield BEGIN
    yield from add_audit(audit)  # before the row is locked, for which claims wait
    yield Query("add_control", name=change.name)  # so that there is a row to lock
    rows: list[ControlNow] = yield Query("lock_controls", CONTROL, names=[change.name])
    new = rows[0].control.changed(change, (yield from now()))
    yield Query(
        "set_control",
        name=new.name,
        paused=new.paused,
        operator_rate=new.operator_rate,
        default_rate=new.default_rate,
        concurrency=new.concurrency,
        # A bucket that was never filled is full from now on.
        tokens=max(1.0, new.rate or 0.0) if new.tokens is None else new.tokens,
        refilled_at=new.refilled_at,
        paused_by=new.paused_by,
        paused_at=new.paused_at,
    )
    yield Notify(everybody=True)
    return new.public()
