"""Reads for people: lists, counts, figures. A filter becomes conditions from look.sql; values are always parameters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tasklib.core.task import Task
from tasklib.stores.base import Age, Count, Filter, NameStats, Page, Point, WorkerInfo
from tasklib.stores.postgres.calls import Calls, reading
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.postgres.rows import task_of

_STATES = {
    "pending": "where_pending",
    "running": "where_running",
    "completed": "where_completed",
    "failed": "where_failed",
    "cancelled": "where_cancelled",
}


async def fetch(calls: Calls, name: str, *parameters: Any) -> list[Any]:
    return await _fetch(calls, calls.sql[name], parameters)


async def get_by_key(calls: Calls, key: str) -> Task | None:
    rows = await fetch(calls, "get_by_key", key)
    return task_of(rows[0]) if rows else None


async def page(
    calls: Calls, where: Filter, *, limit: int, cursor: UUID | None, offset: int, oldest_first: bool
) -> Page:
    if limit <= 0:
        return Page([], None)
    conditions = _Conditions(calls.sql, where, [limit + 1, offset])
    if cursor is not None:
        conditions.add("where_after" if oldest_first else "where_behind", cursor)
    text = conditions.fill("page_oldest_first" if oldest_first else "page_newest_first")
    tasks = [task_of(row) for row in await _search(calls, text, conditions.parameters)]
    more = len(tasks) > limit
    return Page(tasks[:limit], tasks[limit - 1].id if more else None)


async def count(calls: Calls, where: Filter, cap: int) -> Count:
    conditions = _Conditions(calls.sql, where, [cap + 1])
    rows = await _search(calls, conditions.fill("count"), conditions.parameters)
    found = int(rows[0][0])
    return Count(min(found, cap), found > cap)


async def stats(calls: Calls) -> dict[str, NameStats]:
    names: dict[str, dict[str, Any]] = {}
    for name, state, number, oldest in await fetch(calls, "stats_active", calls.offset):
        figures = names.setdefault(name, {})
        field = "waiting" if state == "failed" else state
        figures[field] = figures.get(field, 0) + number
        if oldest is not None and oldest >= 0:
            figures["oldest_due_seconds"] = max(oldest, figures.get("oldest_due_seconds", 0.0))
    for name, state, number in await fetch(calls, "stats_finished"):
        if number:
            names.setdefault(name, {})[state] = number
    return {name: NameStats(**figures) for name, figures in sorted(names.items())}


async def series(calls: Calls, since_seconds: float, step_seconds: int) -> Sequence[Point]:
    rows = await fetch(calls, "series", calls.offset, timedelta(seconds=since_seconds), step_seconds)
    return [Point(*row) for row in rows]


async def ages(calls: Calls, since_seconds: float, step_seconds: int) -> Sequence[Age]:
    rows = await fetch(calls, "ages", calls.offset, timedelta(seconds=since_seconds), step_seconds)
    return [Age(*row) for row in rows]


async def workers(calls: Calls) -> list[WorkerInfo]:
    fields = ("id", "hostname", "pid", "names", "concurrency", "running", "started_at", "seen_at", "stopped_at")
    found = []
    for *values, silent in await fetch(calls, "workers", calls.offset):
        given = dict(zip(fields, values, strict=True))
        given["names"] = tuple(given["names"])
        found.append(WorkerInfo(**given, seconds_since_seen=max(0.0, silent)))
    return found


async def _fetch(calls: Calls, text: str, parameters: Sequence[Any]) -> list[Any]:
    async def work(connection: Connection, timeout: float) -> Any:
        return await connection.fetch(text, *parameters, timeout=timeout)

    rows: list[Any] = await calls.run(work)
    return rows


async def _search(calls: Calls, text: str, parameters: Sequence[Any]) -> list[Any]:
    async def work(connection: Connection, timeout: float) -> Any:
        async with reading(connection, timeout):
            return await connection.fetch(text, *parameters, timeout=timeout)

    rows: list[Any] = await calls.run(work)
    return rows


class _Conditions:
    """A filter's conditions, each taken from the queries by name, and the parameters they refer to."""

    def __init__(self, sql: dict[str, str], where: Filter, parameters: list[Any]) -> None:
        self._sql = sql
        self._texts: list[str] = []
        self.parameters = parameters
        # Neither has an index: look at the newest rows only.
        searches = where.ids is None and bool(where.tags or where.error_text)
        self._source = sql["source_newest" if searches else "source_all"]
        self._read(where)

    def add(self, name: str, value: Any) -> None:
        self.parameters.append(value)
        self._texts.append(self._sql[name].replace("{value}", f"${len(self.parameters)}"))

    def fill(self, name: str) -> str:
        conditions = " AND ".join(self._texts) or self._sql["where_all"]
        return self._sql[name].replace("{source}", self._source).replace("{conditions}", conditions)

    def _read(self, where: Filter) -> None:
        for name, value in (
            ("where_names", None if where.names is None else list(where.names)),
            ("where_name_prefix", where.name_prefix or None),
            ("where_tags", json.dumps(where.tags) if where.tags else None),
            ("where_worker", where.worker_id),
            ("where_error_text", where.error_text or None),
            ("where_created_after", where.created_after),
            ("where_created_before", where.created_before),
            ("where_ids", None if where.ids is None else list(where.ids)),
        ):
            if value is not None:
                self.add(name, value)
        if where.states is not None:
            self._read_states(list(where.states), where.terminal)
        if where.terminal is not None:
            self._texts.append(self._sql["where_terminal" if where.terminal else "where_not_terminal"])

    def _read_states(self, states: list[str], terminal: bool | None) -> None:
        """Known states as literals, so that the partial indexes can serve them; others can only be compared."""
        if not set(states) <= set(_STATES) or not states:
            self.add("where_states", states)
            return
        names = [_STATES[state] for state in sorted(set(states))]
        if terminal is not None:
            precise = "where_failed_final" if terminal else "where_failed_waiting"
            names = [precise if name == "where_failed" else name for name in names]
        self._texts.append(f"({' OR '.join(self._sql[name] for name in names)})")
