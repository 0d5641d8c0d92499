-- Tasks that wait for tasks: how they are linked, and what the ends of others make of them.

-- name: insert_flow
WITH {batch}
{new_rows}
WHERE ({wake_worker} LIMIT 1) IS NOT TRUE

-- name: link_stored
-- What was stored as a plain task, under its key, in this very transaction.
WITH {batch}
UPDATE {schema}.tasks t SET
    waits = b.waits,
    after = b.after,
    flow_id = b.flow_id,
    feeds = {kept_feeds},
    scheduled_at = CASE WHEN b.waits > 0 THEN {never} ELSE t.scheduled_at END,
    ready = t.ready AND b.waits = 0
FROM batch b
WHERE t.id = b.id

-- name: add_feeds
WITH {batch}
UPDATE {schema}.tasks t SET feeds = coalesce(t.feeds, '{}') || {kept_feeds}
FROM batch b
WHERE t.id = b.id

-- name: add_children
-- The same children for all of them. By an array: whatever the planner believes, the primary key is the way.
UPDATE {schema}.tasks SET feeds = coalesce(feeds, '{}') || :children::uuid[] WHERE id = ANY (:ids::uuid[])

-- name: lock_children
-- In one order for everybody; not one that an index has, or it might be walked from end to end.
SELECT {columns} FROM {schema}.tasks WHERE id = ANY (:ids::uuid[]) ORDER BY id::text FOR NO KEY UPDATE

-- name: feeds
WITH fed AS MATERIALIZED (
    SELECT DISTINCT c.id, c.completed_at IS NOT NULL AS finished
    FROM {schema}.tasks p CROSS JOIN LATERAL unnest(p.feeds) AS f (child) JOIN {schema}.tasks c ON c.id = f.child
    WHERE p.id = :id::uuid
)
SELECT id, (count(*) OVER ())::int, (count(*) FILTER (WHERE NOT finished) OVER ())::int FROM fed
ORDER BY finished, id LIMIT :limit

-- name: flow_counts
SELECT w.id, c.* FROM unnest(:ids::uuid[]) AS w (id) CROSS JOIN LATERAL (
    SELECT CASE
        WHEN state = 'failed' AND completed_at IS NULL THEN 'retrying'
        WHEN state = 'pending' AND waits > 0 THEN 'waiting'
        ELSE state
    END, count(*)::int, min(created_at)
    FROM {schema}.tasks WHERE flow_id = w.id GROUP BY 1
) AS c

-- name: stranded
SELECT held.id FROM (
    SELECT id, after -> 'parents' AS parents FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
      AND coalesce(next_retry_at, scheduled_at) >= {never}
      AND waits > 0 AND (:all_ages::boolean OR updated_at > {now} + :young::interval)
    LIMIT :looked
) AS held
WHERE NOT EXISTS (
    SELECT FROM (
        SELECT jsonb_array_elements_text(CASE jsonb_typeof(held.parents) WHEN 'array' THEN held.parents ELSE '[]' END)
        UNION ALL
        SELECT jsonb_array_elements_text(CASE jsonb_typeof(s.value -> 'parents') WHEN 'array' THEN s.value -> 'parents' ELSE '[]' END)
        FROM {schema}.task_steps s
        WHERE s.task_id = held.id AND s.name LIKE 'after:%' AND jsonb_typeof(held.parents) = 'number'
    ) AS p (id) JOIN {schema}.tasks t ON t.id = CASE
        WHEN p.id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN p.id::uuid
    END
    WHERE t.completed_at IS NULL
)
LIMIT :limit

-- name: below
-- What may follow these from this state into a new one, without locks: a guess, from which the tasks to be locked are
-- taken. Without a state: all that is behind them.
WITH RECURSIVE below (id) AS (
    SELECT unnest(:ids::uuid[])
    UNION
    SELECT f.child
    FROM below JOIN {schema}.tasks t ON t.id = below.id CROSS JOIN LATERAL unnest(t.feeds) AS f (child)
    WHERE :state::text IS NULL
       OR (t.state = :state::text AND t.waits > 0 AND t.after ->> 'on' IS DISTINCT FROM 'end')
)
SELECT id FROM below LIMIT :most

-- name: move_children
WITH {batch}, clock AS MATERIALIZED (SELECT {now} AS now), done AS (
    UPDATE {schema}.tasks t SET
        state = b.state,
        waits = b.waits,
        after = b.after,
        error = b.error,
        version = t.version + CASE WHEN b.state = t.state THEN 0 ELSE 1 END,
        updated_at = clock.now,
        completed_at = CASE WHEN b.state = t.state THEN t.completed_at WHEN b.cut THEN clock.now END,
        unique_key = CASE WHEN NOT b.cut OR t.unique_until = 'elapsed' THEN t.unique_key END,
        (scheduled_at, ready) = (
            SELECT
                CASE WHEN b.released THEN due ELSE t.scheduled_at END,
                CASE WHEN b.released THEN b.state = 'pending' AND due <= clock.now WHEN b.cut THEN false ELSE t.ready END
            FROM (SELECT {own_due} AS due) AS w
        )
    FROM clock, batch b
    WHERE t.id = b.id AND t.version = b.version
    RETURNING t.id, t.name, t.awaited, t.ready, b.cut, b.released, b.leaves
), counted AS (
    INSERT INTO {schema}.task_counts (minute, name, state, bucket, count, run_ms)
    SELECT {this_minute}, name, 'cancelled', -1, count(*), 0
    FROM done WHERE cut GROUP BY name
    UNION ALL
    SELECT 'epoch', name, leaves, -1, -count(*), 0 FROM done WHERE leaves IS NOT NULL GROUP BY name, leaves
)
SELECT
    {missed} AS missed, '{}'::text[] AS claimable, '{}'::text[] AS finished, NULL AS counts, '{}'::text[] AS unseen
FROM
    (SELECT count(CASE WHEN awaited AND cut THEN pg_notify({done_channel}, id::text)::text END) FROM done) AS told,
    (SELECT count(CASE WHEN {somebody_listens} THEN pg_notify({work_channel}, '=' || name)::text END)
     FROM (SELECT DISTINCT name FROM done WHERE ready AND released) AS names) AS woken

-- name: own_due
-- When something is due that waits no longer. What somebody edited into something else counts as nothing.
CASE
    WHEN t.after ->> 'runAt' ~ '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?Z$'
        THEN (t.after ->> 'runAt')::timestamptz
    WHEN jsonb_typeof(t.after -> 'delay') = 'number'
        THEN clock.now
            + greatest(0, least((t.after ->> 'delay')::numeric, 3155760000))::double precision * interval '1 second'
    ELSE clock.now
END
