"""Every SQL statement that TaskLib's documents print runs on our table as it stands."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest

import tasklib
from tasklib.api.decorator import task
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain_async
from tests.queues import as_default

DAY = 86400.0

registry = Registry()


@task(registry=registry, max_retries=0)
def send_email(to: str) -> bool:
    if "@" not in to:
        raise ValueError("Invalid email address")
    return True


@task(registry=registry)
def process_image(path: str) -> str:
    return f"processed_{path}"


@pytest.fixture
async def engine(postgres_url: str) -> AsyncIterator[Engine]:
    async with as_default(Engine(Config(database_url=postgres_url))) as engine:
        await engine.store()
        yield engine


@pytest.fixture
def psql(postgres_url: str, postgres_server: str) -> Iterator[psycopg.Connection]:
    """A session as a person has it, with the schema of the test as the one it looks in."""
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"SET search_path = {postgres_url.rpartition('schema=')[2]}")
        connection.commit()
        yield connection


def rows(psql: psycopg.Connection, text: LiteralString) -> list[Any]:
    return psql.execute(text).fetchall()


async def submit(to: str, priority: int = 0) -> UUID:
    return (await send_email.options(priority=priority).submit_async(to)).id


# -- the table ---------------------------------------------------------------------------------------------------------

SCHEMA_AS_CREATED = """
CREATE TABLE tasks (
    -- Primary Key
    id UUID NOT NULL PRIMARY KEY,

    -- Task Identity
    name VARCHAR NOT NULL,                    -- "send_email", "process_image", etc.

    -- State Management
    state VARCHAR NOT NULL,                   -- "pending" | "running" | "completed" | "failed"
    scheduled_at TIMESTAMP NOT NULL,          -- When to execute
    started_at TIMESTAMP,                     -- When worker started
    completed_at TIMESTAMP,                   -- When finished

    -- Metadata
    created_at TIMESTAMP NOT NULL,            -- When submitted

    -- Arguments (Pydantic-validated)
    args JSONB NOT NULL DEFAULT '{}',         -- Reserved for future use
    kwargs JSONB NOT NULL,                    -- Function keyword arguments

    -- Results
    result JSONB,                             -- {"value": <return_value>}
    error TEXT,                               -- Full exception traceback

    -- Retry Logic
    retry_count INTEGER NOT NULL DEFAULT 0,   -- Current attempt (0 = first try)
    max_retries INTEGER NOT NULL,             -- Max attempts before giving up
    next_retry_at TIMESTAMP,                  -- When to retry (if failed)

    -- Locking & Worker Management
    worker_id VARCHAR,                        -- UUID of worker holding lock
    locked_until TIMESTAMP,                   -- Lock expiry (dead worker detection)

    -- Execution Control
    timeout_seconds INTEGER,                  -- Max execution time

    -- Ordering & Metadata
    priority INTEGER NOT NULL DEFAULT 0,      -- Higher = execute first
    tags JSONB NOT NULL DEFAULT '{}'          -- {"batch": "daily", "type": "email"}
);

-- Indexes (critical for performance)
CREATE INDEX ix_tasks_state ON tasks (state);
CREATE INDEX ix_tasks_scheduled_at ON tasks (scheduled_at);
CREATE INDEX ix_tasks_locked_until ON tasks (locked_until);
CREATE INDEX ix_tasks_priority ON tasks (priority);
CREATE INDEX ix_tasks_name ON tasks (name);
"""

SUMMARY_EXACT_SCHEMA = """
CREATE TABLE tasks (
    -- Primary key
    id UUID NOT NULL PRIMARY KEY,

    -- Task metadata
    name VARCHAR NOT NULL,              -- Task function name
    state VARCHAR NOT NULL,             -- pending|running|completed|failed

    -- Timing
    scheduled_at TIMESTAMP NOT NULL,    -- When to execute
    started_at TIMESTAMP,               -- When execution began
    completed_at TIMESTAMP,             -- When execution finished
    created_at TIMESTAMP NOT NULL,      -- When submitted

    -- Arguments & Results (Pydantic validated params)
    args JSONB NOT NULL DEFAULT '{}',   -- Reserved for future
    kwargs JSONB NOT NULL,              -- Function parameters
    result JSONB,                       -- Return value {"value": ...}
    error TEXT,                         -- Exception traceback

    -- Retry Logic
    retry_count INTEGER NOT NULL,       -- Current attempt (0 = first)
    max_retries INTEGER NOT NULL,       -- Max attempts allowed
    next_retry_at TIMESTAMP,            -- When to retry (exponential backoff)

    -- Locking (distributed coordination)
    worker_id VARCHAR,                  -- UUID of worker that locked it
    locked_until TIMESTAMP,             -- When lock expires (dead worker recovery)

    -- Execution Control
    timeout_seconds INTEGER,            -- Max execution time
    priority INTEGER NOT NULL,          -- Higher = execute first
    tags JSONB NOT NULL DEFAULT '{}'    -- Custom metadata
);

