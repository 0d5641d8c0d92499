-- Reads for people, but for lists.

-- name: stats_active
-- Exact, and each part by its own partial index.
SELECT name, state, count(*) AS number, min(coalesce(next_retry_at, scheduled_at)) AS due_at, true AS ready
FROM {schema}.tasks
WHERE ready AND state IN ('pending', 'failed') AND completed_at IS NULL
GROUP BY name, state
UNION ALL
SELECT name, state, count(*), min(coalesce(next_retry_at, scheduled_at)), false
FROM {schema}.tasks
WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
GROUP BY name, state
UNION ALL
SELECT name, state, count(*), NULL, false
FROM {schema}.tasks
WHERE state = 'running'
GROUP BY name, state

-- name: notify
SELECT pg_notify({work_channel}, message) FROM unnest(:messages::text[]) AS m (message)
