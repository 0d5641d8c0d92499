"""A database of version 1, in use, is refused until it is migrated; then nothing of it is lost."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from tasklib.core.errors import SchemaMismatch
from tasklib.core.lifecycle import Phase
from tasklib.stores.protocol import Store
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.sql.sqlite import SqliteStore
from tasklib.stores.values import Filter, NameStats
from tests.conformance.builders import (
    WORKER_A,
    WORKER_B,
    apply,
    claim_one,
    completed,
    fetch,
    heartbeat_of,
    in_phase,
    submit,
)

QUEUES = {"b": 'of "things" ✓'}
AS_IT_WAS = ["a", "b", json.dumps({"queues": QUEUES}, ensure_ascii=False)]
"""How version 1 wrote down a worker that serves b from a queue of its own."""

ADDED = {
    "tasks": (
        "waits",
        "after",
        "feeds",
        "flow_id",
        "key",
        "unique_key",
        "unique_until",
        "progress",
        "expires_at",
        "last_worker_id",
        "run_ms",
        "copy_of",
    ),
    "task_workers": ("version", "drain_requested_at", "drain_requested_by"),
    "task_controls": ("paused_by", "paused_at"),
    "task_audit": ("bulk_id", "done"),
}
"""Columns of version 2, on both engines."""
DROP_COLUMNS = "".join(f"ALTER TABLE {table} DROP COLUMN {name};" for table, names in ADDED.items() for name in names)


class Sqlite:
    back = """
        DROP TABLE task_steps;
        DROP TABLE task_keys;
        DROP TABLE task_alerts;
        DROP TABLE task_schedules;
        DROP INDEX ix_tasks_flow_id;
        DROP INDEX ix_tasks_unique_key;
        DROP INDEX ix_tasks_expires_at;
        DROP INDEX ix_task_audit_bulk_id;
        DROP INDEX ix_task_audit_listed;
        DROP TABLE task_types;
        ALTER TABLE task_workers DROP COLUMN queues;
        INSERT INTO task_counts (minute, name, state, bucket, count, run_ms)
        SELECT '1970-01-01T00:00:00.000Z', boot, 'clock', -1, added_ms, 0 FROM task_clocks;
        DROP TABLE task_clocks;
        DROP INDEX ix_tasks_ended;
        DROP INDEX ix_tasks_retrying;
        CREATE INDEX ix_tasks_failed ON tasks (state, (completed_at IS NULL), id)
            WHERE state IN ('failed', 'cancelled');
        CREATE INDEX ix_tasks_odd ON tasks (id) WHERE CASE state
            WHEN 'pending' THEN completed_at IS NOT NULL OR ready NOT IN (0, 1)
            WHEN 'running' THEN false
            WHEN 'completed' THEN completed_at IS NULL
            ELSE state NOT IN ('failed', 'cancelled')
        END;
        DELETE FROM task_migrations WHERE version > 1;
    """
    tables = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = SqliteStore(url)
        self._path = url.removeprefix("sqlite:///")

    def execute(self, sql: str, *values: Any) -> list[Any]:
        connection = apsw.Connection(self._path)
        try:
            return connection.execute(sql, values or None).fetchall()
        finally:
            connection.close()

    def set_names(self, names: list[str]) -> None:
        self.execute("UPDATE task_workers SET names = ? WHERE id = ?", json.dumps(names, ensure_ascii=False), WORKER_A)

    def clocks(self) -> list[Any]:
        return self.execute("SELECT boot, added_ms FROM task_clocks")


class Postgres:
    back = """
        DROP TABLE task_steps, task_keys, task_schedules, task_alerts;
        DROP INDEX ix_task_audit_bulk_id;
        DROP INDEX ix_task_audit_listed;
        DROP TABLE task_types;
        ALTER TABLE task_workers DROP COLUMN queues;
        DROP INDEX ix_tasks_ended;
        DROP INDEX ix_tasks_retrying;
        CREATE INDEX ix_tasks_failed ON tasks (state, (completed_at IS NULL), id NULLS FIRST)
            WHERE state IN ('failed', 'cancelled');
        CREATE INDEX ix_tasks_odd ON tasks (id) WHERE CASE state
            WHEN 'pending' THEN completed_at IS NOT NULL
            WHEN 'running' THEN false
            WHEN 'completed' THEN completed_at IS NULL
            ELSE state NOT IN ('failed', 'cancelled')
        END;
        DELETE FROM task_migrations WHERE version > 1;
    """
    tables = """
        SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
        WHERE table_schema = current_schema() ORDER BY 1, 2
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = PostgresStore(url)
        self._server, _, self._schema = url.rpartition("schema=")

    def execute(self, sql: str, *values: Any) -> list[Any]:
        options = f"-c search_path={self._schema}"
        with psycopg.connect(self._server.rstrip("?&"), options=options, autocommit=True) as connection:
            cursor = connection.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def set_names(self, names: list[str]) -> None:
        self.execute("UPDATE task_workers SET names = %s WHERE id = %s", names, WORKER_A)

    def clocks(self) -> list[Any]:
        return []