-- Indexes (critical for performance)
CREATE INDEX ix_tasks_state ON tasks (state);
CREATE INDEX ix_tasks_scheduled_at ON tasks (scheduled_at);
CREATE INDEX ix_tasks_locked_until ON tasks (locked_until);
CREATE INDEX ix_tasks_priority ON tasks (priority);
CREATE INDEX ix_tasks_name ON tasks (name);
"""

_COLUMNS: LiteralString = """
SELECT column_name, data_type FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = 'tasks' ORDER BY ordinal_position
"""


@pytest.mark.parametrize("printed", [SCHEMA_AS_CREATED, SUMMARY_EXACT_SCHEMA], ids=["schema", "summary"])
async def test_create_table(printed: LiteralString, psql: psycopg.Connection, postgres_url: str):
    """In an empty schema of its own. It has our columns in our order, up to the ones that we added; yet it is not our
    table, and is refused rather than used or changed."""
    psql.execute(printed)
    psql.commit()
    theirs = rows(psql, _COLUMNS)
    psql.commit()
    with pytest.raises(tasklib.SchemaMismatch, match="tasks"):
        await Engine(Config(database_url=postgres_url)).store()
    assert rows(psql, _COLUMNS) == theirs

    psql.execute("DROP TABLE tasks")
    psql.commit()
    engine = Engine(Config(database_url=postgres_url))
    await engine.store()
    await engine.close()

    zoned = [(name, kind.replace("without time zone", "with time zone")) for name, kind in theirs]
    assert rows(psql, _COLUMNS)[: len(theirs)] == zoned


async def test_the_five_indexes(engine: Engine, psql: psycopg.Connection):
    """We index otherwise; who wants these can have them beside ours."""
    psql.execute("""
CREATE INDEX ix_tasks_state ON tasks (state);           -- Filter by state (pending, running, etc.)
CREATE INDEX ix_tasks_scheduled_at ON tasks (scheduled_at);  -- Find tasks ready to execute
CREATE INDEX ix_tasks_locked_until ON tasks (locked_until);  -- Detect dead workers
CREATE INDEX ix_tasks_priority ON tasks (priority);     -- Sort by priority
CREATE INDEX ix_tasks_name ON tasks (name);             -- Filter by task name
    """)
    psql.commit()
    await engine.close()
    await engine.store()


# -- what the worker asks ----------------------------------------------------------------------------------------------


async def test_pickup_query_of_the_specification(engine: Engine, psql: psycopg.Connection):
    await submit("later@example.com")
    first = await submit("first@example.com", priority=5)
    found = rows(
        psql,
        "SELECT * FROM tasks WHERE state IN ('pending', 'failed') AND scheduled_at <= NOW() AND (locked_until IS NULL"
        " OR locked_until < NOW()) ORDER BY priority DESC, created_at ASC LIMIT 1 FOR UPDATE",
    )
    assert [row[0] for row in found] == [first]


async def test_pickup_query_of_the_worker_loop(engine: Engine, psql: psycopg.Connection):
    """`LIMIT concurrency - running_count`, with numbers."""
    ids = [await submit(f"{number}@example.com", priority=-number) for number in range(4)]
    found = rows(
        psql,
        """
        SELECT * FROM tasks
        WHERE state IN ('pending', 'failed')
        AND scheduled_at <= NOW()
        AND (locked_until IS NULL
              OR locked_until < NOW())
        ORDER BY priority DESC
        LIMIT 4 - 1
        FOR UPDATE
        """,
    )
    assert [row[0] for row in found] == ids[:3]


async def test_worker_query_of_the_schema(engine: Engine, psql: psycopg.Connection):
    await submit("low@example.com", priority=-1)
    high = await submit("high@example.com", priority=1)
    found = rows(
        psql,
        """
-- Worker uses this query every poll (efficient with indexes)
SELECT * FROM tasks
WHERE state IN ('pending', 'failed')
  AND scheduled_at <= NOW()
  AND (locked_until IS NULL OR locked_until < NOW())
ORDER BY priority DESC
LIMIT 1
FOR UPDATE;  -- PostgreSQL row lock
        """,
    )
    assert [row[0] for row in found] == [high]


async def test_worker_query_of_the_story(engine: Engine, psql: psycopg.Connection):
    task_id = await submit("user@example.com")
    found = rows(
        psql,
        """
SELECT * FROM tasks
WHERE state IN ('pending', 'failed')
  AND scheduled_at <= NOW()
  AND (locked_until IS NULL OR locked_until < NOW())
