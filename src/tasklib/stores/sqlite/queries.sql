-- Statements of the SQLite store. `<rows>` is filled with a VALUES list (the parameters before it are named in a first
-- WITH, so that they are ?1 and ?2), `<..._columns>` with the lists below. Rows come out as one JSON text (batches.py
-- says why). Times are compared as text: they are all written in one form.

-- name: task_columns
t.id, t.name, t.state, t.scheduled_at, t.created_at, t.updated_at, t.started_at, t.completed_at, t.next_retry_at,
t.args, t.kwargs, t.result, t.error, t.retry_count, t.max_retries, t.worker_id, t.locked_until, t.timeout_seconds,
t.priority, t.tags, t.cancel_requested_at, t.version, t.idempotency_key, t.retry_policy, t.history, t.trace

-- name: claim_columns
t.id, t.name, t.version, t.worker_id, t.kwargs, t.retry_count, t.max_retries, t.timeout_seconds, t.retry_policy,
t.started_at, t.tags, t.trace,
(t.max_retries >= 0 AND t.retry_count >= t.max_retries)
    OR (t.retry_count > 0 AND json_valid(t.history) AND coalesce(json_extract(t.history, '$[#-1].lost'), 0) = 1),
t.retry_count > 0 AND json_valid(t.history) AND coalesce(json_extract(t.history, '$[#-1].lost'), 0) = 1 AND (
    (t.max_retries >= 0 AND t.retry_count >= t.max_retries) OR coalesce(json_extract(t.history, '$[#-2].lost'), 0) = 1
)

-- What this machine's processes add to the time since it started (clock.py says why), in the row for what has no minute.
-- name: steady_clock
SELECT count FROM task_counts
WHERE minute = '1970-01-01T00:00:00.000Z' AND name = :boot AND state = 'clock' AND bucket = -1

-- name: set_steady_clock
INSERT INTO task_counts (minute, name, state, bucket, count, run_ms)
VALUES ('1970-01-01T00:00:00.000Z', :boot, 'clock', -1, :added_ms, 0)
ON CONFLICT DO NOTHING

-- Those of earlier starts; containers with other time namespaces have theirs beside this one.
-- name: forget_steady_clocks
DELETE FROM task_counts
WHERE minute = '1970-01-01T00:00:00.000Z' AND state = 'clock' AND substr(name, 1, 36) <> substr(:boot, 1, 36)

-- One task or a few hundred, created at ?1 or, where that is null, now. A task that is there already, by its id or its
-- key, is left as it is.
-- name: insert
WITH clock(now, offset) AS (SELECT ?1, ?2),
batch(id, name, kwargs, max_retries, delay, run_at, timeout_seconds, priority, tags, idempotency_key, retry_policy, trace)
AS (VALUES <rows>),
timed AS (
    SELECT *, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?2)) AS now FROM batch WHERE id IS NOT NULL
),
scheduled AS (
    SELECT *, CASE
        WHEN run_at IS NOT NULL THEN run_at
        WHEN delay IS NULL THEN now
        ELSE coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', now, delay), '9999-12-31T23:59:59.999Z')
    END AS due
    FROM timed
)
INSERT INTO tasks (id, name, state, scheduled_at, created_at, updated_at, kwargs, max_retries, timeout_seconds, priority,
    tags, idempotency_key, retry_policy, trace, ready)
SELECT id, name, 'pending', due, now, now, kwargs, max_retries, timeout_seconds, priority,
    tags, idempotency_key, retry_policy, trace, due <= now
FROM scheduled
WHERE true
-- Of these two alone: what another unique index keeps out is an error, with the name of that index.
ON CONFLICT (id) DO NOTHING
ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING

-- A lone task without a key, its values as in `batch`; ?13 is the offset.
-- name: insert_one
WITH clock(now) AS (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?13)),
timed(now, due) AS (
    SELECT now, CASE
        WHEN ?6 IS NOT NULL THEN ?6
        WHEN ?5 IS NULL THEN now
        ELSE coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', now, ?5), '9999-12-31T23:59:59.999Z')
    END
    FROM clock
)
INSERT INTO tasks (id, name, state, scheduled_at, created_at, updated_at, kwargs, max_retries, timeout_seconds, priority,
    tags, idempotency_key, retry_policy, trace, ready)
