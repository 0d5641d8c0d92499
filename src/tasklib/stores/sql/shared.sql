-- Statements that are the same in every dialect. `{now}` is the database's clock with the offset of tests, `{lease_now}`
-- the clock that leases, heartbeats and rates go by, `{columns}` the columns of the rows that are wanted, `{batch}` a table
-- expression with the rows that go in.

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
-- Of a mass action its first batch, with what all of them did: where it stands in the trail does not change.
SELECT {columns} FROM (
    SELECT number, at, actor, action, task_id, name, detail, bulk_id, CASE WHEN bulk_id IS NULL THEN done ELSE (
        SELECT sum(b.done) FROM {schema}.task_audit AS b WHERE b.bulk_id = a.bulk_id AND b.task_id IS NULL
    ) END AS done
    FROM {schema}.task_audit AS a
    WHERE (bulk_id IS NULL OR task_id IS NULL) AND (bulk_id IS NULL OR NOT EXISTS (
        SELECT 1 FROM {schema}.task_audit AS b
        WHERE b.bulk_id = a.bulk_id AND b.task_id IS NULL AND b.number < a.number
    ))
) AS listed
WHERE {where} ORDER BY number DESC LIMIT :limit

-- name: now
SELECT {now} AS now

-- name: get_by_key
SELECT {columns} FROM {schema}.tasks WHERE idempotency_key = :key

-- name: stats_finished
SELECT name, state, sum(count) FROM {schema}.task_counts
WHERE state IN ('completed', 'failed', 'cancelled')
GROUP BY name, state

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

-- name: workers
SELECT {columns} FROM (SELECT *, {now} AS now, {lease_now} AS lease_now FROM {schema}.task_workers) AS w
ORDER BY started_at, id

-- In one order, whoever publishes: none waits for another that waits for it.
-- name: publish_types
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

-- In one order, whoever declares: none waits for another that waits for it.
-- name: add_schedules
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

-- name: keep_schedules
UPDATE {schema}.task_schedules SET declared_at = {now}
WHERE name IN (SELECT name FROM {given_names} AS given) AND declared_at IS NOT NULL
