-- What workers have told of their task types: for those who submit without the code.
CREATE TABLE task_types (
    name TEXT NOT NULL PRIMARY KEY,
    options TEXT NOT NULL,
    schema TEXT,
    published_at TEXT NOT NULL
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

-- What waits for a retry. And what only somebody who edits rows can make, such as a state that tasklib does not know: lists
-- show that too. It takes the place of two that were larger.
CREATE INDEX ix_tasks_retrying ON tasks (id) WHERE completed_at IS NULL AND state NOT IN ('pending', 'running');
DROP INDEX ix_tasks_failed;
DROP INDEX ix_tasks_odd;
