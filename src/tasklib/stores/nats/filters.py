"""Filters: what can be decided from the list of all tasks, and what only from the whole task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tasklib.core.task import Task
from tasklib.core.words import PAYLOAD_BYTES, at_path, is_found, payload_bytes, short_id
from tasklib.stores.values import Filter


def by_roster(where: Filter, state: str, terminal: bool, name: str) -> bool:
    return (
        (where.names is None or name in where.names)
        and (where.name_prefix is None or name.startswith(where.name_prefix))
        and (where.states is None or state in where.states)
        and (where.terminal is None or terminal == where.terminal)
        and (terminal or not where.by_end)
    )


def by_task(where: Filter, task: Task) -> bool:
    return (
        by_roster(where, task.state, task.completed_at is not None, task.name)
        and (where.worker_id is None or task.worker_id == where.worker_id)
        and all(_has(task.tags, key, values) for key, values in where.tag_choices())
        and (where.error_text is None or _contains(task.error, where.error_text))
        and _within(task.created_at, where.created_after, where.created_before)
        and (task.completed_at is None or _within(task.completed_at, where.ended_after, where.ended_before))
        and (where.ids is None or task.id in where.ids)
        and (not where.short_ids or short_id(task.id) in where.short_ids)
        and (where.flow_id is None or task.flow_id == where.flow_id)
        and (where.idempotency_key is None or task.idempotency_key == where.idempotency_key)
        and (not where.payload_texts or _holds(task.kwargs, where.payload_choices()))
        and all(is_found(word, task, where.secret_keys) for word in where.words or ())
    )


def _within(instant: datetime, start: datetime | None, end: datetime | None) -> bool:
    return (start is None or instant >= start) and (end is None or instant < end)


def _has(tags: dict[str, Any], key: str, values: Sequence[Any]) -> bool:
    return key in tags and _plain(tags[key]) in map(_plain, values)


def _holds(payload: Any, wanted: Sequence[tuple[Sequence[str], Sequence[Any]]]) -> bool:
    return payload_bytes(payload) <= PAYLOAD_BYTES and all(
        any(_plain(found) in map(_plain, choices) for found in at_path(payload, path)) for path, choices in wanted
    )


def _plain(value: Any) -> str:
    """Compared as text: in Python, 1 and True are equal; in JSON, 1 and 1.0 are."""
    return json.dumps(json.loads(json.dumps(value), parse_int=float), sort_keys=True)


def _contains(error: str | None, text: str) -> bool:
    return error is not None and text.lower() in error.lower()
