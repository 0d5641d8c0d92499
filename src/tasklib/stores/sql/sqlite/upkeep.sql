-- Operators, pruning, and the counters behind the charts.

-- name: request_cancel
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1
SET cancel_requested_at = coalesce(cancel_requested_at, {now}), updated_at = {now}
WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'running'
RETURNING id

-- name: delete
-- The counters follow by the table's trigger.
WITH {batch}
DELETE FROM tasks INDEXED BY sqlite_autoindex_tasks_1
WHERE id IN (SELECT id FROM batch) AND completed_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM batch AS b WHERE b.id = tasks.id AND b.version = tasks.version)
RETURNING id, version

-- name: existing
SELECT id FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE id IN (SELECT value FROM json_each(:ids))

-- name: prunable
-- In one stretch of the primary key.
SELECT id FROM (
    SELECT id, state, completed_at FROM tasks INDEXED BY sqlite_autoindex_tasks_1
    WHERE id >= :start ORDER BY id LIMIT :stretch
)
WHERE state IN (SELECT value FROM json_each(:states)) AND completed_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset, :age)
ORDER BY id
LIMIT :limit

-- name: stretch_end
SELECT id FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE id >= :start ORDER BY id LIMIT 1 OFFSET :stretch - 1

-- name: prune
DELETE FROM tasks INDEXED BY sqlite_autoindex_tasks_1
WHERE id IN (SELECT value FROM json_each(:ids)) AND state IN (SELECT value FROM json_each(:states))
    AND completed_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset, :age)
RETURNING state

-- name: count_old
SELECT count(*) FROM tasks WHERE state IN (SELECT value FROM json_each(:states)) AND completed_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset, :age)

-- name: sample_lock
-- A write holds the only lock there is.
SELECT 1

-- name: latest_cells
SELECT minute, name, state, bucket, count, run_ms FROM task_counts
WHERE minute >= :since AND state IN (SELECT value FROM json_each(:states))

-- name: note_versions
INSERT INTO task_counts (minute, name, state, bucket, count, run_ms)
SELECT '1970-01-01T00:00:00.000Z', version, 'version', -1, 1, cast(round(1000 * unixepoch(min(started_at), 'subsec')) AS INTEGER)
FROM task_workers
WHERE version IS NOT NULL
GROUP BY version
ON CONFLICT DO NOTHING

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

-- name: take_hours
DELETE FROM task_counts
WHERE minute > '1970-01-01T00:00:00.000Z' AND minute < strftime('%Y-%m-%dT%H:00:00.000Z', 'now', :offset, :kept)
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

-- name: forget_workers
-- Those whose claims the lease would not have ended yet are kept: they are how the janitor knows.
DELETE FROM task_workers
WHERE (
    stopped_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset, :kept)
    OR seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', {lease_now}, :kept)
) AND id NOT IN (
    SELECT worker_id FROM tasks INDEXED BY ix_tasks_running WHERE state = 'running' AND worker_id IS NOT NULL
)

-- name: restore
-- None is ready: a claim promotes what is due.
WITH {batch}
INSERT INTO tasks ({task_columns}, ready)
SELECT {task_columns}, 0 FROM batch
WHERE true
ON CONFLICT DO NOTHING
RETURNING id
