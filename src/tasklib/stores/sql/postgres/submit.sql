-- Submit. A wake-up goes with the insert's own statement, and only where a worker listens: a commit that notifies takes
-- a lock that all databases of the server share.

-- name: new_rows
-- What all inserts have in common.
INSERT INTO {schema}.tasks ({new_columns}, state, scheduled_at, created_at, updated_at, ready)
SELECT
    {new_values},
    'pending',
    coalesce(run_at, statement_timestamp() + :offset::interval + coalesce(delay_seconds, 0) * interval '1 second'),
    statement_timestamp() + :offset::interval,
    statement_timestamp() + :offset::interval,
    coalesce(run_at <= statement_timestamp() + :offset::interval, coalesce(delay_seconds, 0) <= 0)
FROM batch b

-- name: wake_worker
-- Tells of `:wake`, a name, or of all types where it is empty, if somebody listens and it is due soon. Never true.
SELECT pg_notify({work_channel}, CASE :wake::text WHEN '' THEN '' ELSE '=' || :wake::text END) IS NULL
FROM {schema}.task_workers
WHERE :wake::text IS NOT NULL AND listening AND stopped_at IS NULL
  AND seen_at > statement_timestamp() + :offset::interval - interval '1 minute'
  AND coalesce(:due_at::timestamptz <= statement_timestamp() + :offset::interval + interval '1 minute', true)

-- name: workers_told
-- The look at the workers is a condition that always holds, asked once for all rows: for a RETURNING the server would
-- keep an answer and send it, and the client read it.
({wake_worker} LIMIT 1) IS NOT TRUE

-- name: insert_keyed
-- Those that were stored, and those whose key was taken before. Rows whose key another transaction took meanwhile are
-- in neither part.
WITH {batch}, made AS (
    {new_rows}
    -- In one order for everybody, so that two batches with the same keys wait for each other and do not deadlock.
    ORDER BY idempotency_key, id
    -- Of a key alone: what another unique index keeps out is an error, with the name of that index.
    ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING id, idempotency_key
)
SELECT id, idempotency_key FROM made
WHERE ({wake_worker} AND EXISTS (SELECT FROM made) LIMIT 1) IS NOT TRUE
UNION ALL
SELECT t.id, t.idempotency_key FROM batch b JOIN {schema}.tasks t ON t.idempotency_key = b.idempotency_key

-- name: find_keys
SELECT t.id, t.idempotency_key
FROM unnest(:keys::text[]) AS k (idempotency_key) JOIN {schema}.tasks t ON t.idempotency_key = k.idempotency_key

-- name: lock_unique
SELECT {columns}
FROM unnest(:names::text[], :keys::text[]) AS wanted (wanted_name, wanted_key)
    JOIN {schema}.tasks t ON t.name = wanted_name AND t.unique_key = wanted_key
ORDER BY t.name, t.unique_key
FOR UPDATE OF t

-- name: replace_unique
-- What waits for a retry keeps its time.
WITH {batch}
UPDATE {schema}.tasks t SET
    {replaced},
    updated_at = b.now,
    version = t.version + 1,
    scheduled_at = CASE t.state WHEN 'pending' THEN least(b.due, t.created_at + b.latest) ELSE t.scheduled_at END,
    ready = CASE t.state WHEN 'pending' THEN least(b.due, t.created_at + b.latest) <= b.now ELSE t.ready END
FROM (
    SELECT
        *,
        statement_timestamp() + :offset::interval AS now,
        coalesce(run_at, statement_timestamp() + :offset::interval + coalesce(delay_seconds, 0) * interval '1 second') AS due,
        at_most * interval '1 second' AS latest
    FROM batch
) AS b
WHERE t.id = b.id AND t.state IN ('pending', 'failed') AND t.completed_at IS NULL
  AND {workers_told}
RETURNING t.id
