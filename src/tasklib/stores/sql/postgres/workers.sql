-- What runs under leases that have ended.

-- name: lost_leases
SELECT {columns}
FROM {schema}.tasks t
WHERE t.state = 'running' AND (
    coalesce(t.locked_until, '-infinity') < statement_timestamp() + :offset::interval
    OR EXISTS (
        SELECT FROM {schema}.task_workers w
        WHERE w.id = t.worker_id
          AND (w.stopped_at IS NOT NULL
               OR w.seen_at < statement_timestamp() + :offset::interval + :silence::interval)
    )
)
ORDER BY t.locked_until NULLS FIRST, t.id
LIMIT :limit
