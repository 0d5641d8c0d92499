-- Claim, settle, extend: the statements that workers live by. Each has one sensible plan only, because a queue's
-- statistics are always wrong: index order asked for where the planner might sort, arrays and fences where it might turn
-- a join round. Every statement takes the clock's offset; leases count from clock_timestamp().

-- name: promote
UPDATE {schema}.tasks SET ready = true
WHERE id = ANY (ARRAY(
    SELECT id FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
      AND coalesce(next_retry_at, scheduled_at) <= statement_timestamp() + $1::interval
    ORDER BY coalesce(next_retry_at, scheduled_at)
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
));

-- name: demote
-- Rows that were edited by hand while they were ready, and are not claimable (any more, or not yet).
UPDATE {schema}.tasks SET ready = false
WHERE id = ANY (ARRAY(
    SELECT id FROM {schema}.tasks
    WHERE ready AND name = ANY ($2::text[]) AND NOT (
        state IN ('pending', 'failed') AND completed_at IS NULL
        AND coalesce(next_retry_at, scheduled_at) <= clock_timestamp() + $1::interval
    )
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
));

-- name: claim
-- $1 names, $2 their caps (NULL: none), $3 names whose concurrency limits are seen to by the caps, $4 slots,
-- $5 slots + prefetch, $6 worker, $7 lease, $8 offset, $9 claim although something due waits for its promotion.
-- The last row is no claim: its kwargs hold what else was seen.
WITH waiting AS MATERIALIZED (
    SELECT coalesce(next_retry_at, scheduled_at) - (statement_timestamp() + $8::interval) AS due_in
    FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
    ORDER BY coalesce(next_retry_at, scheduled_at)
    LIMIT 1
), limits AS MATERIALIZED (
    -- Pauses and limits, looked at without locks: enough to see where there is nothing to be had.
    SELECT
        name, paused,
        rate IS NOT NULL AS has_rate,
        concurrency IS NOT NULL AND name <> ALL ($3::text[]) AS needs_count,
        (1 - tokens) / rate - extract(epoch FROM statement_timestamp() + $8::interval - refilled_at) AS permit_in,
        concurrency <= CASE
            WHEN concurrency IS NULL OR paused OR name = ANY ($3::text[]) THEN NULL
            WHEN name = '' THEN (SELECT count(*) FROM {schema}.tasks t WHERE t.state = 'running')
            ELSE (SELECT count(*) FROM {schema}.tasks t WHERE t.state = 'running' AND t.name = c.name)
        END AS full_up,
        CASE WHEN name = '' THEN true WHEN paused THEN false ELSE (
            SELECT true FROM {schema}.tasks t
            WHERE t.ready AND t.name = c.name
            ORDER BY t.priority DESC, t.created_at, t.id
            LIMIT 1
        ) END AS wanted
    FROM {schema}.task_controls c
    WHERE (paused OR limited) AND (name = '' OR name = ANY ($1::text[]))
), shut AS MATERIALIZED (
    SELECT name FROM limits WHERE paused OR permit_in > 0 OR full_up
), able AS MATERIALIZED (
    SELECT a.name, a.cap
    FROM unnest($1::text[], $2::int[]) AS a (name, cap)
    WHERE ($9 OR NOT EXISTS (SELECT FROM waiting WHERE due_in <= interval '0'))
      AND NOT EXISTS (SELECT FROM shut WHERE name = '')
      AND a.name <> ALL (ARRAY(SELECT name FROM shut))
      AND (
          SELECT true FROM {schema}.tasks t
          WHERE t.ready AND t.name = a.name
          ORDER BY t.priority DESC, t.created_at, t.id
          LIMIT 1
      )
), uncounted AS MATERIALIZED (
    -- There is room under a concurrency limit. What runs must be counted under its lock, in a later snapshot than the
    -- lock's: nothing is claimed now, the caller comes back with the count.
    SELECT FROM able a JOIN limits l ON l.name IN ('', a.name) WHERE l.needs_count LIMIT 1
), asked AS MATERIALIZED (
    SELECT name, cap FROM able WHERE NOT EXISTS (SELECT FROM uncounted)
), buckets AS MATERIALIZED (
    -- Rates, under the lock of their rows, and so as the claim before this one left them.
    SELECT
        c.name, c.rate,
        CASE WHEN c.paused THEN 0 ELSE least(greatest(1, c.rate), c.tokens + c.rate * greatest(0,
            extract(epoch FROM clock_timestamp() + $8::interval - c.refilled_at)::double precision)) END AS tokens
    FROM {schema}.task_controls c
    WHERE c.name = ANY (ARRAY(
        SELECT l.name FROM limits l
        WHERE l.has_rate AND EXISTS (SELECT FROM asked a WHERE l.name IN ('', a.name))
    ))
    ORDER BY c.name
    FOR UPDATE
), locked AS MATERIALIZED (
    SELECT t.* FROM asked a CROSS JOIN LATERAL (
        SELECT
            id, name, priority, created_at,
            state IN ('pending', 'failed') AND completed_at IS NULL
                AND coalesce(next_retry_at, scheduled_at) <= clock_timestamp() + $8::interval AS due,
            (max_retries >= 0 AND retry_count >= max_retries)
                OR CASE WHEN retry_count > 0 THEN coalesce(history -> -1 -> 'lost' = 'true', false) ELSE false END AS alone
        FROM {schema}.tasks
        WHERE ready AND name = a.name
        ORDER BY priority DESC, created_at, id
        -- A billionth more, so that the last bit of a fraction does not cost a token.
        LIMIT least($5, a.cap, (SELECT floor(b.tokens + 1e-9)::int FROM buckets b WHERE b.name = a.name))
        FOR UPDATE SKIP LOCKED
    ) AS t
), picked AS MATERIALIZED (
    SELECT id, name
    FROM (
        SELECT id, name, alone, row_number() OVER (ORDER BY priority DESC, created_at, id) AS rank
        FROM locked WHERE due
    ) AS ranked
    WHERE rank <= least($4, (SELECT floor(b.tokens + 1e-9)::int FROM buckets b WHERE b.name = ''))
       OR (rank <= $5 AND NOT alone AND name <> ALL (ARRAY(SELECT l.name FROM limits l))
           AND NOT EXISTS (SELECT FROM limits l WHERE l.name = ''))
), clock AS MATERIALIZED (
    -- Read when the first row is written, after any wait for a lock: the lease is whole, and one claim has one start.
    SELECT clock_timestamp() + $8::interval AS now
), claimed AS (
    UPDATE {schema}.tasks t SET
        state = 'running',
        worker_id = $6,
        locked_until = (SELECT now FROM clock) + $7::interval,
        started_at = (SELECT now FROM clock),
        updated_at = (SELECT now FROM clock),
        next_retry_at = NULL,
        cancel_requested_at = NULL,
        ready = false,
        version = t.version + 1
    -- By an array: whatever the planner believes of its length, the primary key is the way.
    WHERE t.id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING
        t.id, t.name, t.version, t.worker_id, t.kwargs, t.retry_count, t.max_retries, t.timeout_seconds,
        t.retry_policy, t.started_at, t.tags, t.trace,
        (t.max_retries >= 0 AND t.retry_count >= t.max_retries)
            OR CASE WHEN t.retry_count > 0 THEN coalesce(t.history -> -1 -> 'lost' = 'true', false) ELSE false END AS alone,
        t.priority, t.created_at
), used AS MATERIALIZED (
    SELECT b.name, b.rate, b.tokens - (
        SELECT count(*) FROM picked p WHERE b.name IN ('', p.name)
    ) AS tokens
    FROM buckets b
), spent AS (
    UPDATE {schema}.task_controls c SET
        tokens = u.tokens,
        refilled_at = greatest(c.refilled_at, (SELECT now FROM clock))
    FROM used u
    WHERE c.name = u.name AND u.rate IS NOT NULL AND EXISTS (SELECT FROM picked)
)
(
    SELECT
        id, name, version, worker_id, kwargs, retry_count, max_retries, timeout_seconds,
        retry_policy, started_at, tags, trace, alone
    FROM claimed
    ORDER BY priority DESC, created_at, id
)
UNION ALL
SELECT
    NULL, NULL, NULL, NULL,
    jsonb_build_object(
        'due_in', (SELECT extract(epoch FROM due_in) FROM waiting),
        'uncounted', EXISTS (SELECT FROM uncounted),
        -- Of what ran out of permits: when the next comes by time, and whether any must come by a task's end.
        'permit_in', least(
            (
                SELECT min(permit_in) FROM limits
                WHERE wanted AND permit_in > 0 AND NOT paused AND full_up IS NOT TRUE
                  AND (name = '' OR NOT EXISTS (SELECT FROM shut WHERE name = ''))
            ),
            (SELECT min((1 - tokens) / rate) FROM used WHERE tokens < 1)
        ),
        'full', EXISTS (
            SELECT FROM limits
            WHERE wanted AND full_up AND NOT paused
              AND (name = '' OR NOT EXISTS (SELECT FROM shut WHERE name = ''))
        ),
        'stale', EXISTS (SELECT FROM locked WHERE NOT due),
        -- Ready when this statement began, yet none of it could be locked: in somebody else's hands for a moment.
        'skipped', EXISTS (
            SELECT FROM asked a WHERE a.cap IS DISTINCT FROM 0 AND a.name <> ALL (ARRAY(SELECT name FROM locked))
        )
    ),
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL;

