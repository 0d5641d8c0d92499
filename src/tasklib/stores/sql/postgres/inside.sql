-- Work inside a caller's transaction, on whatever driver it has.

-- name: next_inside
SELECT {columns}
FROM {schema}.tasks t
WHERE t.name = ANY (:names::text[])
  AND t.state IN ('pending', 'failed') AND t.completed_at IS NULL
  AND coalesce(t.next_retry_at, t.scheduled_at) <= clock_timestamp() + :offset::interval
  AND NOT EXISTS (SELECT FROM {schema}.task_controls c WHERE c.paused AND c.name IN ('', t.name))
ORDER BY t.priority DESC, t.created_at, t.id
LIMIT 1

-- name: tasks_inside
-- Of a name, by an id; NULL: any.
SELECT {columns}
FROM {schema}.tasks
WHERE (:name::text IS NULL OR name = :name::text) AND (:id::uuid IS NULL OR id = :id::uuid)
ORDER BY tasks.id
LIMIT 10000
