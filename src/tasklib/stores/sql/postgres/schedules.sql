-- Schedules. Those of code that no worker has any more do not fire.

-- name: next_schedule
SELECT {columns} FROM {schema}.task_schedules
WHERE next_at IS NOT NULL AND (declared_at IS NULL OR declared_at > {now} + :kept::interval)

-- name: next_schedule_after
SELECT {columns} FROM {schema}.task_schedules
WHERE next_at > :now_at::timestamptz AND (declared_at IS NULL OR declared_at > :now_at::timestamptz + :kept::interval)

-- name: due_schedules
SELECT {columns} FROM {schema}.task_schedules
WHERE next_at <= :now_at::timestamptz AND (declared_at IS NULL OR declared_at > :now_at::timestamptz + :kept::interval)
ORDER BY next_at, name
LIMIT :limit

-- name: lock_schedules
WITH {batch}
SELECT s.name FROM batch AS b JOIN {schema}.task_schedules AS s ON s.name = b.name AND s.version = b.version
ORDER BY s.name
FOR UPDATE OF s {locked}