-- name: held
SELECT
    id, name, version, worker_id, kwargs, retry_count, max_retries, timeout_seconds, retry_policy, started_at, tags, trace,
    (max_retries >= 0 AND retry_count >= max_retries)
        OR CASE WHEN retry_count > 0 THEN coalesce(history -> -1 -> 'lost' = 'true', false) ELSE false END
FROM {schema}.tasks
WHERE state = 'running' AND worker_id = $1
ORDER BY priority DESC, created_at, id;

-- name: lock_concurrency
-- In name order, so that two claims never wait for each other in a ring.
SELECT name, concurrency FROM {schema}.task_controls
WHERE concurrency IS NOT NULL AND (name = '' OR name = ANY ($1::text[]))
ORDER BY name
FOR UPDATE;

-- name: count_running
-- In a statement of its own: it must see what was claimed while this transaction waited for the lock.
SELECT name, count(*) FROM {schema}.tasks WHERE state = 'running' AND name = ANY ($1::text[]) GROUP BY name;

-- name: count_all_running
SELECT count(*) FROM {schema}.tasks WHERE state = 'running';

-- name: complete
-- The hot settle. The guard sits in the batch's own rows, behind a fence: the primary key is the only way left.
WITH batch AS MATERIALIZED (
    SELECT b.*, clock_timestamp() + $8::interval AS now FROM unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::jsonb[], $6::int[], $7::int[])
        AS b (id, version, worker_id, retry_count, result, run_ms, bucket)
), done AS (
    UPDATE {schema}.tasks t SET
        state = 'completed',
        retry_count = b.retry_count,
        version = t.version + 1,
        updated_at = b.now,
        completed_at = b.now,
        worker_id = NULL,
        locked_until = NULL,
        next_retry_at = NULL,
        result = b.result,
        error = NULL,
        ready = false
    FROM batch b
    WHERE t.id = b.id AND t.version = b.version AND t.worker_id = b.worker_id
    RETURNING t.id, t.name, t.awaited, b.run_ms, b.bucket
), counted AS (
    INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
    SELECT date_trunc('minute', statement_timestamp() + $8::interval), name, 'completed', bucket, count(*), sum(run_ms)
    FROM done
    GROUP BY name, bucket
)
SELECT
    CASE WHEN count(*) < cardinality($1::uuid[]) THEN coalesce(array_agg(id), '{}') END,
    count(CASE WHEN awaited THEN pg_notify({done_channel}, id::text)::text END)
