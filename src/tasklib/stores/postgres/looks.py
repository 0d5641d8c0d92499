"""Reads for people: one task, figures, workers. Lists are in listing.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tasklib.core.task import Task
from tasklib.stores import serving
from tasklib.stores.postgres.calls import Calls, reading
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.postgres.rows import task_of
from tasklib.stores.values import Age, NameStats, Point, WorkerInfo


async def fetch(calls: Calls, name: str, *parameters: Any) -> list[Any]:
    async def work(connection: Connection, timeout: float) -> Any:
        return await connection.fetch(calls.sql[name], *parameters, timeout=timeout)

    rows: list[Any] = await calls.run(work)
    return rows


async def get_by_key(calls: Calls, key: str) -> Task | None:
    rows = await fetch(calls, "get_by_key", key)
    return task_of(rows[0]) if rows else None


async def stats(calls: Calls) -> dict[str, NameStats]:
    names: dict[str, dict[str, Any]] = {}
    active, finished = await _read(calls, ("stats_active", calls.offset), ("stats_finished",))
    for name, state, number, oldest in active:
        figures = names.setdefault(name, {})
        field = "waiting" if state == "failed" else state
        figures[field] = figures.get(field, 0) + number
        if oldest is not None and oldest >= 0:
            figures["oldest_due_seconds"] = max(oldest, figures.get("oldest_due_seconds", 0.0))
    for name, state, number in finished:
        if number:
            names.setdefault(name, {})[state] = number
    return {name: NameStats(**figures) for name, figures in sorted(names.items())}


async def series(calls: Calls, since_seconds: float, step_seconds: int) -> Sequence[Point]:
    [rows] = await _read(calls, ("series", calls.offset, timedelta(seconds=since_seconds), step_seconds))
    return [Point(*row) for row in rows]


async def ages(calls: Calls, since_seconds: float, step_seconds: int) -> Sequence[Age]:
    [rows] = await _read(calls, ("ages", calls.offset, timedelta(seconds=since_seconds), step_seconds))
    return [Age(*row) for row in rows]


async def workers(calls: Calls) -> list[WorkerInfo]:
    fields = ("id", "hostname", "pid", "names", "concurrency", "running", "started_at", "seen_at", "stopped_at")
    found = []
    for *values, silent in await fetch(calls, "workers", calls.offset):
        given: dict[str, Any] = dict(zip(fields, values, strict=True))
        given["names"], given["queues"] = serving.read(given["names"])
        found.append(WorkerInfo(**given, seconds_since_seen=max(0.0, silent)))
    return found


async def _read(calls: Calls, *queries: tuple[Any, ...]) -> list[list[Any]]:
    """Several queries, each with its parameters, that may scan."""

    async def work(connection: Connection, timeout: float) -> list[list[Any]]:
        async with reading(connection, timeout):
            return [await connection.fetch(calls.sql[name], *parameters) for name, *parameters in queries]

    return await calls.run(work)
