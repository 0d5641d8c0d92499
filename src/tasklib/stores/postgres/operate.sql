-- Heartbeats, lost leases, operators and housekeeping.

-- name: now
SELECT clock_timestamp() + $1::interval;

-- name: beat
INSERT INTO {schema}.task_workers AS w
    (id, hostname, pid, names, concurrency, running, listening, started_at, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8::interval, clock_timestamp() + $8::interval)
ON CONFLICT (id) DO UPDATE SET
    names = excluded.names,
    concurrency = excluded.concurrency,
    running = excluded.running,
    listening = excluded.listening,
    seen_at = excluded.seen_at,
    stopped_at = NULL;

-- name: farewell
UPDATE {schema}.task_workers SET stopped_at = clock_timestamp() + $2::interval, listening = false, running = 0
WHERE id = $1;

-- name: lost_leases
SELECT {columns}
FROM {schema}.tasks t
WHERE t.state = 'running' AND (
    coalesce(t.locked_until, '-infinity') < statement_timestamp() + $1::interval
    OR EXISTS (
        SELECT FROM {schema}.task_workers w
        WHERE w.id = t.worker_id
          AND (w.stopped_at IS NOT NULL OR w.seen_at < statement_timestamp() + $1::interval - $2::interval)
    )
)
ORDER BY t.locked_until NULLS FIRST, t.id
LIMIT $3;

-- name: request_cancel
UPDATE {schema}.tasks SET
    cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp() + $2::interval),
    updated_at = clock_timestamp() + $2::interval
WHERE id = ANY ($1::uuid[]) AND state = 'running'
RETURNING id;

-- name: delete
-- The counters follow by the table's trigger. What is written with coalesce, here and below, is so that no index of
-- finished tasks seems to serve it: by id is the way.
WITH batch AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::int[]) AS b (id, version)
)
DELETE FROM {schema}.tasks t USING batch b
WHERE t.id = b.id AND t.version = b.version AND coalesce(t.completed_at, 'infinity') < 'infinity'
RETURNING t.id, t.version;

-- name: existing
SELECT id FROM {schema}.tasks WHERE id = ANY ($1::uuid[]);

-- name: prune
-- One stretch of the primary key, oldest first: $4 where to begin, $5 how many rows to look at, $6 how many to delete.
-- Answers with how many went, and the last id looked at (NULL: the end of the table was reached).
WITH stretch AS MATERIALIZED (
    SELECT id, state, completed_at FROM {schema}.tasks
    WHERE id > $4::uuid
    ORDER BY id
    LIMIT $5
), old AS MATERIALIZED (
    SELECT id FROM stretch
    WHERE state = ANY ($1::text[]) AND completed_at < statement_timestamp() + $2::interval - $3::interval
    ORDER BY id
    LIMIT $6
), gone AS (
    DELETE FROM {schema}.tasks
    WHERE id = ANY (ARRAY(SELECT id FROM old))
      AND state = ANY ($1::text[])
      AND coalesce(completed_at, 'infinity') < statement_timestamp() + $2::interval - $3::interval
    RETURNING id
)
SELECT
    (SELECT count(*) FROM gone),
    CASE
        WHEN (SELECT count(*) FROM old) = $6 THEN (SELECT id FROM old ORDER BY id DESC LIMIT 1)
        WHEN (SELECT count(*) FROM stretch) = $5 THEN (SELECT id FROM stretch ORDER BY id DESC LIMIT 1)
    END;

-- name: count_old
SELECT count(*) FROM {schema}.tasks
WHERE state = ANY ($1::text[]) AND completed_at < statement_timestamp() + $2::interval - $3::interval;

-- name: tidy_lock
SELECT pg_try_advisory_xact_lock(hashtext('tasklib.tidy'), hashtext({schema_name}));

-- name: sample
-- Into the counters, as sums that can be merged: how many samples, and their ages in milliseconds. Nothing is read where
-- this minute has one. The empty name is the oldest of all, also when nothing waits: that was seen too.
INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
SELECT date_trunc('minute', statement_timestamp() + $1::interval), coalesce(name, ''), 'backlog', -1, 1,
    coalesce(1000 * greatest(0, extract(epoch FROM statement_timestamp() + $1::interval - min(due))), 0)::bigint
FROM (
    SELECT name, coalesce(next_retry_at, scheduled_at) AS due
    FROM {schema}.tasks
    WHERE ready AND state IN ('pending', 'failed') AND completed_at IS NULL
      AND NOT EXISTS (
          SELECT FROM {schema}.task_counts
          WHERE minute = date_trunc('minute', statement_timestamp() + $1::interval) AND state = 'backlog'
      )
) AS waiting
GROUP BY GROUPING SETS ((name), ())
HAVING NOT EXISTS (
    SELECT FROM {schema}.task_counts
    WHERE minute = date_trunc('minute', statement_timestamp() + $1::interval) AND state = 'backlog'
);

