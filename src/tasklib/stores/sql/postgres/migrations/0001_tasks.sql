-- The record: one row holds everything about a task. See docs for the meaning of each column.
CREATE TABLE {schema}.tasks (
    -- Time-ordered (UUIDv7): tasklib sends its own; the default serves rows inserted by hand.
    id uuid NOT NULL PRIMARY KEY DEFAULT (
        lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(random()::text), 1, 3)
        || '8' || substr(md5(random()::text || clock_timestamp()::text), 1, 15)
    )::uuid,
    name varchar NOT NULL,
    state varchar NOT NULL DEFAULT 'pending',
    scheduled_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    completed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    args jsonb NOT NULL DEFAULT '{}',
    kwargs jsonb NOT NULL DEFAULT '{}',
    result jsonb,
    error text,
    retry_count integer NOT NULL DEFAULT 0,
    max_retries integer NOT NULL DEFAULT 3,
    next_retry_at timestamptz,
    worker_id varchar,
    locked_until timestamptz,
    timeout_seconds integer,
    priority integer NOT NULL DEFAULT 0,
    tags jsonb NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now(),
    cancel_requested_at timestamptz,
    version integer NOT NULL DEFAULT 0,
    idempotency_key varchar,
    retry_policy jsonb,
    history jsonb NOT NULL DEFAULT '[]',
    -- Internal: nobody needs these to read a task.
    ready boolean NOT NULL DEFAULT false,
    awaited boolean NOT NULL DEFAULT false,
    trace text
) WITH (
    -- Each task is updated twice, soon after its insert: room for that on the page, and early vacuums of the dead rows.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 1
);

-- What can be claimed, in the order of the claim. Future and finished rows are not in it.
CREATE INDEX ix_tasks_ready ON {schema}.tasks (name, priority DESC, created_at, id) WHERE ready;
-- What waits for its time: promotion walks it from the front; the others are for lists.
CREATE INDEX ix_tasks_waiting ON {schema}.tasks ((coalesce(next_retry_at, scheduled_at)), name, state, id)
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL;
-- What runs: permits of concurrency limits, lost leases, the claims of one worker.
CREATE INDEX ix_tasks_running ON {schema}.tasks (name, worker_id) WHERE state = 'running';
CREATE UNIQUE INDEX ix_tasks_idempotency_key ON {schema}.tasks (idempotency_key) WHERE idempotency_key IS NOT NULL;
-- What is finished, by type and in the order of the ids: lists of people. NULLS FIRST, here and below, so that the primary key
-- does not have this order too: the planner is not to choose between them.
CREATE INDEX ix_tasks_finished ON {schema}.tasks (name, state, id NULLS FIRST) WHERE completed_at IS NOT NULL;
-- Failures and cancellations, final ones and those that wait for a retry apart: the few that people look for.
CREATE INDEX ix_tasks_failed ON {schema}.tasks (state, (completed_at IS NULL), id NULLS FIRST)
    WHERE state IN ('failed', 'cancelled');
-- What only somebody with psql can make. Always empty otherwise; lists show what is in it.
CREATE INDEX ix_tasks_odd ON {schema}.tasks (id) WHERE CASE state
    WHEN 'pending' THEN completed_at IS NOT NULL
    WHEN 'running' THEN false
    WHEN 'completed' THEN completed_at IS NULL
    ELSE state NOT IN ('failed', 'cancelled')
END;

-- Live workers, by heartbeat.
CREATE TABLE {schema}.task_workers (
    id varchar NOT NULL PRIMARY KEY,
    hostname varchar NOT NULL,
    pid integer NOT NULL,
    names varchar[] NOT NULL,
    concurrency integer NOT NULL,
    running integer NOT NULL,
    listening boolean NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    stopped_at timestamptz
) WITH (fillfactor = 50);

-- Pause and limits of a task type; the empty name is for all. `tokens` and `refilled_at` are the rate limit's bucket.
CREATE TABLE {schema}.task_controls (
    name varchar NOT NULL PRIMARY KEY,
    paused boolean NOT NULL DEFAULT false,
    operator_rate double precision,
    default_rate double precision,
    concurrency integer,
    tokens double precision NOT NULL DEFAULT 1,
    refilled_at timestamptz NOT NULL DEFAULT now(),
    rate double precision GENERATED ALWAYS AS (nullif(coalesce(operator_rate, default_rate), 0)) STORED,
    limited boolean GENERATED ALWAYS AS (
        nullif(coalesce(operator_rate, default_rate), 0) IS NOT NULL OR concurrency IS NOT NULL
    ) STORED
) WITH (fillfactor = 50);

-- Append-only roll-up of outcomes, merged by housekeeping. The minute 1970-01-01 holds what no chart shows any more,
-- and what left the table. Sums by name and state are exact.
CREATE TABLE {schema}.task_counts (
    minute timestamptz NOT NULL,
    name varchar NOT NULL,
    state varchar NOT NULL,
    bucket smallint NOT NULL,
    count bigint NOT NULL,
    run_ms bigint NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0.1,
    autovacuum_vacuum_threshold = 5000
);
CREATE INDEX ix_task_counts_minute ON {schema}.task_counts (minute);

-- Keys to the REST API; only hashes of them.
CREATE TABLE {schema}.task_tokens (
    id varchar NOT NULL PRIMARY KEY,
    label varchar NOT NULL,
    role varchar NOT NULL,
    digest varchar NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);

-- Who retried, cancelled, deleted, paused or changed a limit.
CREATE TABLE {schema}.task_audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    actor varchar NOT NULL,
    action varchar NOT NULL,
    task_id uuid,
    name varchar,
    detail jsonb NOT NULL
);
CREATE INDEX ix_task_audit_task_id ON {schema}.task_audit (task_id) WHERE task_id IS NOT NULL;

-- Marks the schema as tasklib's.
CREATE TABLE {schema}.task_migrations (
    version integer NOT NULL PRIMARY KEY,
    name varchar NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- Finished tasks that are deleted, by whomever, leave the counts.
CREATE FUNCTION {schema}.task_counts_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
    SELECT 'epoch', name, state, -1, -count(*), 0
    FROM gone
    WHERE completed_at IS NOT NULL AND state IN ('completed', 'failed', 'cancelled')
    GROUP BY name, state;
    RETURN NULL;
END
$$;
CREATE TRIGGER task_counts_deleted AFTER DELETE ON {schema}.tasks
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.task_counts_deleted();

CREATE FUNCTION {schema}.task_counts_truncated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
    SELECT 'epoch', name, state, -1, -sum(count), 0
    FROM {schema}.task_counts
    WHERE state IN ('completed', 'failed', 'cancelled')
    GROUP BY name, state
    HAVING sum(count) <> 0;
    RETURN NULL;
END
$$;
CREATE TRIGGER task_counts_truncated AFTER TRUNCATE ON {schema}.tasks
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.task_counts_truncated();