SELECT ?1, ?2, 'pending', due, now, now, ?3, ?4, ?7, ?8, ?9, ?10, ?11, ?12, due <= now
FROM timed
WHERE true
ON CONFLICT (id) DO NOTHING

-- name: ids_of_keys
SELECT json_group_array(json_array(idempotency_key, id)) FROM tasks
WHERE idempotency_key IN (SELECT value FROM json_each(:keys))

-- What a claim has to know: the time, the controls, the earliest due time of what is not ready yet, and which of the
-- wanted names have anything ready.
-- name: survey
WITH clock(now) AS MATERIALIZED (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset))
SELECT json_array(
    now,
    json((SELECT json_group_array(json_array(name, paused, operator_rate, default_rate, concurrency, tokens, refilled_at))
     FROM task_controls)),
    (SELECT coalesce(next_retry_at, scheduled_at) FROM tasks INDEXED BY ix_tasks_waiting
     WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL
     ORDER BY coalesce(next_retry_at, scheduled_at) LIMIT 1),
    json((SELECT json_group_array(value) FROM json_each(:names)
     WHERE EXISTS (SELECT 1 FROM tasks INDEXED BY ix_tasks_ready WHERE ready = 1 AND name = value)))
)
FROM clock

-- name: promote
INSERT INTO marking
SELECT rowid, 1 FROM tasks INDEXED BY ix_tasks_waiting
WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL
    AND coalesce(next_retry_at, scheduled_at) <= :now
ORDER BY coalesce(next_retry_at, scheduled_at)
LIMIT 1000

-- Of one name. `fit` is false for a row that somebody edited while it was ready.
-- name: pick
SELECT json_group_array(json_array(t.rowid,
    t.state IN ('pending', 'failed') AND t.completed_at IS NULL AND coalesce(t.next_retry_at, t.scheduled_at) <= :now,
    <claim_columns>))
FROM (
    SELECT rowid, * FROM tasks INDEXED BY ix_tasks_ready
    WHERE ready = 1 AND name = :name
    ORDER BY priority DESC, created_at, id
    LIMIT :n
) AS t

-- The first n of each of several names, without their contents.
-- name: rank
SELECT json_group_array(json_array(-t.priority, t.created_at, t.id, t.name))
FROM json_each(:names) AS wanted
CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id IN (
    SELECT id FROM tasks INDEXED BY ix_tasks_ready
    WHERE ready = 1 AND name = wanted.value
    ORDER BY priority DESC, created_at, id
    LIMIT :n
)

-- name: pick_ranked
SELECT json_group_array(json_array(t.rowid,
    t.state IN ('pending', 'failed') AND t.completed_at IS NULL AND coalesce(t.next_retry_at, t.scheduled_at) <= :now,
    <claim_columns>))
FROM json_each(:ids) AS picked CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id = picked.value

-- Among the first thousand of a name, those that somebody edited while they were ready.
-- name: demote
INSERT INTO marking
SELECT rowid, 0
FROM (
    SELECT rowid, * FROM tasks INDEXED BY ix_tasks_ready
    WHERE ready = 1 AND name = :name
    ORDER BY priority DESC, created_at, id
    LIMIT 1000
)
WHERE NOT (state IN ('pending', 'failed') AND completed_at IS NULL AND coalesce(next_retry_at, scheduled_at) <= :now)

-- name: claim
INSERT INTO claiming
SELECT value, :worker_id, coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', :steady, :lease), '9999-12-31T23:59:59.999Z'), :now
FROM json_each(:rowids)

-- One task by its id, as `pick` gives it.
-- name: take
SELECT json_group_array(json_array(t.rowid,
    t.state IN ('pending', 'failed') AND t.completed_at IS NULL AND coalesce(t.next_retry_at, t.scheduled_at) <= :now,
    <claim_columns>))
FROM tasks AS t INDEXED BY sqlite_autoindex_tasks_1
WHERE t.id = :id AND t.version = :version

-- name: running_by_name
SELECT json_group_array(json_array(name, n)) FROM (
    SELECT name, count(*) AS n FROM tasks INDEXED BY ix_tasks_running WHERE state = 'running' GROUP BY name
)