Database = Sqlite | Postgres


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "sqlite":
        return Sqlite(request.getfixturevalue("sqlite_url"))
    return Postgres(request.getfixturevalue("postgres_url"))


@pytest.fixture
def as_first_made(database: Database, tmp_path: Path, request: pytest.FixtureRequest) -> list[Any]:
    """The tables as the first step alone makes them."""
    _, script = database.store.migration_sql()[0]
    if isinstance(database, Sqlite):
        empty = Sqlite(f"sqlite:///{tmp_path}/first.db")
        empty.execute(script)
        return empty.execute(empty.tables)
    database.execute(script)
    found = database.execute(database.tables)
    schema = database.url.rpartition("schema=")[2]
    database.execute(f"DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}")
    return found


async def test_a_database_of_version_1_is_migrated_and_loses_nothing(database: Database, as_first_made: list[Any]):
    store = database.store
    await store.open()
    await store.heartbeat(heartbeat_of(WORKER_A, names=["a", "b"]))
    await store.heartbeat(heartbeat_of(WORKER_B, names=["a"]))
    tasks = [await in_phase(store, phase, key=f"key of {phase.name}") for phase in Phase]
    await submit(store, "held")
    running = await claim_one(store, "held")
    stats, series = await _counts(store), await store.series(3600)
    clocks = database.clocks()
    await store.close()
    database.execute(database.back + DROP_COLUMNS)
    database.set_names(AS_IT_WAS)
    assert _columns(database.execute(database.tables)) == _columns(as_first_made), "this is no version 1"

    another = type(store)(database.url)
    with pytest.raises(SchemaMismatch, match="tasklib migrate"):
        await another.open()
    assert await another.schema_version() == 1
    assert await another.migrate(plan=True) == ["0002_schedules_and_flows"]
    assert await another.migrate() == ["0002_schedules_and_flows"]
    await another.open()

    # Version 1 did not know who ran the latest attempt, and for how long.
    expected = [replace(task, last_worker_id=None, run_ms=None) for task in tasks]
    assert [await fetch(another, task.id) for task in tasks] == expected
    assert await _counts(another) == stats
    assert await another.series(3600) == series
    assert {worker.id: (worker.names, worker.queues) for worker in await another.workers()} == {
        WORKER_A: (("a", "b"), QUEUES),
        WORKER_B: (("a",), {}),
    }
    assert database.clocks() == clocks
    assert await another.published() == []
    page = await another.page_ended(Filter(states=["failed", "cancelled"]), limit=9)
    assert {task.id for task in page.tasks} == {
        task.id for task in tasks if task.completed_at and task.state != "completed"
    }
    await apply(another, completed(running, "done"))  # the claim made before holds
    assert (await another.stats())["held"].completed == 1
    await another.close()


async def _counts(store: Store) -> dict[str, NameStats]:
    return {name: replace(found, oldest_due_seconds=None) for name, found in (await store.stats()).items()}


def _columns(rows: list[Any]) -> list[Any]:
    """Without the blanks that SQLite leaves where a column was dropped."""
    return [tuple(" ".join(str(value).split()) for value in row) for row in rows]