-- name: merge_minutes
-- Rows of the last hours that say the same minute, and the epoch's. Older ones are merged when they become hours.
WITH doubled AS MATERIALIZED (
    SELECT minute, name, state, bucket FROM {schema}.task_counts
    WHERE minute = 'epoch'
       OR minute BETWEEN statement_timestamp() + $1::interval - interval '3 hours'
                     AND statement_timestamp() + $1::interval - interval '2 minutes'
    GROUP BY minute, name, state, bucket
    HAVING count(*) > 1
), gone AS (
    DELETE FROM {schema}.task_counts c USING doubled d
    WHERE c.minute = d.minute AND c.name = d.name AND c.state = d.state AND c.bucket = d.bucket
    RETURNING c.*
)
INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
SELECT minute, name, state, bucket, sum(count), sum(run_ms) FROM gone
GROUP BY minute, name, state, bucket;

-- name: merge_hours
WITH gone AS (
    DELETE FROM {schema}.task_counts
    WHERE minute > 'epoch'
      AND minute < date_trunc('hour', (statement_timestamp() + $1::interval) AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
                   - interval '2 days'
      AND minute <> date_trunc('hour', minute AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
    RETURNING *
)
INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
SELECT date_trunc('hour', minute AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', name, state, bucket, sum(count), sum(run_ms)
FROM gone
GROUP BY 1, name, state, bucket;

-- name: merge_epoch
WITH gone AS (
    DELETE FROM {schema}.task_counts
    WHERE minute > 'epoch' AND minute < statement_timestamp() + $1::interval - interval '60 days'
    RETURNING *
)
INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
SELECT 'epoch', name, state, -1, sum(count), sum(run_ms) FROM gone
GROUP BY name, state;

-- name: forget_workers
-- Those whose claims the lease would not have ended yet are kept: they are how the janitor knows.
DELETE FROM {schema}.task_workers w
WHERE (
    stopped_at < statement_timestamp() + $1::interval - interval '1 hour'
    OR seen_at < statement_timestamp() + $1::interval - interval '1 day'
) AND NOT EXISTS (SELECT FROM {schema}.tasks t WHERE t.state = 'running' AND t.worker_id = w.id);

-- name: set_controls
-- Each value comes with a flag: whether it is to be set at all. A changed rate starts with a full bucket.
INSERT INTO {schema}.task_controls AS c
    (name, paused, operator_rate, default_rate, concurrency, tokens, refilled_at)
VALUES (
    $1,
    CASE WHEN $2::boolean THEN $3::boolean ELSE false END,
    CASE WHEN $4::boolean THEN $5::double precision END,
    CASE WHEN $6::boolean THEN $7::double precision END,
    CASE WHEN $8::boolean THEN $9::int END,
    greatest(1, coalesce(CASE WHEN $4 THEN $5 END, CASE WHEN $6 THEN $7 END, 1)),
    clock_timestamp() + $10::interval
)
ON CONFLICT (name) DO UPDATE SET
    paused = CASE WHEN $2 THEN $3 ELSE c.paused END,
    operator_rate = CASE WHEN $4 THEN $5 ELSE c.operator_rate END,
    default_rate = CASE WHEN $6 THEN $7 ELSE c.default_rate END,
    concurrency = CASE WHEN $8 THEN $9 ELSE c.concurrency END,
    tokens = CASE
        WHEN c.rate IS NOT DISTINCT FROM nullif(coalesce(
            CASE WHEN $4 THEN $5 ELSE c.operator_rate END, CASE WHEN $6 THEN $7 ELSE c.default_rate END), 0)
        THEN c.tokens
        ELSE greatest(1, coalesce(
            CASE WHEN $4 THEN $5 ELSE c.operator_rate END, CASE WHEN $6 THEN $7 ELSE c.default_rate END, 1))
    END,
    refilled_at = CASE
        WHEN c.rate IS NOT DISTINCT FROM nullif(coalesce(
            CASE WHEN $4 THEN $5 ELSE c.operator_rate END, CASE WHEN $6 THEN $7 ELSE c.default_rate END), 0)
        THEN c.refilled_at
        ELSE excluded.refilled_at
    END
RETURNING name, paused, rate, concurrency, operator_rate, default_rate, pg_notify({work_channel}, '!')::text;

-- name: controls
SELECT name, paused, rate, concurrency, operator_rate, default_rate FROM {schema}.task_controls
WHERE paused OR operator_rate IS NOT NULL OR default_rate IS NOT NULL OR concurrency IS NOT NULL
ORDER BY name;
