"""One entry of the controls, as the bucket keeps it. Its revision guards every claim under a limit, so limits are exact
for the whole fleet."""

from __future__ import annotations

import json
from dataclasses import asdict

from tasklib.core.limits import Control
from tasklib.stores.nats.clock import micros, moment


def decode(name: str, text: str | bytes) -> Control:
    fields = json.loads(text)
    fields.pop("name", None)
    refilled = fields.pop("refilled")
    return Control(name, **fields, refilled_at=None if refilled is None else moment(refilled))


def encode(control: Control) -> str:
    fields = asdict(control)
    refilled = fields.pop("refilled_at")
    return json.dumps({**fields, "refilled": None if refilled is None else micros(refilled)}, separators=(",", ":"))
