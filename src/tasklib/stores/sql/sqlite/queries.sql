-- Statements of the SQLite store that have no file of their own. Times are compared as text: they are all written in one
-- form.

-- What processes of this machine add to the time since it started (clock.py says why).
-- name: steady_clock
SELECT added_ms FROM task_clocks WHERE boot = :boot

-- name: set_steady_clock
INSERT INTO task_clocks (boot, added_ms) VALUES (:boot, :added_ms) ON CONFLICT DO NOTHING

-- Those of earlier starts; containers with other time namespaces have theirs beside this one.
-- name: forget_steady_clocks
DELETE FROM task_clocks WHERE substr(boot, 1, 36) <> substr(:boot, 1, 36)

-- What the statements of a claim insert into: views whose triggers update one task for each row, by its key. An UPDATE of many
-- could do the same, but where statistics were taken of a nearly empty table it would read all tasks for it.
-- name: writing_views
CREATE TEMP VIEW marking AS
SELECT NULL AS task, NULL AS ready;

CREATE TEMP TRIGGER mark INSTEAD OF INSERT ON marking BEGIN
    UPDATE tasks SET ready = NEW.ready WHERE rowid = NEW.task;
END;

CREATE TEMP VIEW claiming AS
SELECT NULL AS task, NULL AS worker_id, NULL AS until, NULL AS now;

CREATE TEMP TRIGGER claim INSTEAD OF INSERT ON claiming BEGIN
    UPDATE tasks SET
        state = 'running',
        worker_id = NEW.worker_id,
        locked_until = NEW.until,
        started_at = NEW.now,
        next_retry_at = NULL,
        ready = 0,
        unique_key = iif(unique_until <> 'started', unique_key, NULL),
        version = version + 1,
        updated_at = NEW.now,
        cancel_requested_at = NULL
    WHERE rowid = NEW.task;
END;

-- name: lost_leases
WITH clock(now, dead) AS MATERIALIZED (SELECT {lease_now}, strftime('%Y-%m-%dT%H:%M:%fZ', {lease_now}, :silence)),
gone AS MATERIALIZED (
    SELECT w.id FROM clock CROSS JOIN task_workers AS w WHERE w.stopped_at IS NOT NULL OR w.seen_at < dead
)
SELECT t.*
FROM clock CROSS JOIN tasks AS t INDEXED BY ix_tasks_running
WHERE t.state = 'running' AND (coalesce(t.locked_until, '') <= now OR t.worker_id IN (SELECT id FROM gone))
LIMIT :limit

-- name: get
SELECT {columns} FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE id IN (SELECT value FROM json_each(:ids))

-- Exact, and each part from its own index.
-- name: stats_active
SELECT name, state, count(*) AS number, min(coalesce(next_retry_at, scheduled_at)) AS due_at
FROM tasks INDEXED BY ix_tasks_ready
WHERE ready = 1 GROUP BY name, state
UNION ALL
SELECT name, state, count(*), min(coalesce(next_retry_at, scheduled_at))
FROM tasks INDEXED BY ix_tasks_waiting
WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL GROUP BY name, state
UNION ALL
SELECT name, state, count(*), NULL FROM tasks INDEXED BY ix_tasks_running WHERE state = 'running' GROUP BY name, state

-- name: series
SELECT strftime('%Y-%m-%dT%H:%M:00.000Z', unixepoch(minute) / :step * :step, 'unixepoch') AS minute,
    name, state, bucket, sum(count) AS count, sum(run_ms) AS run_ms
FROM task_counts
WHERE minute >= strftime('%Y-%m-%dT%H:%M:00.000Z', 'now', :offset, :since) AND minute > '1970-01-01T00:00:00.000Z'
    AND state <> 'backlog'
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4

-- name: backlog_history
SELECT strftime('%Y-%m-%dT%H:%M:00.000Z', unixepoch(minute) / :step * :step, 'unixepoch') AS minute, name,
    max(run_ms / count / 1000.0) AS seconds
FROM task_counts
WHERE minute >= strftime('%Y-%m-%dT%H:%M:00.000Z', 'now', :offset, :since) AND minute > '1970-01-01T00:00:00.000Z'
    AND state = 'backlog'
GROUP BY 1, 2
ORDER BY 1, 2

-- A write holds the only lock there is.
-- name: lock_controls
SELECT {columns} FROM task_controls WHERE name IN (SELECT value FROM json_each(:names)) ORDER BY name

-- name: own_tables
SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('tasks', 'task_migrations')

-- The check-up names no index: it works when one is missing, too.
-- name: unattended
-- Names with something that waits and is due, made ready by a claim or not, that no live worker serves.
SELECT json_group_array(DISTINCT name) FROM tasks
WHERE (
    ready = 1 OR (
        state IN ('pending', 'failed') AND completed_at IS NULL
        AND coalesce(next_retry_at, scheduled_at) <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset)
    )
) AND name NOT IN (
    SELECT n.value FROM task_workers AS w, json_each(w.names) AS n
    WHERE w.stopped_at IS NULL AND w.seen_at >= strftime('%Y-%m-%dT%H:%M:%fZ', :steady, '-60 seconds')
)

-- name: leases
-- Those that have ended, and those that end soon.
SELECT
    count(*) FILTER (WHERE locked_until <= :steady),
    count(*) FILTER (WHERE locked_until > :steady)
FROM tasks
WHERE state = 'running' AND locked_until <= strftime('%Y-%m-%dT%H:%M:%fZ', :steady, :soon)

-- name: newest_ahead
-- By how many seconds the newest task is from the future.
SELECT (julianday(created_at) - julianday('now', :offset)) * 86400 FROM tasks ORDER BY id DESC LIMIT 1

