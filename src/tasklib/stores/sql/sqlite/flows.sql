-- Tasks that wait for tasks: how they are linked, and what the ends of others make of them. A write holds the only lock
-- there is.

-- name: insert_flow
WITH {batch}
{new_rows}

-- name: link_stored
-- What was stored as a plain task, under its key, in this very transaction.
WITH {batch}
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET
    waits = b.waits,
    after = b.after,
    flow_id = b.flow_id,
    feeds = b.feeds,
    scheduled_at = iif(b.waits > 0, {never}, tasks.scheduled_at),
    ready = tasks.ready AND b.waits = 0
FROM batch AS b
WHERE tasks.id = b.id

-- name: add_feeds
WITH {batch}
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET feeds = (
    SELECT json_group_array(value) FROM (
        SELECT value FROM json_each(iif(json_valid(tasks.feeds), tasks.feeds, '[]'))
        UNION ALL
        SELECT value FROM json_each(b.feeds)
    )
)
FROM batch AS b
WHERE tasks.id = b.id

-- name: add_children
-- The same children for all of them.
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET feeds = (
    SELECT json_group_array(value) FROM (
        SELECT value FROM json_each(iif(json_valid(tasks.feeds), tasks.feeds, '[]'))
        UNION ALL
        SELECT value FROM json_each(:children)
    )
)
WHERE id IN (SELECT value FROM json_each(:ids))

-- name: lock_children
SELECT {columns} FROM tasks INDEXED BY sqlite_autoindex_tasks_1
WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id

-- name: feeds
WITH fed AS MATERIALIZED (
    SELECT DISTINCT c.id, c.completed_at IS NOT NULL AS finished
    FROM tasks AS p INDEXED BY sqlite_autoindex_tasks_1
    CROSS JOIN json_each(iif(json_valid(p.feeds), p.feeds, '[]')) AS f
    CROSS JOIN tasks AS c INDEXED BY sqlite_autoindex_tasks_1 ON c.id = f.value
    WHERE p.id = :id
)
SELECT id, count(*) OVER () AS number, count(*) FILTER (WHERE NOT finished) OVER () AS unfinished FROM fed
ORDER BY finished, id LIMIT :limit

-- name: flow_counts
SELECT flow_id, CASE
        WHEN state = 'failed' AND completed_at IS NULL THEN 'retrying'
        WHEN state = 'pending' AND waits > 0 THEN 'waiting'
        ELSE state
    END AS state, count(*) AS number, min(created_at) AS created_at
FROM tasks INDEXED BY ix_tasks_flow_id
WHERE flow_id IN (SELECT value FROM json_each(:ids))
GROUP BY 1, 2

-- name: stranded
SELECT held.id FROM (
    SELECT id, after FROM tasks INDEXED BY ix_tasks_waiting
    WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL
        AND coalesce(next_retry_at, scheduled_at) >= {never}
        AND waits > 0 AND (:all_ages OR updated_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset, :young))
        AND json_valid(after)
    LIMIT :looked
) AS held
WHERE NOT EXISTS (
    SELECT 1 FROM (
        SELECT p.value AS id FROM json_each(held.after, '$.parents') AS p
        UNION ALL
        SELECT p.value FROM task_steps AS s CROSS JOIN json_each(s.value, '$.parents') AS p
        WHERE s.task_id = held.id AND s.name LIKE 'after:%'
    ) AS parent CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id = parent.id
    WHERE t.completed_at IS NULL
)
LIMIT :limit

-- name: below
-- What may follow these from this state into a new one: a guess, from which the tasks to be looked at are taken. Without a
-- state: all that is behind them.
WITH RECURSIVE below (id) AS (
    SELECT value FROM json_each(:ids)
    UNION
    SELECT f.value
    FROM below CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id = below.id
    CROSS JOIN json_each(iif(json_valid(t.feeds), t.feeds, '[]')) AS f
    WHERE :state IS NULL OR (
        t.state = :state AND t.waits > 0
        AND iif(json_valid(t.after), coalesce(json_extract(t.after, '$.on'), ''), '') <> 'end'
    )
)
SELECT id FROM below LIMIT :most

-- name: fed_children
-- Those that wait for these, each once, with the number of its parents among them; and the names of those that wait for
-- nothing else.
SELECT
    json_group_object(fed.child, fed.number) AS children,
    json_group_array(DISTINCT c.name) FILTER (WHERE c.waits <= fed.number AND c.state = 'pending') AS names
FROM (
    SELECT f.value AS child, count(DISTINCT p.id) AS number
    FROM json_each(:ids) AS e
    CROSS JOIN tasks AS p INDEXED BY sqlite_autoindex_tasks_1 ON p.id = e.value
    CROSS JOIN json_each(iif(json_valid(p.feeds), p.feeds, '[]')) AS f
    GROUP BY f.value
) AS fed
CROSS JOIN tasks AS c INDEXED BY sqlite_autoindex_tasks_1 ON c.id = fed.child
WHERE c.waits > 0

-- name: release_children
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET
    waits = max(tasks.waits - fed.value, 0),
    updated_at = {now},
    (scheduled_at, ready) = (
        SELECT iif(free, due, tasks.scheduled_at), iif(free, tasks.state = 'pending' AND due <= {now}, tasks.ready)
        FROM (SELECT tasks.waits <= fed.value AND tasks.state IN ('pending', 'cancelled') AS free, {own_due} AS due)
    )
FROM json_each(:children) AS fed
WHERE tasks.id = fed.key

-- name: move_children
WITH {batch}, matched AS MATERIALIZED (
    SELECT b.id, t.name, t.awaited, iif(b.cut, 'cancelled', NULL) AS state, b.cut AS terminal,
        b.released AND b.state = 'pending' AS ready, b.leaves, 0 AS run_ms, -1 AS bucket, NULL AS waited_ms
    FROM batch AS b LEFT JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id = b.id AND t.version = b.version
)
{told};
WITH {batch}
UPDATE tasks INDEXED BY sqlite_autoindex_tasks_1 SET
    state = b.state,
    waits = b.waits,
    after = b.after,
    error = b.error,
    version = tasks.version + (b.state <> tasks.state),
    updated_at = {now},
    completed_at = iif(b.state = tasks.state, tasks.completed_at, iif(b.cut, {now}, NULL)),
    unique_key = iif(NOT b.cut OR tasks.unique_until = 'elapsed', tasks.unique_key, NULL),
    awaited = tasks.awaited AND NOT b.cut,
    (scheduled_at, ready) = (
        SELECT iif(b.released, due, tasks.scheduled_at),
            iif(b.released, b.state = 'pending' AND due <= {now}, NOT b.cut AND tasks.ready)
        FROM (SELECT {own_due} AS due)
    )
FROM batch AS b
WHERE tasks.id = b.id AND tasks.version = b.version

-- name: own_due
-- When something is due that waits no longer. What somebody edited into something else counts as nothing.
coalesce(
    iif(
        json_valid(tasks.after) AND json_extract(tasks.after, '$.runAt') GLOB '[12]???-??-??T??:??:??*Z',
        strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(tasks.after, '$.runAt')), NULL
    ),
    iif(json_valid(tasks.after), strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset, iif(
        json_type(tasks.after, '$.delay') IN ('integer', 'real'),
        format('%+.3f seconds', max(0, min(json_extract(tasks.after, '$.delay'), 3155760000))), NULL
    )), NULL),
    {now}
)
