"""Words that people search for, in all that a list shows of a task. Nothing is found by what a list masks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tasklib.core.redact import names_secret
from tasklib.core.task import Task

SHORT_ID = 12
"""So many digits of an id are shown: its last ones."""
PAYLOAD_BYTES = 10_000
"""Larger payloads are not looked at: to read them takes longer than people wait."""

_MAY_BE_MASKED = (":", "=", "Bearer ")
"""Without one of these nothing in a text is masked (see `redact.mask_text`)."""


def short_id(task_id: object) -> str:
    return str(task_id)[-SHORT_ID:]


def is_found(word: str, task: Task, secret_keys: Sequence[str] | None) -> bool:
    """Whether a word is in the type, the idempotency key or the error, is the short id, or is in a value of the tags or
    of the payload. `secret_keys`: under names like these no value is looked at; None: no value at all."""
    small = word.lower()
    if any(text is not None and small in text.lower() for text in (task.name, task.idempotency_key, task.error)):
        return True
    if small == short_id(task.id):
        return True
    if secret_keys is None:
        return False
    values = [task.tags, task.kwargs if payload_bytes(task.kwargs) <= PAYLOAD_BYTES else None]
    return is_in_value(small, values, tuple(secret_keys))


def is_in_value(small: str, value: Any, secret_keys: tuple[str, ...]) -> bool:
    """Whether the word, in small letters, is in a text or a number there. A text that may be masked must be the word as
    a whole: otherwise a secret could be found out letter by letter."""
    if isinstance(value, dict):
        return any(
            not names_secret(str(name), secret_keys) and is_in_value(small, item, secret_keys)
            for name, item in value.items()
        )
    if isinstance(value, (list, tuple)):
        return any(is_in_value(small, item, secret_keys) for item in value)
    if isinstance(value, bool) or value is None:
        return False
    text = value if isinstance(value, str) else json.dumps(value)
    return text.lower() == small if any(mark in text for mark in _MAY_BE_MASKED) else small in text.lower()


def at_path(value: Any, path: Sequence[str]) -> list[Any]:
    """What lies there; nothing where there is no such name."""
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return []
        value = value[name]
    return [value]


def payload_bytes(payload: Any) -> int:
    return len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
