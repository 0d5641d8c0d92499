-- Operators, pruning, and the counters behind the charts.

-- name: request_cancel
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1
SET cancel_requested_at = coalesce(cancel_requested_at, {now}), updated_at = {now}
WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'running'
RETURNING id

-- name: delete
-- The counters follow by the table's trigger.
WITH {batch}
DELETE FROM tasks AS t INDEXED BY sqlite_autoindex_tasks_1
WHERE id IN (SELECT id FROM batch) AND completed_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM batch AS b WHERE b.id = t.id AND b.version = t.version)
    AND {not_awaited}
RETURNING id, version

-- name: not_awaited
-- What others wait for goes when they are over, and only with `fed`.
CASE WHEN t.feeds IS NULL THEN true WHEN NOT :fed THEN false ELSE NOT EXISTS (
    SELECT 1 FROM json_each(iif(json_valid(t.feeds), t.feeds, '[]')) AS f
    CROSS JOIN tasks AS c INDEXED BY sqlite_autoindex_tasks_1 ON c.id = f.value
    WHERE c.completed_at IS NULL
) END

-- name: sample_lock
-- A write holds the only lock there is.
SELECT 1

-- name: compact_lock
-- A write holds the only lock there is.
SELECT 1

-- name: take_doubled_counts
-- The primary key allows none.
DELETE FROM task_counts WHERE false RETURNING {columns}

-- name: take_minutes
DELETE FROM task_counts
WHERE minute > '1970-01-01T00:00:00.000Z' AND minute < strftime('%Y-%m-%dT%H:00:00.000Z', 'now', :offset, :kept)
    AND substr(minute, 15, 2) <> '00'
RETURNING {columns}

-- name: add_counts
WITH {batch}
INSERT INTO task_counts (minute, name, state, bucket, count, run_ms)
SELECT minute, name, state, bucket, count, run_ms FROM batch
WHERE true
ON CONFLICT (minute, name, state, bucket)
DO UPDATE SET
    count = iif(state IN ('backlog', 'level'), max(count, excluded.count), count + excluded.count),
    run_ms = iif(state IN ('backlog', 'level'), max(run_ms, excluded.run_ms), run_ms + excluded.run_ms)
