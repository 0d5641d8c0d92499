"""Filters: from what is asked for to the conditions of a statement, and to the index that serves it best."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import apsw

from tasklib.stores.base import Filter
from tasklib.stores.sqlite.batches import SQL
from tasklib.stores.sqlite.rows import written

SEARCHED_ROWS = 50_000
"""Searches by text or tag look at the newest so many tasks only."""

_INDEXED_ROWS = 20_000
"""Tasks in a state that has an index are listed through it up to so many; beyond, walking meets them often enough."""

_POOLS = {
    "pending": ("pool_ready", "pool_waiting"),
    "failed": ("pool_ready", "pool_waiting", "pool_failed"),
    "running": ("pool_running",),
}

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
    "worker_id": "f.worker_id = :worker_id",
    "error_text": "instr(lower(f.error), lower(:error_text)) > 0",
    "error_letters": "f.error IS NOT NULL AND contains_letters(f.error, :error_letters)",
    "created_after": "f.created_at >= :created_after",
    "created_before": "f.created_at < :created_before",
    "ids": "f.id IN (SELECT value FROM json_each(:ids))",
    "floor": "f.id > :floor",
    "below": "f.id < :cursor",
    "above": "f.id > :cursor",
    "any": "true",
}


def conditions(connection: apsw.Connection, where: Filter) -> tuple[list[str], dict[str, Any]]:
    """The names of the conditions that a filter sets, and their parameters."""
    given: dict[str, Any] = {
        "names": None if where.names is None else json.dumps(list(where.names)),
        "name_prefix": where.name_prefix,
        "states": None if where.states is None else json.dumps(list(where.states)),
        "tags": None if where.tags is None else json.dumps(where.tags, ensure_ascii=False),
        "worker_id": where.worker_id,
        # SQLite folds the case of ASCII letters only.
        "error_text" if (where.error_text or "").isascii() else "error_letters": where.error_text,
        "created_after": None if where.created_after is None else written(where.created_after),
        "created_before": None if where.created_before is None else written(where.created_before),
        "ids": None if where.ids is None else json.dumps([str(task_id) for task_id in where.ids]),
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    wanted = list(parameters)
    if where.terminal is not None:
        wanted.append("finished" if where.terminal else "unfinished")
    if where.tags is not None or where.error_text is not None:
        floor = connection.execute(SQL["search_floor"], {"rows": SEARCHED_ROWS}).get
        if floor is not None:
            wanted.append("floor")
            parameters["floor"] = floor
    return wanted or ["any"], parameters


def pools(connection: apsw.Connection, where: Filter) -> tuple[str, ...]:
    """The indexes that together hold all tasks the filter can mean, where they are few enough to sort; else none, and
    the table is walked by its key."""
    needed: set[str] = set()
    if where.ids is not None or where.states is None or not where.states:
        return ()
    for state in where.states:
        if state not in _POOLS:
            return ()
        needed.update(_POOLS[state])
    if where.terminal is False:
        needed.discard("pool_failed")
    if where.terminal is True:
        needed &= {"pool_failed"}
    chosen = tuple(sorted(needed))
    query = composed("count_pools", chosen, ())
    few = bool(chosen) and connection.execute(query, {"limit": _INDEXED_ROWS + 1}).get <= _INDEXED_ROWS
    return chosen if few else ()


@lru_cache(maxsize=256)
def composed(query: str, pools: tuple[str, ...], conditions: tuple[str, ...]) -> str:
    """A statement from parts that are all ours; values only ever come in as parameters."""
    where = " AND ".join(_CONDITIONS[name] for name in conditions)
    source = SQL["from_pools"] if pools else SQL["from_all"]
    text = SQL[query].replace("<source>", source).replace("<where>", where)
    return text.replace("<pools>", " UNION ALL ".join(SQL[pool] for pool in pools))


def same_json(*texts: Any) -> bool:
    """For SQLite: whether two JSON texts hold the same value. Compared as text: in Python, 1 and True are equal."""
    one, other = (json.dumps(json.loads(text, parse_int=float), sort_keys=True) for text in texts)
    return one == other


def contains_letters(*texts: Any) -> bool:
    """For SQLite, whose own `lower` knows ASCII only: whether the first text contains the second."""
    text, part = texts
    return str(part).lower() in str(text).lower()
