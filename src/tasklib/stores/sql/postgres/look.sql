-- Reads for people, but for lists.

-- name: get
SELECT {columns} FROM {schema}.tasks WHERE id = ANY (:ids::uuid[])

-- name: failures
-- Behind a fence: beside the condition on `completed_at` the planner would take an index that has the ids in another order.
SELECT {columns} FROM (SELECT * FROM {schema}.tasks WHERE id = ANY (:ids::uuid[]) OFFSET 0) AS t WHERE completed_at IS NOT NULL

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

-- name: series
SELECT
    to_timestamp(floor(extract(epoch FROM minute) / :step) * :step) AS minute, name, state, bucket,
    sum(count)::bigint AS count, sum(run_ms)::bigint AS run_ms
FROM {schema}.task_counts
WHERE minute > 'epoch' AND minute >= statement_timestamp() + :offset::interval + :since::interval
  AND minute < statement_timestamp() + :offset::interval + :until::interval
  AND state NOT IN ('backlog', 'level') AND (:name::text IS NULL OR name IN ('', :name::text))
GROUP BY 1, name, state, bucket
ORDER BY 1, name, state, bucket

-- name: backlog_history
SELECT
    to_timestamp(floor(extract(epoch FROM minute) / :step) * :step) AS minute, name,
    max(run_ms / 1000.0)::double precision AS seconds, max(count) AS depth
FROM {schema}.task_counts
WHERE minute > 'epoch' AND minute >= statement_timestamp() + :offset::interval + :since::interval
  AND minute < statement_timestamp() + :offset::interval + :until::interval
  AND state = 'backlog' AND (:name::text IS NULL OR name IN ('', :name::text))
GROUP BY 1, name
ORDER BY 1, name

-- name: lock_controls
SELECT {columns} FROM {schema}.task_controls WHERE name = ANY (:names::text[]) ORDER BY name FOR UPDATE

-- name: notify
SELECT pg_notify({work_channel}, message) FROM unnest(:messages::text[]) AS m (message)
