-- Claim. One sensible plan only, because a queue's statistics are always wrong: index order is asked for where the planner
-- might sort, and arrays stand where it might turn a join round.

-- name: promote
UPDATE {schema}.tasks SET ready = true
WHERE id = ANY (ARRAY(
    SELECT id FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
      AND coalesce(next_retry_at, scheduled_at) <= statement_timestamp() + :offset::interval
    ORDER BY coalesce(next_retry_at, scheduled_at)
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
))

-- name: demote
-- Rows that were edited by hand while they were ready, and are not claimable (any more, or not yet).
UPDATE {schema}.tasks SET ready = false
WHERE id = ANY (ARRAY(
    SELECT id FROM {schema}.tasks
    WHERE ready AND name = ANY (:names::text[]) AND NOT (
        state IN ('pending', 'failed') AND completed_at IS NULL AND coalesce(next_retry_at, scheduled_at) <= {now}
    )
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
))

-- name: claim
-- The best of the names, at most their caps (NULL: none) of each: `slots` that can start at once, and up to `most` with
-- those that may wait in the worker, which what is to run alone and the limited names may not. Nothing where something due
-- waits for its promotion, unless `promoted`; where a pause or a limit concerns what is ready, unless `under_limits`, when
-- the caps have seen to it; and where rows were met that are not due. Where fewer than `slots` were claimed, each row
-- says what else was seen; there is one row at least.
WITH waiting AS MATERIALIZED (
    SELECT coalesce(next_retry_at, scheduled_at) - (statement_timestamp() + :offset::interval) AS due_in
    FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
    ORDER BY coalesce(next_retry_at, scheduled_at)
    LIMIT 1
), ready AS MATERIALIZED (
    -- Names that have anything ready: most have not.
    SELECT a.name, a.cap
    FROM unnest(:names::text[], :caps::int[]) AS a (name, cap)
    WHERE (
        SELECT true FROM {schema}.tasks t
        WHERE t.ready AND t.name = a.name
        ORDER BY t.priority DESC, t.created_at, t.id
        LIMIT 1
    )
), controlled AS MATERIALIZED (
    SELECT FROM {schema}.task_controls
    WHERE (paused OR limited) AND NOT :under_limits::boolean
      AND (name = '' OR name = ANY (ARRAY(SELECT name FROM ready))) AND EXISTS (SELECT FROM ready)
    LIMIT 1
), asked AS MATERIALIZED (
    SELECT name, cap FROM ready
    WHERE (:promoted::boolean OR NOT EXISTS (SELECT FROM waiting WHERE due_in <= interval '0'))
      AND NOT EXISTS (SELECT FROM controlled)
), locked AS MATERIALIZED (
    SELECT t.* FROM asked a CROSS JOIN LATERAL (
        SELECT
            id, name, priority, created_at,
            state IN ('pending', 'failed') AND completed_at IS NULL
                AND coalesce(next_retry_at, scheduled_at) <= {now} AS due,
            {no_prefetch} OR name = ANY (:limited::text[]) AS no_prefetch
        FROM {schema}.tasks
        WHERE ready AND name = a.name
        ORDER BY priority DESC, created_at, id
        LIMIT least(:most::int, a.cap)
        FOR UPDATE SKIP LOCKED
    ) AS t
), picked AS MATERIALIZED (
    SELECT id
    FROM (
        SELECT id, no_prefetch, row_number() OVER (ORDER BY priority DESC, created_at, id) AS rank FROM locked WHERE due
    ) AS ranked
    WHERE (rank <= :slots::int OR (rank <= :most::int AND NOT no_prefetch))
      -- One that is not due may stand before others of its type that are: it is put aside first.
      AND NOT EXISTS (SELECT FROM locked WHERE NOT due)
), clock AS MATERIALIZED (
    -- Read when the first row is written, after any wait for a lock: the lease is whole, and one claim has one start.
    SELECT {now} AS now
), claimed AS (
    UPDATE {schema}.tasks SET
        state = 'running',
        worker_id = :worker_id::text,
        locked_until = (SELECT now FROM clock) + :lease::interval,
        started_at = (SELECT now FROM clock),
        updated_at = (SELECT now FROM clock),
        next_retry_at = NULL,
        cancel_requested_at = NULL,
        ready = false,
        unique_key = CASE WHEN unique_until <> 'started' THEN unique_key END,
        version = version + 1
    -- By an array: whatever the planner believes of its length, the primary key is the way.
    WHERE id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING {claim_columns}, priority, created_at
), seen AS MATERIALIZED (
    SELECT
        (SELECT extract(epoch FROM due_in)::double precision FROM waiting) AS due_in,
        EXISTS (SELECT FROM controlled) AS limits_apply,
        EXISTS (SELECT FROM locked WHERE NOT due) AS stale,
        -- Ready when this statement began, yet none of it could be locked: in somebody else's hands for a moment.
        EXISTS (
            SELECT FROM asked a WHERE a.cap IS DISTINCT FROM 0 AND a.name <> ALL (ARRAY(SELECT name FROM locked))
        ) AS skipped,
        EXISTS (SELECT FROM asked WHERE cap = 0) AS held_back
    WHERE (SELECT count(*) FROM picked) < :slots::int OR :slots::int = 0
)
SELECT {columns} FROM (SELECT) AS one LEFT JOIN seen ON true LEFT JOIN claimed ON true
ORDER BY priority DESC, created_at, id
