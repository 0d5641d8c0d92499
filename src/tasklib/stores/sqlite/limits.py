"""One row of the controls, as SQLite keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasklib.core.limits import Control
from tasklib.stores.sqlite.rows import instant_or_none


def read(row: Sequence[Any]) -> Control:
    name, paused, operator_rate, default_rate, concurrency, tokens, refilled_at = row
    filled = instant_or_none(refilled_at)
    return Control(name, bool(paused), operator_rate, default_rate, concurrency, tokens, filled)
