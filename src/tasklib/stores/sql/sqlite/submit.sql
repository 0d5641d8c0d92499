-- Submit.

-- name: new_rows
-- What all inserts have in common.
INSERT INTO tasks ({new_columns}, state, scheduled_at, created_at, updated_at, ready)
SELECT {new_columns}, 'pending', due, now, now, due <= now
FROM (
    SELECT *, coalesce(
        run_at, iif(delay_seconds, strftime('%Y-%m-%dT%H:%M:%fZ', now, format('%+.3f seconds', delay_seconds)), now)
    ) AS due
    FROM batch CROSS JOIN (SELECT {now} AS now)
)

-- name: workers_told
-- That is left to the driver.
true

-- name: insert_keyed
WITH {batch}
{new_rows}
WHERE true
-- Of a key alone: what another unique index keeps out is an error, with the name of that index.
ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING {columns}

-- name: find_keys
SELECT {columns} FROM tasks WHERE idempotency_key IN (SELECT value FROM json_each(:keys))

-- name: lock_unique
SELECT {columns}
FROM (
    SELECT n.value AS wanted_name, k.value AS wanted_key
    FROM json_each(:names) AS n CROSS JOIN json_each(:keys) AS k ON k.key = n.key
) CROSS JOIN tasks INDEXED BY ix_tasks_unique_key ON name = wanted_name AND unique_key = wanted_key

-- name: replace_unique
-- What waits for a retry keeps its time.
WITH {batch}
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET
    {replaced},
    updated_at = b.now,
    version = tasks.version + 1,
    (scheduled_at, ready) = (
        SELECT iif(tasks.state = 'pending', due, tasks.scheduled_at), iif(tasks.state = 'pending', due <= b.now, tasks.ready)
        FROM (SELECT min(b.due, coalesce(
            strftime('%Y-%m-%dT%H:%M:%fZ', tasks.created_at, format('%+.3f seconds', b.at_most)), b.due
        )) AS due)
    )
FROM (
    SELECT *, coalesce(
        run_at, iif(delay_seconds, strftime('%Y-%m-%dT%H:%M:%fZ', now, format('%+.3f seconds', delay_seconds)), now)
    ) AS due
    FROM batch CROSS JOIN (SELECT {now} AS now)
) AS b
WHERE tasks.id = b.id AND tasks.state IN ('pending', 'failed') AND tasks.completed_at IS NULL
RETURNING {columns}
