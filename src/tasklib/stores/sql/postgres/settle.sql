-- Settle and extend. Each has one sensible plan only, because a queue's statistics are always wrong: the batch is behind a
-- fence, and the primary key is the only way from it to the tasks. Counters move in the same statement, and who waits is
-- told by it. Leases count from clock_timestamp().

-- name: complete
-- The hot settle: completions by the worker that holds the claims. A row that still has its version has its retry_count
-- too. What others wait for is not among them.
WITH {batch}, clock AS MATERIALIZED (SELECT {now} AS now), done AS (
    {completing} AND t.feeds IS NULL
    {completed}
), {count_completed}
SELECT
    {missed} AS missed, '{}'::text[] AS claimable, '{}'::text[] AS finished, NULL AS counts, '{}'::text[] AS unseen
FROM (SELECT count(CASE WHEN awaited THEN pg_notify({done_channel}, id::text)::text END) FROM done) AS told

-- name: complete_feeding
-- The same for what others wait for, which it releases. A task that was linked while this waited for the parent's lock
-- is named by the parent, and not to be seen by this statement: another has to look.
WITH {batch}, clock AS MATERIALIZED (SELECT {now} AS now), done AS (
    {completing}
    {completed}
), {count_completed}, fed AS MATERIALIZED (
    -- In one order for everybody: two that end at once wait for each other and do not deadlock.
    SELECT child, count(DISTINCT id)::int AS number FROM done CROSS JOIN LATERAL unnest(feeds) AS f (child)
    GROUP BY child
    ORDER BY child
), released AS (
    UPDATE {schema}.tasks t SET
        waits = greatest(t.waits - fed.number, 0),
        updated_at = clock.now,
        (scheduled_at, ready) = (
            SELECT
                CASE WHEN free THEN due ELSE t.scheduled_at END,
                CASE WHEN free THEN t.state = 'pending' AND due <= clock.now ELSE t.ready END
            FROM (SELECT t.waits <= fed.number AND t.state IN ('pending', 'cancelled') AS free, {own_due} AS due) AS w
        )
    FROM clock, fed
    WHERE t.id = fed.child AND t.waits > 0
    RETURNING t.id, t.name, t.ready
)
SELECT
    {missed} AS missed, '{}'::text[] AS claimable, '{}'::text[] AS finished, NULL AS counts,
    ARRAY(SELECT child::text FROM fed EXCEPT SELECT id::text FROM released) AS unseen
FROM
    (SELECT count(CASE WHEN awaited THEN pg_notify({done_channel}, id::text)::text END) FROM done) AS told,
    (SELECT count(CASE WHEN {somebody_listens} THEN pg_notify({work_channel}, '=' || name)::text END)
     FROM (SELECT DISTINCT name FROM released WHERE ready) AS names) AS woken

-- name: completing
UPDATE {schema}.tasks t SET
        state = 'completed',
        version = t.version + 1,
        updated_at = clock.now,
        completed_at = clock.now,
        worker_id = NULL,
        last_worker_id = t.worker_id,
        run_ms = b.run_ms,
        locked_until = NULL,
        next_retry_at = NULL,
        result = b.result,
        error = NULL,
        unique_key = CASE t.unique_until WHEN 'elapsed' THEN t.unique_key END,
        ready = false
    FROM clock, {in_order} b
    WHERE t.id = b.id AND t.version = b.version AND t.worker_id = :worker_id::text

-- name: completed
RETURNING t.id, t.name, t.awaited, t.feeds, b.run_ms, b.bucket, b.waited_ms

-- name: count_completed
ended AS MATERIALIZED (
    -- Many rows are grouped once, and few twice.
    SELECT
        name, bucket, count(*) AS number, sum(run_ms) AS run_ms,
        {waited_bucket} AS waited_bucket, count(waited_ms) AS waited, sum(waited_ms) AS waited_ms
    FROM done
    GROUP BY name, bucket, waited_bucket
), counted AS (
    INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
    SELECT
        {this_minute}, name, 'completed', bucket, sum(number), sum(run_ms)
    FROM ended
    GROUP BY name, bucket
    UNION ALL
    SELECT
        {this_minute}, name, 'waited', waited_bucket, sum(waited),
        sum(waited_ms)
    FROM ended
    WHERE waited > 0
    GROUP BY name, waited_bucket
)

-- name: somebody_listens
EXISTS (
            SELECT FROM {schema}.task_workers
            WHERE listening AND stopped_at IS NULL
              AND seen_at > statement_timestamp() + :offset::interval - interval '1 minute'
        )

