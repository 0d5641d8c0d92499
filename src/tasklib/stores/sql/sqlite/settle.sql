-- Settle and extend. What holds its guard is read first, as one row of JSON, then written: a write holds the only lock
-- there is, so nothing changes in between. `matched` is the batch with the state that each task goes to; those without a
-- name do not hold their guard.
-- `+worker_id`: no index is to be weighed for it. SQLite would compile the statement anew whenever a value is bound.

-- name: told
-- Where a limit says how many may run at once, one that ends makes room for another.
SELECT
    (SELECT json_group_array(id) FROM matched WHERE name IS NULL) AS missed,
    (SELECT json_group_array(name)
     FROM (SELECT name, max(ready) AS ready FROM matched WHERE name IS NOT NULL GROUP BY name) AS m
     WHERE ready OR EXISTS (
        SELECT 1 FROM task_controls AS c WHERE c.name IN ('', m.name) AND c.concurrency IS NOT NULL
     )) AS claimable,
    (SELECT json_group_array(id) FROM matched WHERE awaited AND terminal) AS finished,
    (SELECT json_group_array(json_array(minute, name, state, bucket, number, run_ms)) FROM (
        -- Many rows are put in order once, and few twice.
        WITH ended AS MATERIALIZED (
            SELECT {this_minute} AS minute, name,
                CASE WHEN terminal THEN state ELSE 'retried' END AS state, bucket, count(*) AS number, sum(run_ms) AS run_ms,
                {waited_bucket} AS waited_bucket, count(waited_ms) AS waited, sum(waited_ms) AS waited_ms
            FROM matched
            WHERE name IS NOT NULL AND (terminal OR state = 'failed')
            GROUP BY bucket, waited_bucket, 3, name
        )
        SELECT minute, name, state, bucket, sum(number) AS number, sum(run_ms) AS run_ms
        FROM ended
        GROUP BY name, state, bucket
        UNION ALL
        SELECT minute, name, 'waited', waited_bucket, sum(waited), sum(waited_ms)
        FROM ended
        WHERE waited > 0
        GROUP BY name, waited_bucket
        UNION ALL
        SELECT '1970-01-01T00:00:00.000Z', name, leaves, -1, -count(*), 0
        FROM matched
        WHERE name IS NOT NULL AND leaves IS NOT NULL
        GROUP BY name, leaves
     )) AS counts,
    '[]' AS unseen

-- name: complete
-- The hot settle: completions by the worker that holds the claims. A row that still has its version has its retry_count
-- too. What others wait for is among them only for those who release it (`feeding`).
WITH {batch}, matched AS MATERIALIZED (
    SELECT b.id, t.name, t.awaited, 'completed' AS state, true AS terminal, false AS ready, NULL AS leaves, b.run_ms, b.bucket,
        b.waited_ms
    FROM batch AS b LEFT JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1
        ON t.id = b.id AND t.version = b.version AND +t.worker_id = :worker_id AND (t.feeds IS NULL OR :feeding)
)
{told};
WITH {batch}
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET
    state = 'completed',
    version = tasks.version + 1,
    updated_at = {now},
    completed_at = {now},
    worker_id = NULL,
    last_worker_id = tasks.worker_id,
    run_ms = b.run_ms,
    locked_until = NULL,
    next_retry_at = NULL,
    result = b.result,
    error = NULL,
    unique_key = iif(unique_until = 'elapsed', unique_key, NULL),
    ready = false,
    awaited = false
FROM batch AS b
WHERE tasks.id = b.id AND tasks.version = b.version AND +tasks.worker_id = :worker_id
    AND (tasks.feeds IS NULL OR :feeding)

-- name: not_fed
-- The end of what others wait for, and an operator's way back from it, are written only by those who see to the others
-- as well.
(:feeding OR CASE
    WHEN b.leaves IS NOT NULL THEN feeds IS NULL AND waits = 0
    WHEN b.terminal OR (cancel_requested_at IS NOT NULL AND b.asked_entry IS NOT NULL) THEN feeds IS NULL
    ELSE true
END)