-- name: take_tokens
UPDATE task_controls SET tokens = :tokens, refilled_at = :steady WHERE name = :name

-- name: held
SELECT json_group_array(json_array(<claim_columns>))
FROM tasks AS t INDEXED BY ix_tasks_running
WHERE t.state = 'running' AND t.worker_id = :worker_id

-- The hot half of settling: completions, guarded by version and worker. First how many hold their guard, what the
-- counters have to know of them, and which of them somebody waits for.
-- name: match_completed
WITH batch(id, version, worker_id, result, retry_count, run_ms, bucket) AS (VALUES <rows>),
held AS MATERIALIZED (
    SELECT b.id, t.name, b.bucket, b.run_ms, t.awaited
    FROM batch AS b CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1
        ON t.id = b.id AND t.version = b.version AND t.worker_id = b.worker_id
)
SELECT json_array(
    (SELECT count(*) FROM held),
    json((SELECT json_group_array(json_array(name, bucket, n, run_ms)) FROM (
        SELECT name, bucket, count(*) AS n, sum(run_ms) AS run_ms FROM held GROUP BY name, bucket
    ))),
    json((SELECT json_group_array(id) FROM held WHERE awaited))
)

-- name: held_completions
WITH batch(id, version, worker_id, result, retry_count, run_ms, bucket) AS (VALUES <rows>)
SELECT json_group_array(b.id)
FROM batch AS b CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1
    ON t.id = b.id AND t.version = b.version AND t.worker_id = b.worker_id

-- name: complete
WITH clock(now) AS (SELECT ?1), batch(id, version, worker_id, result, retry_count, run_ms, bucket) AS (VALUES <rows>)
INSERT INTO completing SELECT id, version, worker_id, result, retry_count, ?1 FROM batch WHERE id IS NOT NULL

-- name: match_settled
WITH batch(id, version, worker_id, locked_until, state, retry_count, terminal, due_in, result, error, entry)
AS (VALUES <rows>)
SELECT json_group_array(json_array(t.id, t.name, t.awaited, t.cancel_requested_at IS NOT NULL))
FROM batch AS b CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id = b.id
    AND (b.version IS NULL OR t.version = b.version)
    AND t.worker_id IS b.worker_id
    AND (b.locked_until IS NULL OR t.locked_until = b.locked_until)

-- name: settle
WITH clock(now) AS (SELECT ?1), history_limit(most) AS (SELECT ?2),
batch(id, version, worker_id, locked_until, state, retry_count, terminal, due_in, result, error, entry)
AS (VALUES <rows>)
INSERT INTO settling
SELECT *, CASE
    WHEN due_in IS NOT NULL THEN coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', ?1, due_in), '9999-12-31T23:59:59.999Z')
END, ?1, ?2
FROM batch WHERE id IS NOT NULL

-- The time, and the names that have a limit on how many run at once.
-- name: settling
SELECT json_array(
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset),
    json((SELECT json_group_array(name) FROM task_controls WHERE concurrency IS NOT NULL))
)

-- name: match_extended
WITH batch(id, version, worker_id) AS (VALUES <rows>)
SELECT json_group_array(json_array(t.id, t.cancel_requested_at IS NOT NULL))
FROM batch AS b CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1
    ON t.id = b.id AND t.version = b.version AND t.worker_id = b.worker_id

-- name: extend
WITH clock(steady, lease) AS (SELECT ?1, ?2), batch(id, version, worker_id) AS (VALUES <rows>)
INSERT INTO extending
SELECT *, coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ?2), '9999-12-31T23:59:59.999Z')
FROM batch WHERE id IS NOT NULL

-- What the statements above insert into: views whose triggers update one task for each row, by its key. An UPDATE of many
-- could do the same, but where statistics were taken of a nearly empty table it would read all tasks for it.
-- The history keeps its first and its latest entries.
-- name: writing_views
CREATE TEMP VIEW marking AS
SELECT NULL AS task, NULL AS ready;

CREATE TEMP TRIGGER mark INSTEAD OF INSERT ON marking BEGIN
    UPDATE tasks SET ready = NEW.ready WHERE rowid = NEW.task;
END;

