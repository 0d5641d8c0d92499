-- Submit.

-- name: new_rows
-- What both inserts have in common.
INSERT INTO tasks ({new_columns}, state, scheduled_at, created_at, updated_at, ready)
SELECT {new_columns}, 'pending', due, now, now, due <= now
FROM (
    SELECT *, coalesce(
        run_at, iif(delay_seconds, strftime('%Y-%m-%dT%H:%M:%fZ', now, format('%+.3f seconds', delay_seconds)), now)
    ) AS due
    FROM batch CROSS JOIN (SELECT {now} AS now)
)

-- name: insert
WITH {batch}
{new_rows}

-- name: insert_dated
WITH {batch}
{new_rows}
RETURNING {columns}

-- name: insert_keyed
WITH {batch}
{new_rows}
WHERE true
-- Of a key alone: what another unique index keeps out is an error, with the name of that index.
ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING {columns}

-- name: find_keys
SELECT {columns} FROM tasks WHERE idempotency_key IN (SELECT value FROM json_each(:keys))
