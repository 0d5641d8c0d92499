-- Statements that are the same in every dialect. `{now}` is the database's clock with the offset of tests, `{lease_now}`
-- the clock that leases, heartbeats and rates go by, `{columns}` the columns of the rows that are wanted, `{batch}` a table
-- expression with the rows that go in. `{later :x}` and `{lease_later :x}` are as much later than the time at which the
-- statement begins, `{in_ids :x}` and `{in_texts :x}` hold for the members of a list, and `{by_...}` names an index for
-- SQLite, which is told; what the planner of PostgreSQL cannot look into it does by itself.

-- name: add_token
INSERT INTO {schema}.task_tokens (id, label, role, digest, created_at)
VALUES (:id, :label, :role, :digest, {now})
ON CONFLICT DO NOTHING
RETURNING id

-- name: tokens
SELECT {columns} FROM {schema}.task_tokens ORDER BY created_at, id

-- name: revoke_token
UPDATE {schema}.task_tokens SET revoked_at = {now} WHERE id = :id AND revoked_at IS NULL RETURNING id

-- name: add_audit
WITH {batch}
INSERT INTO {schema}.task_audit (at, actor, action, task_id, name, detail, bulk_id, done)
SELECT {now}, actor, action, task_id, name, detail, bulk_id, done FROM batch

-- name: list_audit
SELECT {columns} FROM {schema}.task_audit WHERE {where} ORDER BY number DESC LIMIT :limit

-- name: alerts
SELECT {columns} FROM {schema}.task_alerts ORDER BY name

-- name: put_alert
INSERT INTO {schema}.task_alerts AS t (name, state, since, text, fired_at, over_at, told, tries, try_at, version)
VALUES (:name, :state, :since, :text, :fired_at, :over_at, :told, :tries, :try_at, :version)
ON CONFLICT (name) DO UPDATE SET
    state = excluded.state,
    since = excluded.since,
    text = excluded.text,
    fired_at = excluded.fired_at,
    over_at = excluded.over_at,
    told = excluded.told,
    tries = excluded.tries,
    try_at = excluded.try_at,
    version = excluded.version
WHERE t.version = excluded.version - 1
RETURNING name

-- name: list_audit_folded
-- Of a mass action its first batch, with what all of them did, to all types or to the one that was asked for: where it
-- stands in the trail does not change. Its type is that of all its tasks, if they have one.
SELECT {columns} FROM (
    SELECT number, at, actor, action, task_id, detail, bulk_id, CASE WHEN bulk_id IS NULL THEN name ELSE (
        SELECT CASE WHEN min(b.name) = max(b.name) THEN min(b.name) END
        FROM {schema}.task_audit AS b WHERE b.bulk_id = a.bulk_id AND b.task_id IS NULL AND {type_of_b}
    ) END AS name, CASE WHEN bulk_id IS NULL THEN done ELSE (
        SELECT sum(b.done) FROM {schema}.task_audit AS b
        WHERE b.bulk_id = a.bulk_id AND b.task_id IS NULL AND {type_of_b}
    ) END AS done
    FROM {schema}.task_audit AS a
    WHERE {type_of_a} AND (bulk_id IS NULL OR task_id IS NULL) AND (bulk_id IS NULL OR NOT EXISTS (
        SELECT 1 FROM {schema}.task_audit AS b
        WHERE b.bulk_id = a.bulk_id AND b.task_id IS NULL AND b.number < a.number AND {type_of_b}
    ))
) AS listed
WHERE {where} ORDER BY number DESC LIMIT :limit

-- name: clock
SELECT {now} AS now

-- name: get
SELECT {columns} FROM {schema}.tasks AS t {by_id} WHERE id {in_ids :ids}

-- name: existing
SELECT id FROM {schema}.tasks AS t {by_id} WHERE id {in_ids :ids}

-- name: failures
-- Behind a fence: beside the condition on `completed_at` the planner would take an index that has the ids in another order.
SELECT {columns} FROM (SELECT t.* FROM {schema}.tasks AS t {by_id} WHERE t.id {in_ids :ids} {fence}) AS t
WHERE completed_at IS NOT NULL

-- name: get_by_key
SELECT {columns} FROM {schema}.tasks WHERE idempotency_key = :key

-- name: stats_finished
SELECT name, state, sum(count) FROM {schema}.task_counts
WHERE state IN ('completed', 'failed', 'cancelled')
GROUP BY name, state

-- name: series
SELECT
    {step_of_minute} AS minute, name, state, bucket,
    CAST(sum(count) AS bigint) AS count, CAST(sum(run_ms) AS bigint) AS run_ms
