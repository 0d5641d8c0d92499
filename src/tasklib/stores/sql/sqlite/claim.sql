-- Claim: one name or several in two or three statements, since an UPDATE would give its rows one by one.

-- name: survey
-- What a claim has to know: the time, also as a number of days, the earliest due time of what is not ready yet, which names
-- are paused or limited, and which of the wanted ones have anything ready.
WITH clock (now) AS MATERIALIZED (SELECT {now})
SELECT
    now,
    julianday(now),
    (SELECT coalesce(next_retry_at, scheduled_at) FROM tasks INDEXED BY ix_tasks_waiting
     WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL
     ORDER BY coalesce(next_retry_at, scheduled_at) LIMIT 1),
    (SELECT json_group_array(name) FROM task_controls
     WHERE paused OR concurrency IS NOT NULL OR coalesce(operator_rate, default_rate, 0) <> 0),
    (SELECT json_group_array(value) FROM json_each(:names)
     WHERE EXISTS (SELECT 1 FROM tasks INDEXED BY ix_tasks_ready WHERE ready = 1 AND name = value))
FROM clock

-- name: promote
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET ready = 1 WHERE id IN (
    SELECT id FROM tasks INDEXED BY ix_tasks_waiting
    WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL
        AND coalesce(next_retry_at, scheduled_at) <= {now}
    ORDER BY coalesce(next_retry_at, scheduled_at)
    LIMIT 1000
)

-- name: demote
-- Among the first thousand of each name, those that somebody edited while they were ready.
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET ready = 0 WHERE id IN (
    SELECT t.id
    FROM json_each(:names) AS wanted
    CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id IN (
        SELECT id FROM tasks INDEXED BY ix_tasks_ready
        WHERE ready = 1 AND name = wanted.value
        ORDER BY priority DESC, created_at, id
        LIMIT 1000
    )
    WHERE NOT (
        t.state IN ('pending', 'failed') AND t.completed_at IS NULL
        AND coalesce(t.next_retry_at, t.scheduled_at) <= {now}
    )
)

-- name: pick
-- Of one name, as they will be when they are claimed.
SELECT {columns} FROM tasks INDEXED BY ix_tasks_ready
WHERE ready = 1 AND name = :name
ORDER BY priority DESC, created_at, id
LIMIT :n

-- name: rank
-- The first n of each of several names, without their contents.
SELECT -t.priority AS rank, t.created_at, t.id, t.name
FROM json_each(:names) AS wanted
CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id IN (
    SELECT id FROM tasks INDEXED BY ix_tasks_ready
    WHERE ready = 1 AND name = wanted.value
    ORDER BY priority DESC, created_at, id
    LIMIT :n
)

-- name: pick_ranked
SELECT {columns}
FROM (SELECT value AS picked FROM json_each(:ids))
CROSS JOIN tasks INDEXED BY sqlite_autoindex_tasks_1 ON tasks.id = picked

-- name: mark_claimed
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET
    state = 'running',
    worker_id = :worker_id,
    locked_until = {lease_end},
    started_at = :now,
    updated_at = :now,
    next_retry_at = NULL,
    cancel_requested_at = NULL,
    ready = 0,
    unique_key = iif(unique_until <> 'started', unique_key, NULL),
    version = version + 1
WHERE id IN (SELECT value FROM json_each(:ids))
