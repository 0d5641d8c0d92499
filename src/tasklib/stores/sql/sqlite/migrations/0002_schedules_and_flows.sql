-- What a task may have beside its record: null or zero, and in no index, unless it is used.
-- ALTER TABLE would read every row for each column. Rows end before columns that were added later, so this writes what it
-- would write: the text of the table, once.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - length(') STRICT')) || ',
    -- How many ends it still waits for, what it waits for, and the tasks that its own end releases.
    waits INTEGER NOT NULL DEFAULT 0,
    after TEXT,
    feeds TEXT,
    flow_id TEXT,
    -- Whose it is.
    key TEXT,
    -- No other of its type has this key. It is cleared once: at the start or at the end, as `unique_until` says.
    unique_key TEXT,
    unique_until TEXT,
    progress TEXT,
    expires_at TEXT
        CONSTRAINT "expires_at is written as 2026-01-31T12:00:00.000Z"
        CHECK (expires_at GLOB ''????-??-??T??:??:??.???Z''),
    -- Who ran the latest attempt, and for how long. `worker_id` is null when it is over.
    last_worker_id TEXT,
    run_ms INTEGER,
    -- The task that it repeats under an id of its own.
    copy_of TEXT
) STRICT'
WHERE type = 'table' AND name = 'tasks' AND substr(sql, -8) = ') STRICT';
PRAGMA writable_schema = RESET;
CREATE INDEX ix_tasks_flow_id ON tasks (flow_id, id) WHERE flow_id IS NOT NULL;
CREATE UNIQUE INDEX ix_tasks_unique_key ON tasks (name, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX ix_tasks_expires_at ON tasks (expires_at) WHERE expires_at IS NOT NULL AND completed_at IS NULL;

-- What a task remembers from one attempt to the next.
CREATE TABLE task_steps (
    task_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (task_id, name)
) STRICT, WITHOUT ROWID;

-- Pause, limits and turns of one key of a task type, as `task_controls` has them for the type.
CREATE TABLE task_keys (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    operator_rate REAL,
    default_rate REAL,
    concurrency INTEGER,
    tokens REAL NOT NULL DEFAULT 1,
    refilled_at TEXT,
    served_at TEXT,
    PRIMARY KEY (name, key)
) STRICT, WITHOUT ROWID;

-- Recurring tasks: when the next is due, what the code says of them, and what an operator says in its place.
CREATE TABLE task_schedules (
    name TEXT NOT NULL PRIMARY KEY,
    declared TEXT,
    operator TEXT,
    paused INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL,
    next_at TEXT,
    declared_at TEXT,
    code_at TEXT,
    runs TEXT NOT NULL DEFAULT '[]',
    fired INTEGER NOT NULL DEFAULT 0,
    missed INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_task_schedules_next_at ON task_schedules (next_at) WHERE next_at IS NOT NULL;

-- What workers have told of their task types: for those who submit without the code.
CREATE TABLE task_types (
    name TEXT NOT NULL PRIMARY KEY,
    options TEXT NOT NULL,
    schema TEXT,
    published_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The states of alert rules, one for the whole fleet. Under the empty name: when they were checked last.
CREATE TABLE task_alerts (
    name TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    since TEXT NOT NULL,
    text TEXT NOT NULL,
    fired_at TEXT,
    over_at TEXT,
    told INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    try_at TEXT,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The queues of a worker's types, which stood behind the names.
ALTER TABLE task_workers ADD COLUMN queues TEXT NOT NULL DEFAULT '{}';
UPDATE task_workers
SET queues = json_extract(json_extract(names, '$[#-1]'), '$.queues'), names = json_remove(names, '$[#-1]')
WHERE json_extract(names, '$[#-1]') LIKE '{"queues":%';

-- What processes add to the time since the machine started, which stood among the counts.
CREATE TABLE task_clocks (
    boot TEXT NOT NULL PRIMARY KEY,
    added_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO task_clocks (boot, added_ms) SELECT name, count FROM task_counts WHERE state = 'clock';
DELETE FROM task_counts WHERE state = 'clock';

-- The version of the application that a worker runs, and whether an operator asked it to finish and end.
ALTER TABLE task_workers ADD COLUMN version TEXT;
ALTER TABLE task_workers ADD COLUMN drain_requested_at TEXT;
ALTER TABLE task_workers ADD COLUMN drain_requested_by TEXT;

-- Who paused it, and when.
ALTER TABLE task_controls ADD COLUMN paused_by TEXT;
ALTER TABLE task_controls ADD COLUMN paused_at TEXT;

-- The mass action that an entry is a part of, and how many tasks a batch of it was done to.
ALTER TABLE task_audit ADD COLUMN bulk_id TEXT;
ALTER TABLE task_audit ADD COLUMN done INTEGER;
-- The batches of a mass action; and what people list: all but what mass actions did to each task.
CREATE INDEX ix_task_audit_bulk_id ON task_audit (bulk_id, number) WHERE bulk_id IS NOT NULL AND task_id IS NULL;
CREATE INDEX ix_task_audit_listed ON task_audit (number) WHERE bulk_id IS NULL OR task_id IS NULL;

-- What waits for a retry. And what only somebody who edits rows can make, such as a state that tasklib does not know: lists
-- show that too. It takes the place of two that were larger.
CREATE INDEX ix_tasks_retrying ON tasks (id) WHERE completed_at IS NULL AND state NOT IN ('pending', 'running');
DROP INDEX ix_tasks_failed;
DROP INDEX ix_tasks_odd;

-- What failed for good or was cancelled, by when it ended: "what failed in the last hour". Completed tasks are not in it, so
-- that only failures pay for it. With the state, so that the index alone says how far a list looks.
CREATE INDEX ix_tasks_ended ON tasks (completed_at, id, state) WHERE completed_at IS NOT NULL AND state <> 'completed';
