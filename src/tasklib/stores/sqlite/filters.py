"""Filters: from what is asked for to the conditions of a statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tasklib.stores.sqlite.rows import written
from tasklib.stores.values import Filter

_LAST_SECOND = datetime.max.replace(microsecond=0, tzinfo=UTC)

_CONDITIONS = {
    "names": "f.name IN (SELECT value FROM json_each(:names))",
    "name_prefix": "substr(f.name, 1, length(:name_prefix)) = :name_prefix",
    "states": "f.state IN (SELECT value FROM json_each(:states))",
    "finished": "f.completed_at IS NOT NULL",
    "unfinished": "f.completed_at IS NULL",
    "tags": """NOT EXISTS (
        SELECT 1 FROM json_each(:tags) AS wanted
        WHERE NOT EXISTS (
            SELECT 1 FROM json_each(f.tags) AS tag
            WHERE tag.key = wanted.key AND CASE
                WHEN tag.type IN ('integer', 'real')
                    THEN wanted.type IN ('integer', 'real') AND tag.value = wanted.value
                WHEN tag.type <> wanted.type THEN 0
                WHEN tag.type IN ('object', 'array') THEN same_json(tag.value, wanted.value)
                ELSE tag.value IS wanted.value
            END
        )
    )""",
    "worker_id": "f.state = 'running' AND f.worker_id = :worker_id",
    "error_text": "instr(lower(f.error), lower(:error_text)) > 0",
    "error_letters": "f.error IS NOT NULL AND contains_letters(f.error, :error_letters)",
    "created_after": "f.created_at >= :created_after",
    "created_before": "f.created_at < :created_before",
}


def conditions(where: Filter) -> list[str]:
    """The names of the conditions that a filter sets."""
    found = list(_given(where))
    if where.terminal is not None:
        found.append("finished" if where.terminal else "unfinished")
    return found


def names_given(where: Filter) -> list[str]:
    """Those of them that are about the name."""
    return [name for name in conditions(where) if name in ("names", "name_prefix")]


def parameters(where: Filter, conditions: Sequence[str]) -> dict[str, Any]:
    given = _given(where)
    found = {name: given[name] for name in conditions if name in given}
    if where.ids is not None:
        found["ids"] = json.dumps([str(task_id) for task_id in where.ids])
    return found


def joined(conditions: Sequence[str]) -> str:
    return " AND ".join(_CONDITIONS[name] for name in conditions) or "true"


def _given(where: Filter) -> dict[str, Any]:
    values: dict[str, Any] = {
        "names": None if where.names is None else json.dumps(list(where.names)),
        "name_prefix": where.name_prefix or None,
        "states": None if where.states is None else json.dumps(list(where.states)),
        "tags": json.dumps(where.tags, ensure_ascii=False) if where.tags else None,
        "worker_id": where.worker_id,
        # SQLite folds the case of ASCII letters only.
        "error_text" if (where.error_text or "").isascii() else "error_letters": where.error_text or None,
        "created_after": _bound(where.created_after),
        "created_before": _bound(where.created_before),
    }
    return {name: value for name, value in values.items() if value is not None}


def _bound(value: datetime | None) -> str | None:
    """Times are kept in whole milliseconds: what lies between two of them is the later one's edge."""
    if value is None:
        return None
    rest = -value.microsecond % 1000
    return written(value + timedelta(microseconds=rest) if value < _LAST_SECOND else value)


def same_json(*texts: Any) -> bool:
    """For SQLite: whether two JSON texts hold the same value. Compared as text: in Python, 1 and True are equal."""
    one, other = (json.dumps(json.loads(text, parse_int=float), sort_keys=True) for text in texts)
    return one == other


def contains_letters(*texts: Any) -> bool:
    """For SQLite, whose own `lower` knows ASCII only: whether the first text contains the second."""
    text, part = texts
    return str(part).lower() in str(text).lower()
