"""Rows as they come from asyncpg, made into values."""

from __future__ import annotations

import json
from typing import Any

from tasklib.core.task import Task

_JSON = ("args", "kwargs", "result", "tags", "retry_policy", "history")


def task_of(row: Any) -> Task:
    values = dict(row.items())
    for name in _JSON:
        if values[name] is not None:
            values[name] = _decoded(values[name])
    return Task(**values)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # a number longer than Python reads, put in by hand: shown as it is
        return text