ORDER BY priority DESC, created_at ASC
LIMIT 1
FOR UPDATE;  -- Atomic lock
        """,
    )
    assert [row[0] for row in found] == [task_id]


async def test_a_row_locked_by_a_persons_query_is_left_alone_and_then_runs(engine: Engine, psql: psycopg.Connection):
    """ "Worker B polls, can't lock T1: skips T1, gets task T2": also where the other is somebody with psql."""
    locked = await submit("locked@example.com", priority=5)
    free = await submit("free@example.com")
    rows(psql, "SELECT * FROM tasks WHERE state = 'pending' ORDER BY priority DESC LIMIT 1 FOR UPDATE")

    await drain_async(engine, registry=registry)

    assert ((await engine.get_or_raise(locked)).state, (await engine.get_or_raise(free)).state) == (
        "pending",
        "completed",
    )
    psql.rollback()
    await drain_async(engine, registry=registry)
    assert (await engine.get_or_raise(locked)).state == "completed"


# -- cleanup -----------------------------------------------------------------------------------------------------------

ARCHIVE_COMPLETED: LiteralString = """
-- Archive completed tasks older than 30 days
DELETE FROM tasks
WHERE state = 'completed'
AND completed_at < NOW() - INTERVAL '30 days';
"""

CLEAN_UP_FAILED: LiteralString = """
-- Clean up failed tasks older than 90 days
DELETE FROM tasks
WHERE state = 'failed'
AND completed_at < NOW() - INTERVAL '90 days'
AND retry_count >= max_retries;
"""

BY_CRON: LiteralString = (
    "DELETE FROM tasks WHERE state='completed' AND completed_at < NOW() - INTERVAL '30 days';"  # after `psql -c`
)


async def finished_days_ago(engine: Engine, to: str, days: float) -> UUID:
    past = Engine(engine.config, clock_offset=-days * DAY)
    use_engine(past)
    task_id = await submit(to)
    await drain_async(past, registry=registry)
    await past.close()
    use_engine(engine)
    return task_id


@pytest.mark.parametrize("printed", [ARCHIVE_COMPLETED, BY_CRON], ids=["statement", "cron"])
async def test_archive_completed_tasks(printed: LiteralString, engine: Engine, psql: psycopg.Connection):
    old = await finished_days_ago(engine, "old@example.com", 31)
    young = await finished_days_ago(engine, "young@example.com", 29)
    failed = await finished_days_ago(engine, "broken", 31)

    psql.execute(printed)
    psql.commit()

    assert await engine.get(old) is None
    assert await engine.get(young) is not None
    assert await engine.get(failed) is not None
    counts = (await engine.stats())["send_email"]
    assert (counts.completed, counts.failed) == (1, 1)


async def test_clean_up_failed_tasks(engine: Engine, psql: psycopg.Connection):
    old = await finished_days_ago(engine, "broken", 91)
    young = await finished_days_ago(engine, "broken", 89)
    completed = await finished_days_ago(engine, "fine@example.com", 91)

    psql.execute(CLEAN_UP_FAILED)
    psql.commit()

    assert await engine.get(old) is None
    assert await engine.get(young) is not None
    assert await engine.get(completed) is not None
    counts = (await engine.stats())["send_email"]
    assert (counts.completed, counts.failed) == (1, 1)


# -- All in One Place --------------------------------------------------------------------------------------------------


async def test_all_pending_tasks(engine: Engine, psql: psycopg.Connection):
    await finished_days_ago(engine, "done@example.com", 0)
    task_id = await submit("user@example.com")
    found = rows(
        psql,
        """
-- All pending tasks
SELECT id, name FROM tasks WHERE state = 'pending';
        """,
    )
    assert found == [(task_id, "send_email")]


async def test_failed_tasks_for_alerts(engine: Engine, psql: psycopg.Connection):
    await finished_days_ago(engine, "broken long ago", 1)
    task_id = await finished_days_ago(engine, "broken", 0)
    found = rows(
        psql,
        """
-- Failed tasks (for alerts)
SELECT id, name, error FROM tasks WHERE state = 'failed' AND completed_at > NOW() - INTERVAL '1 hour';
        """,
    )
    assert [row[:2] for row in found] == [(task_id, "send_email")]
    assert "ValueError: Invalid email address" in found[0][2]


async def test_performance_metrics(engine: Engine, psql: psycopg.Connection):
    await submit("a@example.com")
    await submit("b@example.com")
    await process_image.submit_async("cat.png")
    await drain_async(engine, registry=registry)
    found = rows(
        psql,
        """
-- Performance metrics
SELECT name, COUNT(*), AVG(EXTRACT(EPOCH FROM (completed_at - started_at)))
FROM tasks WHERE state = 'completed'
GROUP BY name;
        """,
    )
    assert {(name, count) for name, count, _ in found} == {("send_email", 2), ("process_image", 1)}
    assert all(0 <= average < 60 for _, _, average in found)
