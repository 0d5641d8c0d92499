-- tasklib's schema, second step: what workers tell of their task types. To be applied after 001_add_tasks_table.sql.
-- The same as what `tasklib migrate` does, in one transaction; the Alembic form is 002_add_task_types.py.
--
--     psql --set ON_ERROR_STOP=1 --single-transaction --file 002_add_task_types.sql "$DATABASE_URL"
--
-- For a schema of its own (?schema=billing in tasklib's URL):  sed 's/public\./billing./g' 002_add_task_types.sql
--
-- To undo it:
--     DROP TABLE public.task_types;
--     ALTER TABLE public.task_workers DROP COLUMN queues;
--     DROP INDEX public.ix_tasks_retrying;
--     CREATE INDEX ix_tasks_failed ON public.tasks (state, (completed_at IS NULL), id NULLS FIRST) WHERE state IN ('failed', 'cancelled');
--     CREATE INDEX ix_tasks_odd ON public.tasks (id) WHERE CASE state WHEN 'pending' THEN completed_at IS NOT NULL WHEN 'running' THEN false WHEN 'completed' THEN completed_at IS NULL ELSE state NOT IN ('failed', 'cancelled') END;
--     DELETE FROM public.task_migrations WHERE version = 2;

-- What workers have told of their task types: for those who submit without the code.
CREATE TABLE public.task_types (
    name varchar NOT NULL PRIMARY KEY,
    options jsonb NOT NULL,
    schema jsonb,
    published_at timestamptz NOT NULL
);

-- The queues of a worker's types, which stood behind the names.
ALTER TABLE public.task_workers ADD COLUMN queues jsonb NOT NULL DEFAULT '{}';
UPDATE public.task_workers
SET queues = names[array_upper(names, 1)]::jsonb -> 'queues', names = names[1:array_upper(names, 1) - 1]
WHERE names[array_upper(names, 1)] LIKE '{"queues":%';

-- What waits for a retry. And what only somebody who edits rows can make, such as a state that tasklib does not know: lists
-- show that too. It takes the place of two that were larger.
CREATE INDEX ix_tasks_retrying ON public.tasks (id NULLS FIRST)
    WHERE completed_at IS NULL AND state NOT IN ('pending', 'running');
DROP INDEX public.ix_tasks_failed;
DROP INDEX public.ix_tasks_odd;

INSERT INTO public.task_migrations (version, name) VALUES (2, '0002_task_types');
