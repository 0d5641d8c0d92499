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
-- finished tasks seems to serve it: by id is the way.
WITH {batch}
DELETE FROM {schema}.tasks t USING batch b
WHERE t.id = b.id AND t.version = b.version AND coalesce(t.completed_at, 'infinity') < 'infinity'
RETURNING t.id, t.version

-- name: existing
SELECT id FROM {schema}.tasks WHERE id = ANY (:ids::uuid[])

-- name: prunable
-- In one stretch of the primary key.
SELECT id FROM (
    SELECT id, state, completed_at FROM {schema}.tasks WHERE id >= :start::uuid ORDER BY id LIMIT :stretch
) AS stretch
WHERE state = ANY (:states::text[]) AND completed_at <= {now} + :age::interval
ORDER BY id
LIMIT :limit

-- name: stretch_end
SELECT id FROM {schema}.tasks WHERE id >= :start::uuid ORDER BY id LIMIT 1 OFFSET :stretch::bigint - 1

-- name: prune
DELETE FROM {schema}.tasks
WHERE id = ANY (:ids::uuid[]) AND state = ANY (:states::text[])
  AND coalesce(completed_at, 'infinity') <= {now} + :age::interval
RETURNING state

-- name: count_old
SELECT count(*) FROM {schema}.tasks WHERE state = ANY (:states::text[]) AND completed_at <= {now} + :age::interval

-- name: sample_lock
SELECT 1 FROM pg_advisory_xact_lock(hashtext('tasklib.sample'), hashtext({schema_name}))

-- name: latest_cells
SELECT minute, name, state, bucket, sum(count)::bigint AS count, sum(run_ms)::bigint AS run_ms FROM {schema}.task_counts
WHERE minute >= :since::timestamptz AND state = ANY (:states::text[])
GROUP BY minute, name, state, bucket

-- name: note_versions
INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
SELECT 'epoch', version, 'version', -1, 1, (1000 * extract(epoch FROM min(started_at)))::bigint
FROM {schema}.task_workers AS w
WHERE version IS NOT NULL AND NOT EXISTS (
    SELECT FROM {schema}.task_counts AS c WHERE c.minute = 'epoch' AND c.state = 'version' AND c.name = w.version
)
GROUP BY version

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

-- name: take_hours
DELETE FROM {schema}.task_counts WHERE minute > 'epoch' AND minute < {now} + :kept::interval RETURNING {columns}

-- name: add_counts
WITH {batch}
INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
SELECT minute, name, state, bucket, count, run_ms FROM batch

-- name: forget_workers
-- Those whose claims the lease would not have ended yet are kept: they are how the janitor knows.
DELETE FROM {schema}.task_workers w
WHERE (stopped_at < {now} + :kept::interval OR seen_at < {now} + :kept::interval)
  AND NOT EXISTS (SELECT FROM {schema}.tasks t WHERE t.state = 'running' AND t.worker_id = w.id)

-- name: restore
-- None is ready: a claim promotes what is due. In one order for everybody, so that two batches with the same keys wait for
-- each other and do not deadlock.
WITH {batch}
INSERT INTO {schema}.tasks ({task_columns}, ready)
SELECT {task_columns}, false FROM batch
ORDER BY idempotency_key, id
ON CONFLICT DO NOTHING
RETURNING id
