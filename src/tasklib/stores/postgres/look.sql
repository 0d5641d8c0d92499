-- Reads for people, but for lists.

-- name: columns
id, name, state, scheduled_at, created_at, updated_at, started_at, completed_at, next_retry_at, args, kwargs, result,
error, retry_count, max_retries, worker_id, locked_until, timeout_seconds, priority, tags, cancel_requested_at, version,
idempotency_key, retry_policy, history, trace

-- name: get
SELECT {columns} FROM {schema}.tasks WHERE id = ANY ($1::uuid[]);

-- name: get_by_key
SELECT {columns} FROM {schema}.tasks WHERE idempotency_key = $1;

-- name: watch
-- Whoever settles this task from now on tells the waiters. Finished tasks are read with `get`.
UPDATE {schema}.tasks SET awaited = true WHERE id = $1 AND completed_at IS NULL RETURNING {columns};

-- name: stats_active
-- Exact, and each part by its own partial index. Seconds are how long the oldest due task has been due.
SELECT name, state, count(*),
    extract(epoch FROM statement_timestamp() + $1::interval - min(coalesce(next_retry_at, scheduled_at)))::double precision
FROM {schema}.tasks
WHERE ready AND state IN ('pending', 'failed') AND completed_at IS NULL
GROUP BY name, state
UNION ALL
SELECT name, state, count(*),
    extract(epoch FROM statement_timestamp() + $1::interval - min(coalesce(next_retry_at, scheduled_at)))::double precision
FROM {schema}.tasks
WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
GROUP BY name, state
UNION ALL
SELECT name, state, count(*), NULL
FROM {schema}.tasks
WHERE state = 'running'
GROUP BY name, state;

-- name: stats_finished
SELECT name, state, sum(count)::bigint FROM {schema}.task_counts
WHERE state IN ('completed', 'failed', 'cancelled')
GROUP BY name, state;

-- name: series
SELECT
    to_timestamp(floor(extract(epoch FROM minute) / $3) * $3), name, state, bucket,
    sum(count)::bigint, sum(run_ms)::bigint
FROM {schema}.task_counts
WHERE minute > 'epoch' AND minute >= statement_timestamp() + $1::interval - $2::interval AND state <> 'backlog'
GROUP BY 1, name, state, bucket
ORDER BY 1, name, state, bucket;

-- name: ages
SELECT
    to_timestamp(floor(extract(epoch FROM minute) / $3) * $3), name,
    (sum(run_ms) / sum(count) / 1000)::double precision
FROM {schema}.task_counts
WHERE minute > 'epoch' AND minute >= statement_timestamp() + $1::interval - $2::interval AND state = 'backlog'
GROUP BY 1, name
ORDER BY 1, name;

-- name: workers
SELECT id, hostname, pid, names, concurrency, running, started_at, seen_at, stopped_at,
    extract(epoch FROM statement_timestamp() + $1::interval - seen_at)::double precision
FROM {schema}.task_workers
ORDER BY started_at, id;
