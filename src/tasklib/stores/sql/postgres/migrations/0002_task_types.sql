-- What workers have told of their task types: for those who submit without the code.
CREATE TABLE {schema}.task_types (
    name varchar NOT NULL PRIMARY KEY,
    options jsonb NOT NULL,
    schema jsonb,
    published_at timestamptz NOT NULL
);

-- The queues of a worker's types, which stood behind the names.
ALTER TABLE {schema}.task_workers ADD COLUMN queues jsonb NOT NULL DEFAULT '{}';
UPDATE {schema}.task_workers
SET queues = names[array_upper(names, 1)]::jsonb -> 'queues', names = names[1:array_upper(names, 1) - 1]
WHERE names[array_upper(names, 1)] LIKE '{"queues":%';

-- What waits for a retry. And what only somebody who edits rows can make, such as a state that tasklib does not know: lists
-- show that too. It takes the place of two that were larger.
CREATE INDEX ix_tasks_retrying ON {schema}.tasks (id NULLS FIRST)
    WHERE completed_at IS NULL AND state NOT IN ('pending', 'running');
DROP INDEX {schema}.ix_tasks_failed;
DROP INDEX {schema}.ix_tasks_odd;