CREATE TEMP VIEW claiming AS
SELECT NULL AS task, NULL AS worker_id, NULL AS until, NULL AS now;

CREATE TEMP TRIGGER claim INSTEAD OF INSERT ON claiming BEGIN
    UPDATE tasks SET
        state = 'running',
        worker_id = NEW.worker_id,
        locked_until = NEW.until,
        started_at = NEW.now,
        next_retry_at = NULL,
        ready = 0,
        version = version + 1,
        updated_at = NEW.now,
        cancel_requested_at = NULL
    WHERE rowid = NEW.task;
END;

CREATE TEMP VIEW completing AS
SELECT NULL AS id, NULL AS version, NULL AS worker_id, NULL AS result, NULL AS retry_count, NULL AS now;

CREATE TEMP TRIGGER complete INSTEAD OF INSERT ON completing BEGIN
    UPDATE tasks SET
        state = 'completed',
        retry_count = NEW.retry_count,
        version = version + 1,
        updated_at = NEW.now,
        worker_id = NULL,
        locked_until = NULL,
        completed_at = NEW.now,
        next_retry_at = NULL,
        result = NEW.result,
        error = NULL,
        ready = 0,
        awaited = 0
    WHERE id = NEW.id AND version = NEW.version AND worker_id = NEW.worker_id;
END;

CREATE TEMP VIEW settling AS
SELECT NULL AS id, NULL AS version, NULL AS worker_id, NULL AS locked_until, NULL AS state, NULL AS retry_count,
    NULL AS terminal, NULL AS due_in, NULL AS result, NULL AS error, NULL AS entry, NULL AS due, NULL AS now, NULL AS most;

CREATE TEMP TRIGGER settle INSTEAD OF INSERT ON settling BEGIN
    UPDATE tasks SET
        state = NEW.state,
        retry_count = NEW.retry_count,
        version = version + 1,
        updated_at = NEW.now,
        worker_id = NULL,
        locked_until = NULL,
        completed_at = CASE WHEN NEW.terminal THEN NEW.now END,
        next_retry_at = CASE WHEN NEW.state = 'failed' AND NOT NEW.terminal THEN coalesce(NEW.due, NEW.now) END,
        scheduled_at = CASE WHEN NEW.state = 'pending' THEN coalesce(NEW.due, scheduled_at) ELSE scheduled_at END,
        result = NEW.result,
        error = CASE WHEN NEW.state <> 'completed' THEN coalesce(NEW.error, error) END,
        history = CASE WHEN NEW.entry IS NULL THEN history ELSE json_insert(
            CASE
                WHEN NOT json_valid(history) THEN '[]'
                WHEN json_type(history) <> 'array' THEN '[]'
                WHEN json_array_length(history) >= NEW.most THEN json_remove(history, '$[1]')
                ELSE history
            END,
            '$[#]', json_insert(NEW.entry, '$.ended', NEW.now)
        ) END,
        ready = NOT NEW.terminal AND NEW.state IN ('pending', 'failed') AND CASE NEW.state
            WHEN 'failed' THEN coalesce(NEW.due, NEW.now)
            ELSE coalesce(NEW.due, scheduled_at)
        END <= NEW.now,
        cancel_requested_at = CASE WHEN NEW.state <> 'pending' THEN cancel_requested_at END,
        awaited = awaited AND NOT NEW.terminal
    WHERE id = NEW.id
        AND (NEW.version IS NULL OR version = NEW.version)
        AND worker_id IS NEW.worker_id
        AND (NEW.locked_until IS NULL OR locked_until = NEW.locked_until);
END;

CREATE TEMP VIEW extending AS
SELECT NULL AS id, NULL AS version, NULL AS worker_id, NULL AS until;

CREATE TEMP TRIGGER extend INSTEAD OF INSERT ON extending BEGIN
    UPDATE tasks SET locked_until = NEW.until
    WHERE id = NEW.id AND version = NEW.version AND worker_id = NEW.worker_id;
END;