-- name: settle
-- What was asked to stop, and has not completed, is cancelled. The history keeps its first and its latest entries.
WITH {batch}, matched AS MATERIALIZED (
    SELECT id, name, awaited, CASE WHEN asked THEN 'cancelled' ELSE state END AS state, asked OR terminal AS terminal,
        NOT asked AND NOT terminal AND coalesce(due_in, '+0.000 seconds') = '+0.000 seconds' AS ready,
        leaves, run_ms, bucket, waited_ms
    FROM (
        SELECT b.id, t.name, t.awaited, b.state, b.terminal, b.due_in, b.leaves, b.run_ms, b.bucket,
            b.waited_ms,
            t.cancel_requested_at IS NOT NULL AND b.asked_entry IS NOT NULL AS asked
        FROM batch AS b LEFT JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id = b.id
            AND (b.version IS NULL OR t.version = b.version)
            AND t.worker_id IS b.worker_id
            AND (b.locked_until IS NULL OR t.locked_until = b.locked_until)
            AND {not_fed}
    )
)
{told};
WITH {batch}
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET
    version = tasks.version + 1,
    updated_at = {now},
    worker_id = NULL,
    last_worker_id = coalesce(tasks.worker_id, tasks.last_worker_id),
    run_ms = iif(b.bucket >= 0, b.run_ms, NULL),
    locked_until = NULL,
    result = b.result,
    (
        state, retry_count, completed_at, next_retry_at, scheduled_at, error, history, ready, cancel_requested_at, awaited,
        unique_key
    ) = (
        SELECT
            w.state,
            w.retry_count,
            CASE WHEN w.terminal THEN {now} END,
            CASE WHEN w.state = 'failed' AND NOT w.terminal THEN coalesce(w.due, {now}) END,
            CASE WHEN w.state = 'pending' THEN coalesce(w.due, tasks.scheduled_at) ELSE tasks.scheduled_at END,
            CASE WHEN w.state <> 'completed' THEN coalesce(w.error, tasks.error) END,
            CASE WHEN w.entry IS NULL THEN tasks.history ELSE json_insert(
                CASE
                    WHEN NOT json_valid(tasks.history) THEN '[]'
                    WHEN json_type(tasks.history) <> 'array' THEN '[]'
                    WHEN json_array_length(tasks.history) >= :history_limit THEN json_remove(tasks.history, '$[1]')
                    ELSE tasks.history
                END,
                '$[#]', json_insert(w.entry, '$.ended', {now})
            ) END,
            NOT w.terminal AND w.state IN ('pending', 'failed') AND CASE w.state
                WHEN 'failed' THEN coalesce(w.due, {now})
                ELSE coalesce(w.due, tasks.scheduled_at)
            END <= {now},
            CASE WHEN w.state <> 'pending' THEN tasks.cancel_requested_at END,
            tasks.awaited AND NOT w.terminal,
            iif(NOT w.terminal OR tasks.unique_until = 'elapsed', tasks.unique_key, NULL)
        FROM (
            SELECT b.state, b.retry_count, b.terminal, b.error, b.entry,
                strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset, b.due_in) AS due
            WHERE tasks.cancel_requested_at IS NULL OR b.asked_entry IS NULL
            UNION ALL
            SELECT 'cancelled', b.asked_retry_count, true, b.asked_error, b.asked_entry, NULL
            WHERE tasks.cancel_requested_at IS NOT NULL AND b.asked_entry IS NOT NULL
        ) AS w
    )
FROM batch AS b
WHERE tasks.id = b.id
    AND (b.version IS NULL OR tasks.version = b.version)
    AND tasks.worker_id IS b.worker_id
    AND (b.locked_until IS NULL OR tasks.locked_until = b.locked_until)
    AND {not_fed}

-- name: extend
WITH {batch}
SELECT t.id, t.version, t.cancel_requested_at IS NOT NULL AS cancel_requested
FROM batch AS b CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1
    ON t.id = b.id AND t.version = b.version AND +t.worker_id = :worker_id;
WITH {batch}
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1
SET locked_until = coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', {lease_now}, :duration), '9999-12-31T23:59:59.999Z')
FROM batch AS b
WHERE tasks.id = b.id AND tasks.version = b.version AND +tasks.worker_id = :worker_id
