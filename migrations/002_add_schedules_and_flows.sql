-- tasklib's schema, second step: what schedules, flows and unique tasks need, and what workers tell of their task types.
-- To be applied after 001_add_tasks_table.sql.
-- The same as what `tasklib migrate` does, in one transaction; the Alembic form is 002_add_schedules_and_flows.py.
--
--     psql --set ON_ERROR_STOP=1 --single-transaction --file 002_add_schedules_and_flows.sql "$DATABASE_URL"
--
-- For a schema of its own (?schema=billing in tasklib's URL):  sed 's/public\./billing./g' 002_add_schedules_and_flows.sql
--
-- To undo it:
--     DROP TABLE public.task_steps, public.task_keys, public.task_schedules, public.task_types, public.task_alerts;
--     ALTER TABLE public.task_workers DROP COLUMN queues, DROP COLUMN version, DROP COLUMN drain_requested_at;
--     ALTER TABLE public.task_workers DROP COLUMN drain_requested_by;
--     ALTER TABLE public.task_controls DROP COLUMN paused_by, DROP COLUMN paused_at;
--     ALTER TABLE public.task_audit DROP COLUMN bulk_id, DROP COLUMN done;
--     ALTER TABLE public.tasks DROP COLUMN waits, DROP COLUMN after, DROP COLUMN feeds, DROP COLUMN flow_id;
--     ALTER TABLE public.tasks DROP COLUMN key, DROP COLUMN unique_key, DROP COLUMN unique_until, DROP COLUMN progress;
--     ALTER TABLE public.tasks DROP COLUMN expires_at, DROP COLUMN last_worker_id, DROP COLUMN run_ms, DROP COLUMN copy_of;
--     DROP INDEX public.ix_tasks_ended, public.ix_tasks_retrying;
--     CREATE INDEX ix_tasks_failed ON public.tasks (state, (completed_at IS NULL), id NULLS FIRST) WHERE state IN ('failed', 'cancelled');
--     CREATE INDEX ix_tasks_odd ON public.tasks (id) WHERE CASE state WHEN 'pending' THEN completed_at IS NOT NULL WHEN 'running' THEN false WHEN 'completed' THEN completed_at IS NULL ELSE state NOT IN ('failed', 'cancelled') END;
--     DELETE FROM public.task_migrations WHERE version = 2;

-- What a task may have beside its record: null or zero, and in no index, unless it is used.
ALTER TABLE public.tasks
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
CREATE INDEX ix_tasks_flow_id ON public.tasks (flow_id, id) WHERE flow_id IS NOT NULL;
CREATE UNIQUE INDEX ix_tasks_unique_key ON public.tasks (name, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX ix_tasks_expires_at ON public.tasks (expires_at) WHERE expires_at IS NOT NULL AND completed_at IS NULL;

-- What a task remembers from one attempt to the next.
CREATE TABLE public.task_steps (
    task_id uuid NOT NULL,
    name varchar NOT NULL,
    value jsonb NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (task_id, name)
);

-- Pause, limits and turns of one key of a task type, as `task_controls` has them for the type.
CREATE TABLE public.task_keys (
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
CREATE TABLE public.task_schedules (
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
CREATE INDEX ix_task_schedules_next_at ON public.task_schedules (next_at) WHERE next_at IS NOT NULL;

-- What workers have told of their task types: for those who submit without the code.
CREATE TABLE public.task_types (
    name varchar NOT NULL PRIMARY KEY,
    options jsonb NOT NULL,
    schema jsonb,
    published_at timestamptz NOT NULL
);

-- The states of alert rules, one for the whole fleet. Under the empty name: when they were checked last.
CREATE TABLE public.task_alerts (
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
ALTER TABLE public.task_workers ADD COLUMN queues jsonb NOT NULL DEFAULT '{}';
UPDATE public.task_workers
SET queues = names[array_upper(names, 1)]::jsonb -> 'queues', names = names[1:array_upper(names, 1) - 1]
WHERE names[array_upper(names, 1)] LIKE '{"queues":%';

-- The version of the application that a worker runs, and whether an operator asked it to finish and end.
ALTER TABLE public.task_workers ADD COLUMN version varchar;
ALTER TABLE public.task_workers ADD COLUMN drain_requested_at timestamptz;
ALTER TABLE public.task_workers ADD COLUMN drain_requested_by varchar;

-- Who paused it, and when.
ALTER TABLE public.task_controls ADD COLUMN paused_by varchar;
ALTER TABLE public.task_controls ADD COLUMN paused_at timestamptz;

-- The mass action that an entry is a part of, and how many tasks a batch of it was done to.
ALTER TABLE public.task_audit ADD COLUMN bulk_id uuid;
ALTER TABLE public.task_audit ADD COLUMN done bigint;
-- The batches of a mass action; and what people list: all but what mass actions did to each task.
CREATE INDEX ix_task_audit_bulk_id ON public.task_audit (bulk_id, number)
    WHERE bulk_id IS NOT NULL AND task_id IS NULL;
CREATE INDEX ix_task_audit_listed ON public.task_audit (number) WHERE bulk_id IS NULL OR task_id IS NULL;

-- What waits for a retry. And what only somebody who edits rows can make, such as a state that tasklib does not know: lists
-- show that too. It takes the place of two that were larger.
CREATE INDEX ix_tasks_retrying ON public.tasks (id NULLS FIRST)
    WHERE completed_at IS NULL AND state NOT IN ('pending', 'running');
DROP INDEX public.ix_tasks_failed;
DROP INDEX public.ix_tasks_odd;

-- What failed for good or was cancelled, by when it ended: "what failed in the last hour". Completed tasks are not in it, so
-- that only failures pay for it.
CREATE INDEX ix_tasks_ended ON public.tasks (completed_at, id)
    WHERE completed_at IS NOT NULL AND state <> 'completed';

INSERT INTO public.task_migrations (version, name) VALUES (2, '0002_schedules_and_flows');
