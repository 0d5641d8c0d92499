-- Submit. A wake-up goes with the insert's own statement, and only where a worker listens: a commit that notifies takes
-- a lock that all databases of the server share.

-- name: insert_one
-- $8 offset, $9 delay, $10 run_at. The look at the workers stands where a value is asked for, which is $12 whatever it
-- finds: for a RETURNING the server would keep an answer and send it, and the client read it.
INSERT INTO {schema}.tasks (
    id, name, state, kwargs, max_retries, timeout_seconds, priority, tags,
    scheduled_at, created_at, updated_at, retry_policy, trace, ready
) VALUES (
    $1, $2::varchar, 'pending', $3, $4, $5, $6, $7,
    coalesce($10::timestamptz, statement_timestamp() + $8::interval + $9::interval),
    statement_timestamp() + $8::interval,
    statement_timestamp() + $8::interval,
    $11,
    CASE WHEN (
        SELECT pg_notify({work_channel}, '=' || $2) IS NULL
        FROM {schema}.task_workers
        WHERE listening AND stopped_at IS NULL
          AND seen_at > statement_timestamp() + $8::interval - interval '1 minute'
          AND coalesce($10 <= statement_timestamp() + $8::interval + interval '1 minute', $9 <= interval '1 minute')
        LIMIT 1
    ) THEN NULL ELSE $12 END,
    coalesce($10::timestamptz <= statement_timestamp() + $8::interval, $9::interval <= interval '0')
)

-- name: insert_one_dated
{insert_one}
RETURNING created_at;

-- name: insert_alike
-- Tasks that differ in id and payload alone, as submit_many makes them: the payloads are one document, the rest is said
-- once. $1 ids, $2 payloads, $8 delay, $9 run_at, $12 offset, $13 whom to wake (NULL: nobody). Here and below the workers
-- are looked at once, as in insert_one, and how many rows were stored is the statement's own status.
INSERT INTO {schema}.tasks (
    id, name, state, kwargs, max_retries, timeout_seconds, priority, tags,
    scheduled_at, created_at, updated_at, retry_policy, trace, ready
)
SELECT
    id, $3::text, 'pending', kwargs, $4::int, $5::int, $6::int, $7::jsonb,
    coalesce($9::timestamptz, statement_timestamp() + $12::interval + $8::interval),
    statement_timestamp() + $12::interval,
    statement_timestamp() + $12::interval,
    $10::jsonb,
    CASE WHEN (
        SELECT pg_notify({work_channel}, $13::text) IS NULL
        FROM {schema}.task_workers
        WHERE $13::text IS NOT NULL AND listening AND stopped_at IS NULL
          AND seen_at > statement_timestamp() + $12::interval - interval '1 minute'
        LIMIT 1
    ) THEN NULL ELSE $11::text END,
    coalesce($9::timestamptz <= statement_timestamp() + $12::interval, $8::interval <= interval '0')
FROM ROWS FROM (unnest($1::uuid[]), jsonb_array_elements($2::jsonb)) AS batch (id, kwargs);

-- name: insert_many
-- $12 offset, $13 whom to wake (NULL: nobody)
INSERT INTO {schema}.tasks (
    id, name, state, kwargs, max_retries, timeout_seconds, priority, tags,
    scheduled_at, created_at, updated_at, retry_policy, trace, ready
)
SELECT
    id, name, 'pending', kwargs, max_retries, timeout_seconds, priority, tags,
    coalesce(run_at, statement_timestamp() + $12::interval + delay),
    statement_timestamp() + $12::interval,
    statement_timestamp() + $12::interval,
    retry_policy,
    CASE WHEN (
        SELECT pg_notify({work_channel}, $13::text) IS NULL
        FROM {schema}.task_workers
        WHERE $13::text IS NOT NULL AND listening AND stopped_at IS NULL
          AND seen_at > statement_timestamp() + $12::interval - interval '1 minute'
        LIMIT 1
    ) THEN NULL ELSE trace END,
    coalesce(run_at <= statement_timestamp() + $12::interval, delay <= interval '0')
FROM unnest(
    $1::uuid[], $2::jsonb[], $3::text[], $4::int[], $5::int[], $6::int[], $7::jsonb[],
    $8::interval[], $9::timestamptz[], $10::jsonb[], $11::text[]
) AS batch (
    id, kwargs, name, max_retries, timeout_seconds, priority, tags, delay, run_at, retry_policy, trace
);

-- name: insert_keyed
-- The batch as a JSON document, for tasks with keys and for connections of other drivers: one text parameter, whatever
-- the driver's types are. Rows whose key another transaction took meanwhile are in neither part of the answer.
WITH batch AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS task (
        id uuid, name text, kwargs jsonb, max_retries int, timeout_seconds int, priority int, tags jsonb,
        delay double precision, run_at timestamptz, idempotency_key text, retry_policy jsonb, trace text
    )
), clock AS MATERIALIZED (
    SELECT statement_timestamp() + CAST($2 AS double precision) * interval '1 second' AS now
), made AS (
    INSERT INTO {schema}.tasks (
        id, name, state, kwargs, max_retries, timeout_seconds, priority, tags,
        scheduled_at, created_at, updated_at, idempotency_key, retry_policy, trace, ready
    )
    SELECT
        id, name, 'pending', coalesce(kwargs, 'null'), max_retries, timeout_seconds, priority, tags,
        coalesce(run_at, now + coalesce(delay, 0) * interval '1 second'), now, now,
        idempotency_key, retry_policy, trace,
        coalesce(run_at <= now, coalesce(delay, 0) <= 0)
    FROM batch CROSS JOIN clock
    -- In one order for everybody, so that two batches with the same keys wait for each other and do not deadlock.
    ORDER BY idempotency_key, id
    -- Of a key alone: what another unique index keeps out is an error, with the name of that index.
    ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING id, idempotency_key
)
SELECT CAST(id AS text), idempotency_key, true FROM made
UNION ALL
SELECT CAST(t.id AS text), t.idempotency_key, false
FROM batch b JOIN {schema}.tasks t ON t.idempotency_key = b.idempotency_key
UNION ALL
SELECT CAST(pg_notify({work_channel}, CAST($3 AS text)) AS text), NULL, NULL
WHERE CAST($3 AS text) IS NOT NULL AND EXISTS (SELECT FROM made) AND EXISTS (
    SELECT FROM {schema}.task_workers CROSS JOIN clock
    WHERE listening AND stopped_at IS NULL AND seen_at > now - interval '1 minute'
);

-- name: find_keys
SELECT CAST(t.id AS text), t.idempotency_key
FROM jsonb_array_elements_text(CAST($1 AS jsonb)) AS b (idempotency_key)
JOIN {schema}.tasks t ON t.idempotency_key = b.idempotency_key;

-- name: any_stored
SELECT EXISTS (SELECT FROM {schema}.tasks WHERE id = ANY($1::uuid[]));
