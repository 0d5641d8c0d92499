-- name: restore
-- Whole records, as they were elsewhere. None is ready: a claim promotes what is due.
WITH batch AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($1::jsonb) AS task (
        id uuid, name text, state text, scheduled_at timestamptz, created_at timestamptz, updated_at timestamptz,
        started_at timestamptz, completed_at timestamptz, next_retry_at timestamptz, args jsonb, kwargs jsonb,
        result jsonb, error text, retry_count int, max_retries int, worker_id text, locked_until timestamptz,
        timeout_seconds int, priority int, tags jsonb, cancel_requested_at timestamptz, version int,
        idempotency_key text, retry_policy jsonb, history jsonb, trace text
    )
), made AS (
    INSERT INTO {schema}.tasks ({columns}, ready)
    SELECT
        id, name, state, scheduled_at, created_at, updated_at, started_at, completed_at, next_retry_at, args,
        coalesce(kwargs, 'null'), result, error, retry_count, max_retries, worker_id, locked_until, timeout_seconds,
        priority, tags, cancel_requested_at, version, idempotency_key, retry_policy, history, trace, false
    FROM batch
    ORDER BY idempotency_key, id
    ON CONFLICT DO NOTHING
    RETURNING id, name, state, completed_at
), counted AS (
    INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
    SELECT date_trunc('minute', completed_at), name, state, -1, count(*), 0
    FROM made
    WHERE completed_at IS NOT NULL AND state IN ('completed', 'failed', 'cancelled')
    GROUP BY 1, 2, 3
)
SELECT b.id, m.id IS NOT NULL, coalesce(t.version = b.version AND t.updated_at = b.updated_at, false)
FROM batch b
LEFT JOIN made m ON m.id = b.id
LEFT JOIN {schema}.tasks t ON t.id = b.id;
