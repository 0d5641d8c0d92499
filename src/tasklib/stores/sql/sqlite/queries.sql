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

-- Exact, and each part from its own index.
-- name: stats_active
SELECT name, state, count(*) AS number, min(coalesce(next_retry_at, scheduled_at)) AS due_at, true AS ready
FROM tasks INDEXED BY ix_tasks_ready
WHERE ready = 1 GROUP BY name, state
UNION ALL
SELECT name, state, count(*), min(coalesce(next_retry_at, scheduled_at)), false
FROM tasks INDEXED BY ix_tasks_waiting
WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL GROUP BY name, state
UNION ALL
SELECT name, state, count(*), NULL, false FROM tasks INDEXED BY ix_tasks_running WHERE state = 'running' GROUP BY name, state

-- name: own_tables
SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('tasks', 'task_migrations')

-- name: unhandled
-- Names with something that waits and is due, made ready by a claim or not, that no live worker serves. The check-up names
-- no index: it works when one is missing, too.
SELECT DISTINCT name FROM tasks
WHERE (
    ready = 1 OR (
        state IN ('pending', 'failed') AND completed_at IS NULL
        AND coalesce(next_retry_at, scheduled_at) <= {now}
    )
) AND name NOT IN (
    SELECT n.value FROM task_workers AS w, json_each(w.names) AS n
    WHERE w.stopped_at IS NULL AND w.seen_at >= strftime('%Y-%m-%dT%H:%M:%fZ', {lease_now}, '-60 seconds')
)

-- name: newest_ahead
-- By how many seconds the newest task is from the future.
SELECT (julianday(created_at) - julianday('now', :offset)) * 86400 FROM tasks ORDER BY id DESC LIMIT 1
