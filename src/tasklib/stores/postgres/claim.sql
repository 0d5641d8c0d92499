-- Claim. One sensible plan only, because a queue's statistics are always wrong: index order is asked for where the planner
-- might sort, and arrays stand where it might turn a join round.

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
-- $1 names, $2 their caps (NULL: none), $3 slots, $4 slots + prefetch, $5 worker, $6 lease, $7 offset, $8 claim although
-- something due waits for its promotion. Claims nothing where a pause or a limit concerns the names.
-- The last row is no claim: its kwargs hold what else was seen.
WITH waiting AS MATERIALIZED (
    SELECT coalesce(next_retry_at, scheduled_at) - (statement_timestamp() + $7::interval) AS due_in
    FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
    ORDER BY coalesce(next_retry_at, scheduled_at)
    LIMIT 1
), controlled AS MATERIALIZED (
    SELECT FROM {schema}.task_controls
    WHERE (paused OR limited) AND (name = '' OR name = ANY ($1::text[]))
    LIMIT 1
), asked AS MATERIALIZED (
    -- Names that have anything ready: most have not.
    SELECT a.name, a.cap
    FROM unnest($1::text[], $2::int[]) AS a (name, cap)
    WHERE ($8 OR NOT EXISTS (SELECT FROM waiting WHERE due_in <= interval '0'))
      AND NOT EXISTS (SELECT FROM controlled)
      AND (
          SELECT true FROM {schema}.tasks t
          WHERE t.ready AND t.name = a.name
          ORDER BY t.priority DESC, t.created_at, t.id
          LIMIT 1
      )
), locked AS MATERIALIZED (
    SELECT t.* FROM asked a CROSS JOIN LATERAL (
        SELECT
            id, name, priority, created_at,
            state IN ('pending', 'failed') AND completed_at IS NULL
                AND coalesce(next_retry_at, scheduled_at) <= clock_timestamp() + $7::interval AS due,
            (max_retries >= 0 AND retry_count >= max_retries)
                OR CASE WHEN retry_count > 0 THEN coalesce(history -> -1 -> 'lost' = 'true', false) ELSE false END AS alone
        FROM {schema}.tasks
        WHERE ready AND name = a.name
        ORDER BY priority DESC, created_at, id
        LIMIT least($4, a.cap)
        FOR UPDATE SKIP LOCKED
    ) AS t
), picked AS MATERIALIZED (
    SELECT id
    FROM (
        SELECT id, alone, row_number() OVER (ORDER BY priority DESC, created_at, id) AS rank FROM locked WHERE due
    ) AS ranked
    WHERE (rank <= $3 OR (rank <= $4 AND NOT alone))
      -- One that is not due may stand before others of its type that are: it is put aside first.
      AND NOT EXISTS (SELECT FROM locked WHERE NOT due)
), clock AS MATERIALIZED (
    -- Read when the first row is written, after any wait for a lock: the lease is whole, and one claim has one start.
    SELECT clock_timestamp() + $7::interval AS now
), claimed AS (
    UPDATE {schema}.tasks t SET
        state = 'running',
        worker_id = $5,
        locked_until = (SELECT now FROM clock) + $6::interval,
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
        CASE WHEN t.retry_count > 0 THEN coalesce(t.history -> -1 -> 'lost' = 'true', false) AND (
            (t.max_retries >= 0 AND t.retry_count >= t.max_retries) OR coalesce(t.history -> -2 -> 'lost' = 'true', false)
        ) ELSE false END AS apart,
        t.priority, t.created_at
)
(
    SELECT
        id, name, version, worker_id, kwargs, retry_count, max_retries, timeout_seconds,
        retry_policy, started_at, tags, trace, alone, apart
    FROM claimed
    ORDER BY priority DESC, created_at, id
)
UNION ALL
SELECT
    NULL, NULL, NULL, NULL,
    jsonb_build_object(
        'due_in', (SELECT extract(epoch FROM due_in) FROM waiting),
        'controlled', EXISTS (SELECT FROM controlled),
        'stale', EXISTS (SELECT FROM locked WHERE NOT due),
        -- Ready when this statement began, yet none of it could be locked: in somebody else's hands for a moment.
        'skipped', EXISTS (
            SELECT FROM asked a WHERE a.cap IS DISTINCT FROM 0 AND a.name <> ALL (ARRAY(SELECT name FROM locked))
        )
    ),
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL;

