-- Schedules. Those of code that no worker has any more do not fire.

-- name: next_schedule
SELECT {columns} FROM task_schedules
WHERE next_at IS NOT NULL
    AND (declared_at IS NULL OR declared_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset, :kept))

-- name: next_schedule_after
SELECT {columns} FROM task_schedules
WHERE next_at > :now_at AND (declared_at IS NULL OR declared_at > strftime('%Y-%m-%dT%H:%M:%fZ', :now_at, :kept))

-- name: due_schedules
SELECT {columns} FROM task_schedules
WHERE next_at <= :now_at AND (declared_at IS NULL OR declared_at > strftime('%Y-%m-%dT%H:%M:%fZ', :now_at, :kept))
ORDER BY next_at, name
LIMIT :limit

-- A write holds the only lock there is.
-- name: lock_schedules
WITH {batch}
SELECT s.name FROM batch AS b JOIN task_schedules AS s ON s.name = b.name AND s.version = b.version
