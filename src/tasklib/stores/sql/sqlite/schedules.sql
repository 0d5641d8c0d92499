-- Schedules. A write holds the only lock there is.

-- name: lock_schedules
WITH {batch}
SELECT s.name FROM batch AS b JOIN task_schedules AS s ON s.name = b.name AND s.version = b.version