-- name: claim_under_limits
-- The same where a pause or a limit concerns the names, in the same order: parameters as above, and in $9 the names whose
-- concurrency limits are seen to by the caps.
WITH waiting AS MATERIALIZED (
    SELECT coalesce(next_retry_at, scheduled_at) - (statement_timestamp() + $7::interval) AS due_in
    FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
    ORDER BY coalesce(next_retry_at, scheduled_at)
    LIMIT 1
), limits AS MATERIALIZED (
    -- Pauses and limits, looked at without locks: enough to see where there is nothing to be had.
    SELECT
        name, paused,
        rate IS NOT NULL AS has_rate,
        concurrency IS NOT NULL AND name <> ALL ($9::text[]) AS needs_count,
        (1 - tokens) / rate - extract(epoch FROM statement_timestamp() + $7::interval - refilled_at) AS permit_in,
        concurrency <= CASE
            WHEN concurrency IS NULL OR paused OR name = ANY ($9::text[]) THEN NULL
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
    -- Names that have anything ready, with the first of it.
    SELECT
        a.name, a.cap, t.priority, t.created_at, t.id,
        EXISTS (SELECT FROM limits l WHERE l.needs_count AND l.name IN ('', a.name)) AS needs_count
    FROM unnest($1::text[], $2::int[]) AS a (name, cap)
    CROSS JOIN LATERAL (
        SELECT priority, created_at, id FROM {schema}.tasks t
        WHERE t.ready AND t.name = a.name
        ORDER BY t.priority DESC, t.created_at, t.id
        LIMIT 1
    ) AS t
    WHERE ($8 OR NOT EXISTS (SELECT FROM waiting WHERE due_in <= interval '0'))
      AND NOT EXISTS (SELECT FROM shut WHERE name = '')
      AND a.name <> ALL (ARRAY(SELECT name FROM shut))
), counted_first AS MATERIALIZED (
    -- There is room under a concurrency limit. What runs must be counted under its lock, in a later snapshot than the
    -- lock's: such a task is not for this statement, the caller comes back for it with the count. Where it would wait
    -- inside the worker it is not wanted at all.
    SELECT priority, created_at, id FROM able
    WHERE needs_count AND $3 > 0
    ORDER BY priority DESC, created_at, id
    LIMIT 1
), uncounted AS MATERIALIZED (
    -- Its turn comes before the slots are filled: then nothing is claimed now.
    SELECT FROM counted_first c
    WHERE $3 > (
        SELECT count(*) FROM (
            SELECT FROM able a CROSS JOIN LATERAL (
                SELECT priority, created_at, id FROM {schema}.tasks
                WHERE ready AND name = a.name
                ORDER BY priority DESC, created_at, id
                LIMIT least($3, a.cap)
            ) AS t
            WHERE NOT a.needs_count AND (c.priority, t.created_at, t.id) < (t.priority, c.created_at, c.id)
            LIMIT $3
        ) AS before
    )
), asked AS MATERIALIZED (
    SELECT name, cap FROM able WHERE NOT needs_count AND NOT EXISTS (SELECT FROM uncounted)
), buckets AS MATERIALIZED (
    -- Rates, under the lock of their rows, and so as the claim before this one left them.
    SELECT
        c.name, c.rate,
        CASE WHEN c.paused THEN 0 ELSE least(greatest(1, c.rate), c.tokens + c.rate * greatest(0,
            extract(epoch FROM clock_timestamp() + $7::interval - c.refilled_at)::double precision)) END AS tokens
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
                AND coalesce(next_retry_at, scheduled_at) <= clock_timestamp() + $7::interval AS due,
            (max_retries >= 0 AND retry_count >= max_retries)
                OR CASE WHEN retry_count > 0 THEN coalesce(history -> -1 -> 'lost' = 'true', false) ELSE false END AS alone
        FROM {schema}.tasks
        WHERE ready AND name = a.name
        ORDER BY priority DESC, created_at, id
        -- A billionth more, so that the last bit of a fraction does not cost a token.
        LIMIT least($4, a.cap, (SELECT floor(b.tokens + 1e-9)::int FROM buckets b WHERE b.name = a.name))
        FOR UPDATE SKIP LOCKED
    ) AS t
), picked AS MATERIALIZED (
    SELECT id, name
    FROM (
        SELECT id, name, alone, row_number() OVER (ORDER BY priority DESC, created_at, id) AS rank
        FROM locked WHERE due
    ) AS ranked
    WHERE (rank <= least($3, (SELECT floor(b.tokens + 1e-9)::int FROM buckets b WHERE b.name = ''))
       OR (rank <= $4 AND NOT alone AND name <> ALL (ARRAY(SELECT l.name FROM limits l))
           AND NOT EXISTS (SELECT FROM limits l WHERE l.name = '')))
      AND NOT EXISTS (SELECT FROM locked WHERE NOT due)
), clock AS MATERIALIZED (
    SELECT clock_timestamp() + $7::interval AS now
), claimed AS (
    UPDATE {schema}.tasks t SET
        state = 'running',
        worker_id = $5,
        locked_until = (SELECT now FROM clock) + $6::interval,
        started_at = (SELECT now FROM clock),
        updated_at = (SELECT now FROM clock),
        next_retry_at = NULL,
        cancel_requested_at = NULL,
        ready = false,
        version = t.version + 1
    WHERE t.id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING
        t.id, t.name, t.version, t.worker_id, t.kwargs, t.retry_count, t.max_retries, t.timeout_seconds,
        t.retry_policy, t.started_at, t.tags, t.trace,
        (t.max_retries >= 0 AND t.retry_count >= t.max_retries)
            OR CASE WHEN t.retry_count > 0 THEN coalesce(t.history -> -1 -> 'lost' = 'true', false) ELSE false END AS alone,
        CASE WHEN t.retry_count > 0 THEN coalesce(t.history -> -1 -> 'lost' = 'true', false) AND (
            (t.max_retries >= 0 AND t.retry_count >= t.max_retries) OR coalesce(t.history -> -2 -> 'lost' = 'true', false)
        ) ELSE false END AS apart,
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
        retry_policy, started_at, tags, trace, alone, apart
    FROM claimed
    ORDER BY priority DESC, created_at, id
)
UNION ALL
SELECT
    NULL, NULL, NULL, NULL,
    jsonb_build_object(
        'due_in', (SELECT extract(epoch FROM due_in) FROM waiting),
        'controlled', EXISTS (SELECT FROM limits),
        -- Or what looked as if it would fill the slots did not: it was in other hands, or short of permits.
        'uncounted', EXISTS (SELECT FROM uncounted)
            OR (EXISTS (SELECT FROM counted_first) AND (SELECT count(*) FROM picked) < $3),
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
        'skipped', EXISTS (
            SELECT FROM asked a WHERE a.cap IS DISTINCT FROM 0 AND a.name <> ALL (ARRAY(SELECT name FROM locked))
        )
    ),
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL;