FROM done;

-- name: settle
WITH batch AS MATERIALIZED (
    SELECT b.*, clock_timestamp() + $15::interval AS now FROM unnest(
        $1::uuid[], $2::int[], $3::text[], $4::timestamptz[], $5::text[], $6::int[], $7::boolean[], $8::interval[],
        $9::jsonb[], $10::text[], $11::jsonb[], $12::text[], $13::int[], $14::int[]
    ) AS b (
        id, version, worker_id, locked_until, state, retry_count, terminal, due_in,
        result, error, entry, leaves, run_ms, bucket
    )
), done AS (
    UPDATE {schema}.tasks t SET
        state = b.state,
        retry_count = b.retry_count,
        version = t.version + 1,
        updated_at = b.now,
        worker_id = NULL,
        locked_until = NULL,
        completed_at = CASE WHEN b.terminal THEN b.now END,
        next_retry_at = CASE
            WHEN b.state = 'failed' AND NOT b.terminal
            THEN b.now + coalesce(b.due_in, interval '0')
        END,
        scheduled_at = CASE
            WHEN b.state = 'pending' AND b.due_in IS NOT NULL THEN b.now + b.due_in
            ELSE t.scheduled_at
        END,
        result = b.result,
        error = CASE WHEN b.state = 'completed' THEN NULL ELSE coalesce(b.error, t.error) END,
        history = CASE
            WHEN b.entry IS NULL THEN t.history
            ELSE CASE
                WHEN jsonb_typeof(t.history) <> 'array' THEN '[]'
                WHEN jsonb_array_length(t.history) >= $16::int THEN t.history - 1
                ELSE t.history
            END || jsonb_build_array(b.entry || jsonb_build_object(
                'ended',
                to_char(b.now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
            ))
        END,
        ready = NOT b.terminal AND b.state IN ('pending', 'failed') AND CASE
            WHEN b.due_in IS NOT NULL THEN b.due_in <= interval '0'
            ELSE b.state = 'failed' OR t.scheduled_at <= b.now
        END,
        cancel_requested_at = CASE WHEN b.state = 'pending' THEN NULL ELSE t.cancel_requested_at END
    FROM batch b
    WHERE t.id = b.id
      AND (b.version IS NULL OR t.version = b.version)
      AND t.worker_id IS NOT DISTINCT FROM b.worker_id
      AND (b.locked_until IS NULL OR t.locked_until = b.locked_until)
    RETURNING t.id, t.name, t.awaited, t.ready, b.state, b.terminal, b.leaves, b.run_ms, b.bucket
), counted AS (
    INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
    SELECT
        date_trunc('minute', statement_timestamp() + $15::interval), name,
        CASE WHEN terminal THEN state ELSE 'retried' END, bucket, count(*), sum(run_ms)
    FROM done
    WHERE terminal OR state = 'failed'
    GROUP BY 3, name, bucket
    UNION ALL
    SELECT 'epoch', name, leaves, -1, -count(*), 0
    FROM done
    WHERE leaves IS NOT NULL
    GROUP BY name, leaves
)
SELECT
    id,
    CASE WHEN awaited AND terminal THEN pg_notify({done_channel}, id::text)::text END,
    CASE WHEN ready AND EXISTS (
        SELECT FROM {schema}.task_workers
        WHERE listening AND stopped_at IS NULL
          AND seen_at > statement_timestamp() + $15::interval - interval '1 minute'
    ) THEN pg_notify({work_channel}, '=' || name)::text END
FROM done;

-- name: extend
WITH batch AS MATERIALIZED (
    SELECT b.id, b.version, $3::text AS worker_id FROM unnest($1::uuid[], $2::int[]) AS b (id, version)
)
UPDATE {schema}.tasks t SET locked_until = clock_timestamp() + $5::interval + $4::interval
FROM batch b
WHERE t.id = b.id AND t.version = b.version AND t.worker_id = b.worker_id
RETURNING t.id, t.version, t.cancel_requested_at IS NOT NULL;
