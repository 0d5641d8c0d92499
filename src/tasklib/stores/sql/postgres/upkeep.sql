-- Operators, pruning, and the counters behind the charts.

-- name: request_cancel
-- Told as `cancel_message` says it.
WITH asked AS (
    UPDATE {schema}.tasks SET cancel_requested_at = coalesce(cancel_requested_at, {now}), updated_at = {now}
    WHERE id = ANY (:ids::uuid[]) AND state = 'running'
    RETURNING id
), told AS (
    SELECT pg_notify({work_channel}, '-' || CASE WHEN count(*) <= :most_named THEN string_agg(id::text, ',') ELSE '' END)
    FROM asked HAVING count(*) > 0
)
SELECT asked.id FROM asked, told

-- name: delete
-- The counters follow by the table's trigger. What is written with coalesce, here and below, is so that no index of
-- finished tasks seems to serve it: by id is the way. Of young ones it is remembered: their submit may be repeated.
WITH {batch}, gone AS (
    DELETE FROM {schema}.tasks t USING batch b
    WHERE t.id = b.id AND t.version = b.version AND coalesce(t.completed_at, 'infinity') < 'infinity' AND {not_awaited}
    RETURNING t.id, t.version, t.created_at
), remembered AS (
    INSERT INTO {schema}.task_steps (task_id, name, value, at)
    SELECT id, 'deleted', 'null', {now} FROM gone WHERE created_at > {now} + :young::interval
    ON CONFLICT DO NOTHING
)
SELECT id, version FROM gone

-- name: not_awaited
-- What others wait for goes when they are over, and only with `fed`.
CASE WHEN t.feeds IS NULL THEN true WHEN NOT :fed::boolean THEN false ELSE NOT EXISTS (
    SELECT FROM {schema}.tasks c WHERE c.id = ANY (t.feeds) AND c.completed_at IS NULL
) END

-- name: sample_lock
SELECT 1 FROM pg_advisory_xact_lock(hashtext('tasklib.sample'), hashtext({schema_name}))

-- name: compact_lock
SELECT 1 WHERE pg_try_advisory_xact_lock(hashtext('tasklib.tidy'), hashtext({schema_name}))

-- name: take_doubled_counts
-- Rows of the last hours that say the same minute, and the epoch's: a settle adds its own and never waits for another's.
-- Older ones are merged when they become hours.
WITH doubled AS MATERIALIZED (
    SELECT minute, name, state, bucket FROM {schema}.task_counts
    WHERE minute = 'epoch'
       OR minute BETWEEN statement_timestamp() + :offset::interval - interval '3 hours'
                     AND statement_timestamp() + :offset::interval - interval '2 minutes'
    GROUP BY minute, name, state, bucket
    HAVING count(*) > 1
)
DELETE FROM {schema}.task_counts c USING doubled d
WHERE c.minute = d.minute AND c.name = d.name AND c.state = d.state AND c.bucket = d.bucket
RETURNING c.minute, c.name, c.state, c.bucket, c.count, c.run_ms

-- name: take_minutes
DELETE FROM {schema}.task_counts
WHERE minute > 'epoch'
  AND minute < date_trunc('hour', ({now}) AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + :kept::interval
  AND minute <> date_trunc('hour', minute AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
RETURNING {columns}

-- name: add_counts
WITH {batch}
INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
SELECT minute, name, state, bucket, count, run_ms FROM batch
