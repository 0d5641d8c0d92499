-- Times are text in one form, 2026-01-31T12:00:00.000Z, so that they sort as they read. JSON is text.
-- To change a time by hand:  strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+10 minutes')
CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY
        CONSTRAINT "id is a UUID in lower case with hyphens"
        CHECK (id GLOB '????????-????-????-????-????????????' AND id NOT GLOB '*[^0-9a-f-]*'),
    name TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    scheduled_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
        CONSTRAINT "scheduled_at is written as 2026-01-31T12:00:00.000Z"
        CHECK (scheduled_at GLOB '????-??-??T??:??:??.???Z'),
    started_at TEXT,
    completed_at TEXT
        CONSTRAINT "completed_at is written as 2026-01-31T12:00:00.000Z"
        CHECK (completed_at GLOB '????-??-??T??:??:??.???Z'),
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    args TEXT NOT NULL DEFAULT '{}',
    kwargs TEXT NOT NULL CONSTRAINT "kwargs is JSON" CHECK (json_valid(kwargs)),
    result TEXT,
    error TEXT,
    retry_count INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL DEFAULT 3,
    next_retry_at TEXT
        CONSTRAINT "next_retry_at is written as 2026-01-31T12:00:00.000Z"
        CHECK (next_retry_at GLOB '????-??-??T??:??:??.???Z'),
    worker_id TEXT,
    locked_until TEXT
        CONSTRAINT "locked_until is written as 2026-01-31T12:00:00.000Z"
        CHECK (locked_until GLOB '????-??-??T??:??:??.???Z'),
    timeout_seconds INTEGER,
    priority INTEGER NOT NULL DEFAULT 0,
    tags TEXT NOT NULL DEFAULT '{}' CONSTRAINT "tags is JSON" CHECK (json_valid(tags)),
    updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    cancel_requested_at TEXT,
    version INTEGER NOT NULL DEFAULT 0,
    idempotency_key TEXT,
    retry_policy TEXT,
    history TEXT NOT NULL DEFAULT '[]',
    -- For the claim: due and claimable. Maintained by tasklib; a row edited by hand is found without it.
    ready INTEGER NOT NULL DEFAULT 0,
    -- Somebody waits for the end of this task.
    awaited INTEGER NOT NULL DEFAULT 0,
    trace TEXT
) STRICT;

-- A claim goes by the first four columns; the others let the figures be counted from the index alone.
CREATE INDEX ix_tasks_ready
    ON tasks (name, priority DESC, created_at, id, state, coalesce(next_retry_at, scheduled_at))
    WHERE ready = 1;

-- Promotion goes by the due time; the others as above.
CREATE INDEX ix_tasks_waiting ON tasks (coalesce(next_retry_at, scheduled_at), name, state, id)
    WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL;

CREATE INDEX ix_tasks_running ON tasks (name, worker_id) WHERE state = 'running';

CREATE UNIQUE INDEX ix_tasks_idempotency_key ON tasks (idempotency_key) WHERE idempotency_key IS NOT NULL;

-- What is finished, by type and in the order of the ids: lists of people.
CREATE INDEX ix_tasks_finished ON tasks (name, state, id) WHERE completed_at IS NOT NULL;

-- Failures and cancellations, final ones and those that wait for a retry apart: the few that people look for.
CREATE INDEX ix_tasks_failed ON tasks (state, (completed_at IS NULL), id) WHERE state IN ('failed', 'cancelled');

-- What only somebody who edits rows can make. Always empty otherwise; lists show what is in it.
-- No list here has more than two members: SQLite would build a table of a longer one each time it writes a row.
CREATE INDEX ix_tasks_odd ON tasks (id) WHERE CASE state
    WHEN 'pending' THEN completed_at IS NOT NULL OR ready NOT IN (0, 1)
    WHEN 'running' THEN false
    WHEN 'completed' THEN completed_at IS NULL
    ELSE state NOT IN ('failed', 'cancelled')
END;

CREATE TABLE task_workers (
    id TEXT NOT NULL PRIMARY KEY,
    hostname TEXT NOT NULL,
    pid INTEGER NOT NULL,
    names TEXT NOT NULL,
    concurrency INTEGER NOT NULL,
    running INTEGER NOT NULL,
    listening INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    stopped_at TEXT
) STRICT, WITHOUT ROWID;

-- The row with the empty name is for all types.
CREATE TABLE task_controls (
    name TEXT NOT NULL PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0,
    operator_rate REAL,
    default_rate REAL,
    concurrency INTEGER,
    tokens REAL,
    refilled_at TEXT
) STRICT, WITHOUT ROWID;

-- What finished, by minute. Minutes long past are merged; 1970-01-01T00:00:00.000Z holds what has no time any more.
CREATE TABLE task_counts (
    minute TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    run_ms INTEGER NOT NULL,
    PRIMARY KEY (minute, name, state, bucket)
) STRICT, WITHOUT ROWID;

-- Keys to the REST API; only hashes of them.
CREATE TABLE task_tokens (
    id TEXT NOT NULL PRIMARY KEY,
    label TEXT NOT NULL,
    role TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;

-- Who retried, cancelled, deleted, paused or changed a limit.
CREATE TABLE task_audit (
    number INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    task_id TEXT,
    name TEXT,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX ix_task_audit_task_id ON task_audit (task_id) WHERE task_id IS NOT NULL;

-- Keeps the totals exact, whoever deletes.
CREATE TRIGGER task_deleted AFTER DELETE ON tasks
WHEN OLD.completed_at IS NOT NULL AND OLD.state IN ('completed', 'failed', 'cancelled')
BEGIN
    INSERT INTO task_counts (minute, name, state, bucket, count, run_ms)
    VALUES ('1970-01-01T00:00:00.000Z', OLD.name, OLD.state, -1, -1, 0)
    ON CONFLICT (minute, name, state, bucket) DO UPDATE SET count = count - 1;
END;

-- Marks the database as tasklib's.
CREATE TABLE task_migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;
