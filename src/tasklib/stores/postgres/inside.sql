-- Work inside a caller's transaction, on whatever driver it has: text and numbers in, text out.

-- name: next_inside
-- $1 names as a JSON list, $2 offset in seconds
SELECT CAST(t.id AS text), t.version
FROM {schema}.tasks t
WHERE t.name IN (SELECT jsonb_array_elements_text(CAST($1 AS jsonb)))
  AND t.state IN ('pending', 'failed') AND t.completed_at IS NULL
  AND coalesce(t.next_retry_at, t.scheduled_at)
      <= clock_timestamp() + CAST($2 AS double precision) * interval '1 second'
  AND NOT EXISTS (SELECT FROM {schema}.task_controls c WHERE c.paused AND c.name IN ('', t.name))
ORDER BY t.priority DESC, t.created_at, t.id
LIMIT 1;

-- name: claim_inside
-- A claim as text: drivers differ in what they make of jsonb.
SELECT
    CAST(id AS text), name, version, worker_id, CAST(kwargs AS text), retry_count, max_retries, timeout_seconds,
    CAST(retry_policy AS text), started_at, CAST(tags AS text), trace
FROM {schema}.tasks
WHERE id = CAST($1 AS uuid) AND worker_id = CAST($2 AS text);

-- name: tasks_inside
-- $1 a name, $2 an id; NULL: any
SELECT CAST(to_jsonb(t) AS text)
FROM {schema}.tasks t
WHERE (CAST($1 AS text) IS NULL OR t.name = CAST($1 AS text))
  AND (CAST($2 AS uuid) IS NULL OR t.id = CAST($2 AS uuid))
ORDER BY t.id
LIMIT 10000;
