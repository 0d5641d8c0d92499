-- What a task may have beside its record: null or zero, and in no index, unless it is used.
ALTER TABLE {schema}.tasks
    -- How many ends it still waits for, what it waits for, and the tasks that its own end releases.
    ADD COLUMN waits integer NOT NULL DEFAULT 0,
    ADD COLUMN after jsonb,
    ADD COLUMN feeds uuid[],
    ADD COLUMN flow_id uuid,
    -- Whose it is.
    ADD COLUMN key varchar,
    -- No other of its type has this key. It is cleared once: at the start or at the end, as `unique_until` says.
    ADD COLUMN unique_key varchar,
    ADD COLUMN unique_until varchar,
    ADD COLUMN progress jsonb,
    ADD COLUMN expires_at timestamptz,
    -- Who ran the latest attempt, and for how long. `worker_id` is null when it is over.
    ADD COLUMN last_worker_id varchar,
    ADD COLUMN run_ms integer,
    -- The task that it repeats under an id of its own.
    ADD COLUMN copy_of uuid;
CREATE INDEX ix_tasks_flow_id ON {schema}.tasks (flow_id, id) WHERE flow_id IS NOT NULL;
CREATE UNIQUE INDEX ix_tasks_unique_key ON {schema}.tasks (name, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX ix_tasks_expires_at ON {schema}.tasks (expires_at) WHERE expires_at IS NOT NULL AND completed_at IS NULL;

-- What a task remembers from one attempt to the next.
CREATE TABLE {schema}.task_steps (
    task_id uuid NOT NULL,
    name varchar NOT NULL,
    value jsonb NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (task_id, name)
);

-- Pause, limits and turns of one key of a task type, as `task_controls` has them for the type.
CREATE TABLE {schema}.task_keys (
    name varchar NOT NULL,
    key varchar NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    operator_rate double precision,
    default_rate double precision,
    concurrency integer,
    tokens double precision NOT NULL DEFAULT 1,
    refilled_at timestamptz NOT NULL DEFAULT now(),
    served_at timestamptz,
    PRIMARY KEY (name, key)
) WITH (fillfactor = 50);

-- Recurring tasks: when the next is due, what the code says of them, and what an operator says in its place.
CREATE TABLE {schema}.task_schedules (
    name varchar NOT NULL PRIMARY KEY,
    declared jsonb,
    operator jsonb,
    paused boolean NOT NULL DEFAULT false,
    version integer NOT NULL,
    next_at timestamptz,
    declared_at timestamptz,
    code_at timestamptz,
    runs jsonb NOT NULL DEFAULT '[]',
    fired bigint NOT NULL DEFAULT 0,
    missed bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX ix_task_schedules_next_at ON {schema}.task_schedules (next_at) WHERE next_at IS NOT NULL;

-- What workers have told of their task types: for those who submit without the code.
CREATE TABLE {schema}.task_types (
    name varchar NOT NULL PRIMARY KEY,
    options jsonb NOT NULL,
    schema jsonb,
    published_at timestamptz NOT NULL
);

-- The states of alert rules, one for the whole fleet. Under the empty name: when they were checked last.
CREATE TABLE {schema}.task_alerts (
    name varchar NOT NULL PRIMARY KEY,
    state varchar NOT NULL,
    since timestamptz NOT NULL,
    text text NOT NULL,
    fired_at timestamptz,
    over_at timestamptz,
    told boolean NOT NULL,
    tries integer NOT NULL,
    try_at timestamptz,
    version integer NOT NULL
);

-- The queues of a worker's types, which stood behind the names.
ALTER TABLE {schema}.task_workers ADD COLUMN queues jsonb NOT NULL DEFAULT '{}';
UPDATE {schema}.task_workers
SET queues = names[array_upper(names, 1)]::jsonb -> 'queues', names = names[1:array_upper(names, 1) - 1]
WHERE names[array_upper(names, 1)] LIKE '{"queues":%';

-- The version of the application that a worker runs, and whether an operator asked it to finish and end.
ALTER TABLE {schema}.task_workers ADD COLUMN version varchar;
ALTER TABLE {schema}.task_workers ADD COLUMN drain_requested_at timestamptz;
ALTER TABLE {schema}.task_workers ADD COLUMN drain_requested_by varchar;

-- Who paused it, and when.
ALTER TABLE {schema}.task_controls ADD COLUMN paused_by varchar;
ALTER TABLE {schema}.task_controls ADD COLUMN paused_at timestamptz;

-- The mass action that an entry is a part of, and how many tasks a batch of it was done to.
ALTER TABLE {schema}.task_audit ADD COLUMN bulk_id uuid;
ALTER TABLE {schema}.task_audit ADD COLUMN done bigint;
-- The batches of a mass action; and what people list: all but what mass actions did to each task.
CREATE INDEX ix_task_audit_bulk_id ON {schema}.task_audit (bulk_id, number)
    WHERE bulk_id IS NOT NULL AND task_id IS NULL;
CREATE INDEX ix_task_audit_listed ON {schema}.task_audit (number) WHERE bulk_id IS NULL OR task_id IS NULL;

-- What waits for a retry. And what only somebody who edits rows can make, such as a state that tasklib does not know: lists
-- show that too. It takes the place of two that were larger.
CREATE INDEX ix_tasks_retrying ON {schema}.tasks (id NULLS FIRST)
    WHERE completed_at IS NULL AND state NOT IN ('pending', 'running');
DROP INDEX {schema}.ix_tasks_failed;
DROP INDEX {schema}.ix_tasks_odd;

-- What failed for good or was cancelled, by when it ended: "what failed in the last hour". Completed tasks are not in it, so
-- that only failures pay for it.
CREATE INDEX ix_tasks_ended ON {schema}.tasks (completed_at, id)
    WHERE completed_at IS NOT NULL AND state <> 'completed';
