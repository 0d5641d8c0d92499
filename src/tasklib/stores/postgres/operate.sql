-- Heartbeats, lost leases, operators and housekeeping.

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
SELECT {task_columns}
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