-- name: take
-- One task by its id. $1 id, $2 version, $3 worker, $4 lease, $5 offset, $6 the names whose concurrency limits have room:
-- counted under their lock. Gives the claim; or, in `uncounted`, the task's name, if what runs must be counted first.
WITH wanted AS MATERIALIZED (
    SELECT id, name FROM {schema}.tasks
    WHERE id = $1::uuid AND version = $2::int AND state IN ('pending', 'failed') AND completed_at IS NULL
      AND coalesce(next_retry_at, scheduled_at) <= clock_timestamp() + $5::interval
), limits AS MATERIALIZED (
    SELECT c.name, c.paused, c.rate IS NOT NULL AS has_rate,
        c.concurrency IS NOT NULL AND c.name <> ALL ($6::text[]) AS needs_count
    FROM {schema}.task_controls c
    WHERE (c.paused OR c.limited) AND EXISTS (SELECT FROM wanted w WHERE c.name IN ('', w.name))
), able AS MATERIALIZED (
    SELECT id FROM wanted WHERE NOT EXISTS (SELECT FROM limits WHERE paused OR needs_count)
), buckets AS MATERIALIZED (
    -- As in a claim: under the lock of their rows, in name order, before the task itself is touched.
    SELECT
        c.name,
        CASE WHEN c.paused THEN 0 ELSE least(greatest(1, c.rate), c.tokens + c.rate * greatest(0,
            extract(epoch FROM clock_timestamp() + $5::interval - c.refilled_at)::double precision)) END AS tokens
    FROM {schema}.task_controls c
    WHERE c.name = ANY (ARRAY(SELECT l.name FROM limits l WHERE l.has_rate)) AND EXISTS (SELECT FROM able)
    ORDER BY c.name
    FOR UPDATE
), picked AS MATERIALIZED (
    SELECT id FROM able WHERE NOT EXISTS (SELECT FROM buckets WHERE tokens + 1e-9 < 1)
), clock AS MATERIALIZED (
    SELECT clock_timestamp() + $5::interval AS now
), claimed AS (
    UPDATE {schema}.tasks t SET
        state = 'running',
        worker_id = $3::text,
        locked_until = (SELECT now FROM clock) + $4::interval,
        started_at = (SELECT now FROM clock),
        updated_at = (SELECT now FROM clock),
        next_retry_at = NULL,
        cancel_requested_at = NULL,
        ready = false,
        version = t.version + 1
    WHERE t.id = ANY (ARRAY(SELECT id FROM picked))
      -- Once more: the row may have been in somebody's hands since it was looked at.
      AND t.version = $2::int AND t.state IN ('pending', 'failed') AND t.completed_at IS NULL
    RETURNING
        t.id, t.name, t.version, t.worker_id, t.kwargs, t.retry_count, t.max_retries, t.timeout_seconds,
        t.retry_policy, t.started_at, t.tags, t.trace,
        (t.max_retries >= 0 AND t.retry_count >= t.max_retries)
            OR CASE WHEN t.retry_count > 0 THEN coalesce(t.history -> -1 -> 'lost' = 'true', false) ELSE false END AS alone,
        CASE WHEN t.retry_count > 0 THEN coalesce(t.history -> -1 -> 'lost' = 'true', false) AND (
            (t.max_retries >= 0 AND t.retry_count >= t.max_retries) OR coalesce(t.history -> -2 -> 'lost' = 'true', false)
        ) ELSE false END AS apart
), spent AS (
    UPDATE {schema}.task_controls c SET
        tokens = b.tokens - 1,
        refilled_at = greatest(c.refilled_at, (SELECT now FROM clock))
    FROM buckets b
    WHERE c.name = b.name AND EXISTS (SELECT FROM claimed)
)
SELECT
    id, name, version, worker_id, kwargs, retry_count, max_retries, timeout_seconds,
    retry_policy, started_at, tags, trace, alone, apart, NULL AS uncounted
FROM claimed
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, w.name
FROM wanted w
WHERE EXISTS (SELECT FROM limits WHERE needs_count) AND NOT EXISTS (SELECT FROM limits WHERE paused);

-- name: held
SELECT
    id, name, version, worker_id, kwargs, retry_count, max_retries, timeout_seconds, retry_policy, started_at, tags, trace,
    (max_retries >= 0 AND retry_count >= max_retries)
        OR CASE WHEN retry_count > 0 THEN coalesce(history -> -1 -> 'lost' = 'true', false) ELSE false END,
    CASE WHEN retry_count > 0 THEN coalesce(history -> -1 -> 'lost' = 'true', false) AND (
        (max_retries >= 0 AND retry_count >= max_retries) OR coalesce(history -> -2 -> 'lost' = 'true', false)
    ) ELSE false END
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