FROM {schema}.task_counts
WHERE minute > '1970-01-01T00:00:00.000Z' AND minute >= {later :since} AND minute < {later :until}
    AND state NOT IN ('backlog', 'level')
    AND (CAST(:name AS text) IS NULL OR name IN ('', CAST(:name AS text)))
GROUP BY 1, name, state, bucket
ORDER BY 1, name, state, bucket

-- name: backlog_history
SELECT
    {step_of_minute} AS minute, name,
    CAST(max(run_ms / 1000.0) AS double precision) AS seconds, max(count) AS depth
FROM {schema}.task_counts
WHERE minute > '1970-01-01T00:00:00.000Z' AND minute >= {later :since} AND minute < {later :until}
    AND state = 'backlog' AND (CAST(:name AS text) IS NULL OR name IN ('', CAST(:name AS text)))
GROUP BY 1, name
ORDER BY 1, name

-- name: latest_cells
SELECT minute, name, state, bucket, CAST(sum(count) AS bigint) AS count, CAST(sum(run_ms) AS bigint) AS run_ms
FROM {schema}.task_counts
WHERE minute >= :since AND state {in_texts :states}
GROUP BY minute, name, state, bucket

-- name: take_hours
DELETE FROM {schema}.task_counts
WHERE minute > '1970-01-01T00:00:00.000Z' AND minute < {later :kept}
RETURNING {columns}

-- name: note_versions
INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
SELECT '1970-01-01T00:00:00.000Z', version, 'version', -1, 1, {first_started_ms}
FROM {schema}.task_workers AS w
WHERE version IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM {schema}.task_counts AS c
    WHERE c.minute = '1970-01-01T00:00:00.000Z' AND c.state = 'version' AND c.name = w.version
)
GROUP BY version

-- name: clock_if_unsampled
SELECT {now} AS now WHERE NOT EXISTS (
    SELECT 1 FROM {schema}.task_counts WHERE minute = {this_minute} AND state = 'level'
)

-- name: sampled
SELECT 1 FROM {schema}.task_counts WHERE minute = :minute AND state = 'level' LIMIT 1

-- name: versions
SELECT name AS version, min(run_ms) AS started_ms FROM {schema}.task_counts
WHERE minute = '1970-01-01T00:00:00.000Z' AND state = 'version'
GROUP BY name
ORDER BY 2, 1

-- name: heartbeat
INSERT INTO {schema}.task_workers
    (id, hostname, pid, version, names, queues, concurrency, running, listening, started_at, seen_at)
VALUES (:id, :hostname, :pid, :version, :names, :queues, :concurrency, :running, :listening, {now}, {lease_now})
ON CONFLICT (id) DO UPDATE SET
    names = excluded.names,
    queues = excluded.queues,
    concurrency = excluded.concurrency,
    running = excluded.running,
    listening = excluded.listening,
    seen_at = excluded.seen_at,
    stopped_at = NULL
RETURNING {columns}

-- name: request_drain
UPDATE {schema}.task_workers SET drain_requested_at = {now}, drain_requested_by = :by
WHERE id = :id AND stopped_at IS NULL AND drain_requested_at IS NULL
RETURNING id

-- name: deregister_worker
UPDATE {schema}.task_workers SET stopped_at = {now}, listening = false, running = 0 WHERE id = :id

-- name: lost_leases
-- What runs under leases that have ended, or by workers that are gone.
SELECT {columns} FROM {schema}.tasks AS t {by_running}
WHERE t.state = 'running' AND (t.locked_until IS NULL OR t.locked_until <= {lease_now} OR EXISTS (
    SELECT 1 FROM {schema}.task_workers AS w
    WHERE w.id = t.worker_id AND (w.stopped_at IS NOT NULL OR w.seen_at < {lease_later :silence})
))
ORDER BY t.locked_until NULLS FIRST, t.id
LIMIT :limit

-- name: claim_by_id
-- If it is due, at the version that was seen, and not paused; where a limit concerns it, only `under_limits`.
UPDATE {schema}.tasks AS t {by_id} SET
    state = 'running',
    worker_id = :worker_id,
    locked_until = {lease_end},
    started_at = clock.now,
    updated_at = clock.now,
    next_retry_at = NULL,
    cancel_requested_at = NULL,
    ready = false,
    unique_key = CASE WHEN unique_until <> 'started' THEN unique_key END,
    version = version + 1
FROM (SELECT {now} AS now) AS clock
WHERE id = :id AND version = :version AND state IN ('pending', 'failed') AND completed_at IS NULL
    AND coalesce(next_retry_at, scheduled_at) <= clock.now
    AND NOT EXISTS (
        SELECT 1 FROM {schema}.task_controls AS c
        WHERE c.name IN ('', t.name) AND (c.paused OR (
            NOT :under_limits AND (c.concurrency IS NOT NULL OR coalesce(c.operator_rate, c.default_rate, 0) <> 0)
        ))
    )
