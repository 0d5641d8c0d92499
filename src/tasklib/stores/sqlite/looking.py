"""Reading: tasks by id, by key, by filter; counts and figures. Nothing here writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from uuid import UUID

import apsw

from tasklib.core.task import Task
from tasklib.stores.base import Controls, Count, Filter, NameStats, Page, Point, WorkerInfo
from tasklib.stores.sqlite.batches import SQL, rows_of, values_of
from tasklib.stores.sqlite.limits import Control
from tasklib.stores.sqlite.rows import instant, instant_or_none, read_task, seconds, seconds_between, written

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
                WHEN tag.type IN ('integer', 'real') THEN wanted.type IN ('integer', 'real') AND tag.value = wanted.value
                WHEN tag.type IN ('object', 'array') THEN tag.type = wanted.type AND same_json(tag.value, wanted.value)
                ELSE tag.type = wanted.type AND tag.value IS wanted.value
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


def now(connection: apsw.Connection, clock_offset: float) -> str:
    text: str = connection.execute(SQL["now"], {"offset": seconds(clock_offset)}).get
    return text


def get(connection: apsw.Connection, ids: Sequence[UUID]) -> list[Task | None]:
    wanted = [str(task_id) for task_id in ids]
    rows = rows_of(connection, SQL["get"], {"ids": json.dumps(wanted)})
    found = {row[0]: read_task(row) for row in rows}
    return [found.get(task_id) for task_id in wanted]


def get_by_key(connection: apsw.Connection, key: str) -> Task | None:
    rows = rows_of(connection, SQL["get_by_key"], {"key": key})
    return read_task(rows[0]) if rows else None


def needs_no_mark(connection: apsw.Connection, task_id: UUID) -> bool:
    """The task is finished, or gone, or marked already as waited for."""
    return bool(connection.execute(SQL["needs_no_mark"], {"id": str(task_id)}).get)


def page(
    connection: apsw.Connection, where: Filter, limit: int, cursor: UUID | None, offset: int, oldest_first: bool
) -> Page:
    conditions, parameters = _conditions(connection, where)
    if cursor is not None:
        conditions.append("above" if oldest_first else "below")
        parameters["cursor"] = str(cursor)
    query = _composed("page_oldest" if oldest_first else "page_newest", _pools(connection, where), tuple(conditions))
    rows = rows_of(connection, query, {**parameters, "limit": limit + 1, "offset": offset})
    tasks = [read_task(row) for row in rows[:limit]]
    return Page(tasks, tasks[-1].id if len(rows) > limit and tasks else None)


def count(connection: apsw.Connection, where: Filter, cap: int) -> Count:
    conditions, parameters = _conditions(connection, where)
    query = _composed("count", _pools(connection, where), tuple(conditions))
    found: int = connection.execute(query, {**parameters, "limit": cap + 1}).get
    return Count(min(found, cap), found > cap)


def stats(connection: apsw.Connection, clock_offset: float) -> dict[str, NameStats]:
    moment, active, finished = values_of(connection, SQL["stats"], {"offset": seconds(clock_offset)})
    found: dict[str, NameStats] = {}

    def add(name: str, **figures: Any) -> None:
        found[name] = replace(found.get(name, NameStats()), **figures)

    for name, state, number, due in active:
        add(name, **{"waiting" if state == "failed" else state: number})
        if due is not None and due <= moment:
            waited = seconds_between(due, moment)
            add(name, oldest_due_seconds=max(waited, found[name].oldest_due_seconds or 0.0))
    for name, state, number in finished:
        add(name, **{state: number})
    return found


def series(connection: apsw.Connection, since_seconds: float, clock_offset: float) -> list[Point]:
    parameters = {"offset": seconds(clock_offset), "since": seconds(-since_seconds)}
    return [Point(instant(row[0]), *row[1:]) for row in rows_of(connection, SQL["series"], parameters)]


def workers(connection: apsw.Connection, clock_offset: float) -> list[WorkerInfo]:
    moment, rows = values_of(connection, SQL["workers"], {"offset": seconds(clock_offset)})
    return [
        WorkerInfo(
            id=row[0],
            hostname=row[1],
            pid=row[2],
            names=tuple(json.loads(row[3])),
            concurrency=row[4],
            running=row[5],
            started_at=instant(row[6]),
            seen_at=instant(row[7]),
            stopped_at=instant_or_none(row[8]),
            seconds_since_seen=seconds_between(row[7], moment),
        )
        for row in rows
    ]


def controls(connection: apsw.Connection) -> dict[str, Controls]:
    found = [Control.read(row).public() for row in rows_of(connection, SQL["controls"])]
    return {control.name: control for control in found if control != Controls(name=control.name)}


def _conditions(connection: apsw.Connection, where: Filter) -> tuple[list[str], dict[str, Any]]:
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
    conditions = list(parameters)
    if where.terminal is not None:
        conditions.append("finished" if where.terminal else "unfinished")
    if where.tags is not None or where.error_text is not None:
        floor = connection.execute(SQL["search_floor"], {"rows": SEARCHED_ROWS}).get
        if floor is not None:
            conditions.append("floor")
            parameters["floor"] = floor
    return conditions or ["any"], parameters


def _pools(connection: apsw.Connection, where: Filter) -> tuple[str, ...]:
    """The indexes that together hold all tasks the filter can mean, where they are few enough to sort; else none, and
    the table is walked by its key."""
    pools: set[str] = set()
    if where.ids is not None or where.states is None or not where.states:
        return ()
    for state in where.states:
        if state not in _POOLS:
            return ()
        pools.update(_POOLS[state])
    if where.terminal is False:
        pools.discard("pool_failed")
    if where.terminal is True:
        pools &= {"pool_failed"}
    chosen = tuple(sorted(pools))
    query = _composed("count_pools", chosen, ())
    few = bool(chosen) and connection.execute(query, {"limit": _INDEXED_ROWS + 1}).get <= _INDEXED_ROWS
    return chosen if few else ()


@lru_cache(maxsize=256)
def _composed(query: str, pools: tuple[str, ...], conditions: tuple[str, ...]) -> str:
    """A statement from parts that are all ours; values only ever come in as parameters."""
    where = " AND ".join(_CONDITIONS[name] for name in conditions)
    source = SQL["from_pools"] if pools else SQL["from_all"]
    text = SQL[query].replace("<source>", source).replace("<where>", where)
    return text.replace("<pools>", " UNION ALL ".join(SQL[pool] for pool in pools))
