"""One entry of the controls, as the bucket keeps it. Its revision guards every claim under a limit, so limits are exact
for the whole fleet."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime

from tasklib.core.limits import Control
from tasklib.stores.nats.clock import micros, moment


def decode(name: str, text: str | bytes) -> Control:
    fields = json.loads(text)
    fields.pop("name", None)
    refilled_at, paused_at = _moment(fields.pop("refilled")), _moment(fields.pop("paused_since", None))
    return Control(name, **fields, refilled_at=refilled_at, paused_at=paused_at)


def encode(control: Control) -> str:
    fields = asdict(control)
    times = {"refilled": fields.pop("refilled_at"), "paused_since": fields.pop("paused_at")}
    written = {name: None if value is None else micros(value) for name, value in times.items()}
    return json.dumps({**fields, **written}, separators=(",", ":"))


def _moment(at: int | None) -> datetime | None:
    return None if at is None else moment(at)