RETURNING {columns}

-- name: claims_of_worker
SELECT {columns} FROM {schema}.tasks AS t {by_running}
WHERE state = 'running' AND worker_id = :worker_id
ORDER BY priority DESC, created_at, id

-- name: leases
-- Those that have ended, and those that end soon. No index is named: the check-up works when one is missing, too.
SELECT
    count(*) FILTER (WHERE locked_until <= {lease_now}),
    count(*) FILTER (WHERE locked_until > {lease_now} AND locked_until <= {lease_later :soon})
FROM {schema}.tasks
WHERE state = 'running'

-- name: forget_workers
-- Those whose claims the lease would not have ended yet are kept: they are how the janitor knows.
DELETE FROM {schema}.task_workers AS w
WHERE (stopped_at < {later :kept} OR seen_at < {lease_later :kept}) AND NOT EXISTS (
    SELECT 1 FROM {schema}.tasks AS t {by_running} WHERE t.state = 'running' AND t.worker_id = w.id
)

-- name: workers
SELECT {columns} FROM (SELECT *, {now} AS now, {lease_now} AS lease_now FROM {schema}.task_workers) AS w
ORDER BY started_at, id

-- name: publish_types
-- In one order, whoever publishes: none waits for another that waits for it.
WITH {batch}
INSERT INTO {schema}.task_types (name, options, schema, published_at)
SELECT name, options, schema, {now} FROM batch WHERE true ORDER BY name
ON CONFLICT (name) DO UPDATE SET
    options = excluded.options,
    schema = excluded.schema,
    published_at = excluded.published_at

-- name: published_types
SELECT {columns} FROM {schema}.task_types ORDER BY name

-- name: controls
SELECT {columns} FROM {schema}.task_controls ORDER BY name

-- name: lock_controls
SELECT {columns} FROM {schema}.task_controls WHERE name {in_texts :names} ORDER BY name {for_update}

-- name: count_running
-- Under the empty name, if it is asked for, all of them.
SELECT name, count(*) FROM {schema}.tasks AS t {by_running} WHERE state = 'running' AND name {in_texts :names} GROUP BY name
UNION ALL
SELECT '', count(*) FROM {schema}.tasks AS t {by_running} WHERE state = 'running' AND '' {in_texts :names}

-- name: add_control
INSERT INTO {schema}.task_controls (name) VALUES (:name) ON CONFLICT (name) DO NOTHING

-- name: set_control
UPDATE {schema}.task_controls SET
    paused = :paused,
    operator_rate = :operator_rate,
    default_rate = :default_rate,
    concurrency = :concurrency,
    tokens = :tokens,
    refilled_at = coalesce(:refilled_at, {lease_now}),
    paused_by = :paused_by,
    paused_at = :paused_at
WHERE name = :name

-- name: set_copy_of
WITH {batch}
UPDATE {schema}.tasks SET copy_of = :copy_of WHERE id IN (SELECT id FROM batch)

-- name: insert
WITH {batch}
{new_rows}
WHERE {workers_told}

-- name: insert_dated
WITH {batch}
{new_rows}
WHERE {workers_told}
RETURNING {columns}

-- name: insert_unique
-- Those that were stored. What a key or an id of another keeps out is looked at afterwards. In one order for everybody, as
-- below.
WITH {batch}
{new_rows}
WHERE {workers_told}
ORDER BY name, unique_key, id
ON CONFLICT DO NOTHING
RETURNING {columns}

-- name: clear_unique
UPDATE {schema}.tasks AS t {by_id} SET unique_key = NULL WHERE id {in_ids :ids}

-- name: restore
-- None is ready: a claim promotes what is due. In one order for everybody, so that two batches with the same keys wait for
-- each other and do not deadlock.
WITH {batch}
INSERT INTO {schema}.tasks ({task_columns}, ready)
SELECT {task_columns}, false FROM batch WHERE true ORDER BY idempotency_key, id
ON CONFLICT DO NOTHING
RETURNING id

-- name: prunable
-- In one stretch of the primary key.
SELECT {columns} FROM (
    SELECT id, state, completed_at, feeds FROM {schema}.tasks AS t {by_id} WHERE id >= :start ORDER BY id LIMIT :stretch
) AS stretch
WHERE state {in_texts :states} AND completed_at <= {later :age}
ORDER BY id
LIMIT :limit