-- name: settle
-- The end of what others wait for, and an operator's way back from it, are written only by those who see to the others
-- as well (`feeding`). What was asked to stop, and has not completed, is cancelled: the row itself is looked at, behind any
-- wait for its lock.
WITH {batch}, clock AS MATERIALIZED (SELECT {now} AS now), done AS (
    UPDATE {schema}.tasks t SET
        version = t.version + 1,
        updated_at = clock.now,
        worker_id = NULL,
        last_worker_id = coalesce(t.worker_id, t.last_worker_id),
        run_ms = CASE WHEN b.bucket >= 0 THEN b.run_ms END,
        locked_until = NULL,
        result = b.result,
        (
            state, retry_count, completed_at, next_retry_at, scheduled_at, error, history, ready, cancel_requested_at,
            unique_key
        ) = (
            SELECT
                w.state,
                w.retry_count,
                CASE WHEN w.terminal THEN clock.now END,
                CASE WHEN w.state = 'failed' AND NOT w.terminal THEN clock.now + coalesce(w.due_in, interval '0') END,
                CASE WHEN w.state = 'pending' AND w.due_in IS NOT NULL THEN clock.now + w.due_in ELSE t.scheduled_at END,
                CASE WHEN w.state = 'completed' THEN NULL ELSE coalesce(w.error, t.error) END,
                CASE
                    WHEN w.entry IS NULL THEN t.history
                    ELSE CASE
                        WHEN jsonb_typeof(t.history) <> 'array' THEN '[]'
                        WHEN jsonb_array_length(t.history) >= :history_limit::int THEN t.history - 1
                        ELSE t.history
                    END || jsonb_build_array(w.entry || jsonb_build_object(
                        'ended',
                        to_char(clock.now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    ))
                END,
                NOT w.terminal AND w.state IN ('pending', 'failed') AND CASE
                    WHEN w.due_in IS NOT NULL THEN w.due_in <= interval '0'
                    ELSE w.state = 'failed' OR t.scheduled_at <= clock.now
                END,
                CASE WHEN w.state = 'pending' THEN NULL ELSE t.cancel_requested_at END,
                CASE WHEN NOT w.terminal OR t.unique_until = 'elapsed' THEN t.unique_key END
            FROM (
                SELECT b.state, b.retry_count, b.terminal, b.due_in, b.error, b.entry
                WHERE t.cancel_requested_at IS NULL OR b.asked_entry IS NULL
                UNION ALL
                SELECT 'cancelled', b.asked_retry_count, true, NULL, b.asked_error, b.asked_entry
                WHERE t.cancel_requested_at IS NOT NULL AND b.asked_entry IS NOT NULL
            ) AS w
        )
    FROM clock, {in_order} b
    WHERE t.id = b.id
      AND (b.version IS NULL OR t.version = b.version)
      AND t.worker_id IS NOT DISTINCT FROM b.worker_id
      AND (b.locked_until IS NULL OR t.locked_until = b.locked_until)
      AND (:feeding::boolean OR CASE
          WHEN b.leaves IS NOT NULL THEN t.feeds IS NULL AND t.waits = 0
          WHEN b.terminal OR (t.cancel_requested_at IS NOT NULL AND b.asked_entry IS NOT NULL) THEN t.feeds IS NULL
          ELSE true
      END)
    RETURNING
        t.id, t.name, t.awaited, t.ready, t.state, t.completed_at IS NOT NULL AS terminal, b.leaves, b.run_ms, b.bucket,
        b.waited_ms
), counted AS (
    INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
    SELECT
        {this_minute}, name,
        CASE WHEN terminal THEN state ELSE 'retried' END, bucket, count(*), sum(run_ms)
    FROM done
    WHERE terminal OR state = 'failed'
    GROUP BY 3, name, bucket
    UNION ALL
    SELECT
        {this_minute}, name, 'waited', {waited_bucket}, count(*),
        sum(waited_ms)
    FROM done
    WHERE waited_ms IS NOT NULL AND (terminal OR state = 'failed')
    GROUP BY name, 4
    UNION ALL
    SELECT 'epoch', name, leaves, -1, -count(*), 0
    FROM done
    WHERE leaves IS NOT NULL
    GROUP BY name, leaves
)
SELECT
    {missed} AS missed, '{}'::text[] AS claimable, '{}'::text[] AS finished, NULL AS counts, '{}'::text[] AS unseen
FROM (
    SELECT
        count(CASE WHEN awaited AND terminal THEN pg_notify({done_channel}, id::text)::text END),
        count(CASE WHEN ready AND {somebody_listens} THEN pg_notify({work_channel}, '=' || name)::text END)
    FROM done
) AS told

-- name: missed
-- Rare, so they are looked for only if the number says that there are any.
CASE WHEN (SELECT count(*) FROM done) < (SELECT count(*) FROM batch)
    THEN ARRAY(SELECT id::text FROM batch EXCEPT SELECT id::text FROM done) ELSE '{}' END

-- name: in_order
-- One order for everybody, so that settles and heartbeats of the same tasks wait for each other and do not deadlock.
(SELECT * FROM batch ORDER BY id)

-- name: extend
WITH {batch}
UPDATE {schema}.tasks t SET locked_until = {lease_now} + :duration::interval
FROM {in_order} b
WHERE t.id = b.id AND t.version = b.version AND t.worker_id = :worker_id::text
RETURNING t.id, t.version, t.cancel_requested_at IS NOT NULL
