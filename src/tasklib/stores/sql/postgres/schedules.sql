-- Schedules.

-- name: lock_schedules
WITH {batch}
SELECT s.name FROM batch AS b JOIN {schema}.task_schedules AS s ON s.name = b.name AND s.version = b.version
ORDER BY s.name
FOR UPDATE OF s {locked}