-- name: stretch_end
SELECT id FROM {schema}.tasks AS t {by_id} WHERE id >= :start ORDER BY id LIMIT 1 OFFSET CAST(:stretch AS bigint) - 1

-- name: prune
-- The counters follow by the table's trigger. With coalesce (as text, too, 'infinity' is behind all times), so that to
-- PostgreSQL no index of finished tasks seems to serve it: by id is the way.
DELETE FROM {schema}.tasks AS t {by_id}
WHERE id {in_ids :ids} AND state {in_texts :states}
    AND coalesce(completed_at, 'infinity') <= {later :age} AND {not_awaited}
RETURNING state

-- name: count_old
SELECT count(*) FROM {schema}.tasks WHERE state {in_texts :states} AND completed_at <= {later :age}

-- name: add_steps
WITH {batch}
INSERT INTO {schema}.task_steps (task_id, name, value, at) SELECT task_id, name, value, {now} FROM batch

-- name: forget_steps
DELETE FROM {schema}.task_steps
WHERE NOT EXISTS (SELECT 1 FROM {schema}.tasks AS t {by_id} WHERE t.id = task_steps.task_id)
    AND (name <> 'deleted' OR at <= {later :kept})

-- name: deleted_lately
-- Those that were deleted when they were young: their submit may be repeated.
SELECT task_id AS id FROM {schema}.task_steps WHERE name = 'deleted' AND task_id {in_ids :ids}

-- name: watch
UPDATE {schema}.tasks SET awaited = true WHERE id = :id AND completed_at IS NULL AND NOT awaited RETURNING {columns}

-- name: schema_version
SELECT coalesce(max(version), 0) FROM {schema}.task_migrations

-- name: record_migration
INSERT INTO {schema}.task_migrations (version, name) VALUES (:version, :name)

-- name: spend_tokens
WITH {batch}
UPDATE {schema}.task_controls AS c SET tokens = b.tokens, refilled_at = b.refilled_at
FROM batch AS b
WHERE c.name = b.name

-- name: schedules
SELECT {columns} FROM {schema}.task_schedules ORDER BY name

-- name: schedules_named
SELECT {columns} FROM {schema}.task_schedules WHERE name IN (SELECT name FROM {given_names} AS given) ORDER BY name

-- name: add_schedules
-- In one order, whoever declares: none waits for another that waits for it.
WITH {batch}
INSERT INTO {schema}.task_schedules
    (name, declared, operator, paused, version, next_at, declared_at, code_at, runs, fired, missed, created_at, updated_at)
SELECT name, declared, operator, paused, 1, next_at, declared_at, code_at, runs, fired, missed, {now}, {now}
FROM batch WHERE true ORDER BY name
ON CONFLICT (name) DO NOTHING
RETURNING name

-- name: set_schedules
WITH {batch}
UPDATE {schema}.task_schedules AS s SET
    declared = b.declared,
    operator = b.operator,
    paused = b.paused,
    version = b.version + 1,
    next_at = b.next_at,
    declared_at = b.declared_at,
    code_at = b.code_at,
    runs = b.runs,
    fired = b.fired,
    missed = b.missed,
    updated_at = {now}
FROM batch AS b
WHERE s.name = b.name AND s.version = b.version

-- name: delete_schedule
DELETE FROM {schema}.task_schedules WHERE name = :name AND version = :version RETURNING name

-- name: next_schedule
-- Those of code that no worker has any more do not fire.
SELECT {columns} FROM {schema}.task_schedules
WHERE next_at IS NOT NULL AND (declared_at IS NULL OR declared_at > {later :kept})

-- name: next_schedule_after
SELECT {columns} FROM {schema}.task_schedules
WHERE next_at > :now_at AND (declared_at IS NULL OR declared_at > :declared_after)

-- name: due_schedules
SELECT {columns} FROM {schema}.task_schedules
WHERE next_at <= :now_at AND (declared_at IS NULL OR declared_at > :declared_after)
ORDER BY next_at, name
LIMIT :limit

-- name: keep_schedules
UPDATE {schema}.task_schedules SET declared_at = {now}
WHERE name IN (SELECT name FROM {given_names} AS given) AND declared_at IS NOT NULL

-- name: ends
{get}

-- name: parents
{get}

-- name: fed_tasks
SELECT {columns} FROM {schema}.tasks AS t {by_id} WHERE id {in_ids :ids} AND feeds IS NOT NULL

-- name: parent_steps
SELECT {columns} FROM {schema}.task_steps
WHERE task_id {in_ids :ids} AND name LIKE 'after:%'
ORDER BY task_id, name

-- name: flow_ids
SELECT id FROM {schema}.tasks AS t {by_flow} WHERE flow_id = :flow_id ORDER BY id LIMIT :limit