-- name: lost_leases
WITH clock(now, dead) AS MATERIALIZED (SELECT {lease_now}, strftime('%Y-%m-%dT%H:%M:%fZ', {lease_now}, :silence)),
gone AS MATERIALIZED (
    SELECT w.id FROM clock CROSS JOIN task_workers AS w WHERE w.stopped_at IS NOT NULL OR w.seen_at < dead
)
SELECT t.*
FROM clock CROSS JOIN tasks AS t INDEXED BY ix_tasks_running
WHERE t.state = 'running' AND (coalesce(t.locked_until, '') <= now OR t.worker_id IN (SELECT id FROM gone))
LIMIT :limit

-- Failures and cancellations have an index of their own, in the order of the ids.
-- Others are found by walking the ids, oldest first, a stretch at a time: the last id of the stretch, and what to delete.
-- Counters older than a time that are not merged yet, by the hour or (`epoch`) in one total for each name and state.
-- name: get
SELECT {columns} FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE id IN (SELECT value FROM json_each(:ids))

-- Exact, and each part from its own index.
-- name: stats_active
SELECT name, state, count(*) AS number, min(coalesce(next_retry_at, scheduled_at)) AS due_at
FROM tasks INDEXED BY ix_tasks_ready
WHERE ready = 1 GROUP BY name, state
UNION ALL
SELECT name, state, count(*), min(coalesce(next_retry_at, scheduled_at))
FROM tasks INDEXED BY ix_tasks_waiting
WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL GROUP BY name, state
UNION ALL
SELECT name, state, count(*), NULL FROM tasks INDEXED BY ix_tasks_running WHERE state = 'running' GROUP BY name, state

-- name: series
SELECT strftime('%Y-%m-%dT%H:%M:00.000Z', unixepoch(minute) / :step * :step, 'unixepoch') AS minute,
    name, state, bucket, sum(count) AS count, sum(run_ms) AS run_ms
FROM task_counts
WHERE minute >= strftime('%Y-%m-%dT%H:%M:00.000Z', 'now', :offset, :since) AND minute > '1970-01-01T00:00:00.000Z'
    AND state <> 'backlog'
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4

-- name: backlog_history
SELECT strftime('%Y-%m-%dT%H:%M:00.000Z', unixepoch(minute) / :step * :step, 'unixepoch') AS minute, name,
    sum(run_ms) / 1000.0 / sum(count) AS seconds
FROM task_counts
WHERE minute >= strftime('%Y-%m-%dT%H:%M:00.000Z', 'now', :offset, :since) AND minute > '1970-01-01T00:00:00.000Z'
    AND state = 'backlog'
GROUP BY 1, 2
ORDER BY 1, 2

-- A write holds the only lock there is.
-- name: lock_controls
SELECT {columns} FROM task_controls WHERE name IN (SELECT value FROM json_each(:names)) ORDER BY name

-- name: has_tables
SELECT json_group_array(name) FROM sqlite_schema WHERE type = 'table' AND name IN ('tasks', 'task_migrations')

-- name: create_migrations
CREATE TABLE task_migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT

-- name: schema_version
SELECT coalesce(max(version), 0) FROM task_migrations

-- name: record_migration
INSERT INTO task_migrations (version, name) VALUES (:version, :name)

-- The check-up names no index: it works when one is missing, too.
-- name: unattended
-- Names with something that waits and is due, made ready by a claim or not, that no live worker serves.
SELECT json_group_array(DISTINCT name) FROM tasks
WHERE (
    ready = 1 OR (
        state IN ('pending', 'failed') AND completed_at IS NULL
        AND coalesce(next_retry_at, scheduled_at) <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset)
    )
) AND name NOT IN (
    SELECT n.value FROM task_workers AS w, json_each(w.names) AS n
    WHERE w.stopped_at IS NULL AND w.seen_at >= strftime('%Y-%m-%dT%H:%M:%fZ', :steady, '-60 seconds')
)

-- name: leases
-- Those that have ended, and those that end soon.
SELECT
    count(*) FILTER (WHERE locked_until <= :steady),
    count(*) FILTER (WHERE locked_until > :steady)
FROM tasks
WHERE state = 'running' AND locked_until <= strftime('%Y-%m-%dT%H:%M:%fZ', :steady, :soon)

-- name: newest_ahead
-- By how many seconds the newest task is from the future.
SELECT (julianday(created_at) - julianday('now', :offset)) * 86400 FROM tasks ORDER BY id DESC LIMIT 1

