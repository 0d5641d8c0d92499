-- Lists and their counts: what tasklib.stores.lists says of arms, in statements. `{order}` is ASC or DESC, `{limit}`,
-- `{offset}` and `{top}` (their sum) are parameters, `{conditions}` those of a filter, `{within}` the regions of ids.

-- name: list
SELECT {task_columns} FROM {schema}.tasks
WHERE id = ANY (ARRAY(SELECT id FROM ({arms}) AS found ORDER BY id {order} LIMIT {limit} OFFSET {offset}))
ORDER BY id {order};

-- name: count
SELECT count(*) FROM (SELECT FROM ({arms}) AS found LIMIT {top}) AS counted;

-- name: arm_walk
SELECT f.id
FROM unnest({lows}::uuid[], {highs}::uuid[]) AS r (low, high)
CROSS JOIN LATERAL (
    SELECT id FROM {schema}.tasks
    WHERE id >= r.low AND id <= r.high AND {conditions}
    ORDER BY id {order} LIMIT {top}
) AS f

-- name: arm_ids
SELECT id FROM {schema}.tasks WHERE id = ANY ({ids}::uuid[]) AND {conditions} OFFSET 0

-- name: arm_finished
-- NULLS are sorted as this index has them, here and below, and the primary key has not: otherwise the planner might
-- walk that.
SELECT f.id
FROM unnest({names}::text[]) AS n (name)
CROSS JOIN unnest({finished}::text[]) AS s (state)
CROSS JOIN unnest({lows}::uuid[], {highs}::uuid[]) AS r (low, high)
CROSS JOIN LATERAL (
    SELECT id FROM {schema}.tasks
    WHERE completed_at IS NOT NULL AND name = n.name AND state = s.state AND id >= r.low AND id <= r.high
        AND {conditions}
    ORDER BY id {order_in_index} LIMIT {top}
) AS f

-- name: arm_failed
SELECT f.id
FROM unnest({failed}::text[], {waiting}::boolean[]) AS s (state, waiting)
CROSS JOIN unnest({lows}::uuid[], {highs}::uuid[]) AS r (low, high)
CROSS JOIN LATERAL (
    SELECT id FROM {schema}.tasks
    WHERE state IN ('failed', 'cancelled') AND state = s.state AND (completed_at IS NULL) = s.waiting
        AND id >= r.low AND id <= r.high AND {conditions}
    ORDER BY id {order_in_index} LIMIT {top}
) AS f

-- name: arm_ready
-- First the ids, for which the index is enough, then what else is asked for, in their order and no further than needed.
-- Innermost, here and below, there is no order and nothing that another index could serve.
SELECT f.id
FROM (
    SELECT id FROM (SELECT id, name, created_at FROM {schema}.tasks WHERE ready AND {named} OFFSET 0) AS t
    WHERE {indexed} ORDER BY id {order} OFFSET 0
) AS picked
CROSS JOIN LATERAL (
    SELECT id FROM (SELECT * FROM {schema}.tasks AS t WHERE t.id = picked.id OFFSET 0) AS t
    WHERE state = 'pending' AND completed_at IS NULL AND {conditions}
    OFFSET 0
) AS f
LIMIT {top}

-- name: arm_waiting
SELECT f.id
FROM (
    SELECT id FROM (
        SELECT id, name, state FROM {schema}.tasks
        WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL OFFSET 0
    ) AS t
    WHERE state = 'pending' AND {indexed} ORDER BY id {order} OFFSET 0
) AS picked
CROSS JOIN LATERAL (
    SELECT id FROM (SELECT * FROM {schema}.tasks AS t WHERE t.id = picked.id OFFSET 0) AS t WHERE {conditions} OFFSET 0
) AS f
LIMIT {top}

-- name: arm_ready_counted
-- Without an order there is nothing to be gained from looking at the ids first.
SELECT id FROM (SELECT * FROM {schema}.tasks WHERE ready AND {named} OFFSET 0) AS t
WHERE state = 'pending' AND completed_at IS NULL AND {within} AND {conditions}

-- name: arm_waiting_counted
SELECT id FROM (
    SELECT * FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL OFFSET 0
) AS t
WHERE state = 'pending' AND {within} AND {conditions}

-- name: arm_running
SELECT id FROM (SELECT * FROM {schema}.tasks WHERE state = 'running' OFFSET 0) AS t WHERE {within} AND {conditions}

-- name: arm_odd
SELECT id FROM (
    SELECT * FROM {schema}.tasks
    WHERE CASE state
        WHEN 'pending' THEN completed_at IS NOT NULL
        WHEN 'running' THEN false
        WHEN 'completed' THEN completed_at IS NULL
        ELSE state NOT IN ('failed', 'cancelled')
    END OFFSET 0
) AS t
WHERE {within} AND {conditions}

-- name: survey_now
extract(epoch FROM statement_timestamp())::double precision

-- name: survey_floor
(SELECT id FROM {schema}.tasks ORDER BY id DESC OFFSET {searched_rows} LIMIT 1)

-- name: survey_below
(SELECT id FROM {schema}.tasks WHERE id < {value}::uuid ORDER BY id DESC OFFSET {nearest_rows} LIMIT 1)

-- name: survey_above
(SELECT id FROM {schema}.tasks WHERE id > {value}::uuid ORDER BY id OFFSET {nearest_rows} LIMIT 1)

-- name: survey_names
-- The names among the finished, jumping from one to the next.
ARRAY(
    WITH RECURSIVE known (name, number) AS (
        (SELECT name, 1 FROM {schema}.tasks WHERE completed_at IS NOT NULL ORDER BY name LIMIT 1)
        UNION ALL
        SELECT (
            SELECT t.name FROM {schema}.tasks AS t
            WHERE t.completed_at IS NOT NULL AND t.name > k.name
            ORDER BY t.name LIMIT 1
        ), number + 1
        FROM known AS k WHERE k.name IS NOT NULL AND number <= {known_names}
    )
    SELECT name FROM known WHERE name IS NOT NULL
)

-- name: survey_pending
-- How many there are to sort. Those that wait are found by their time alone.
((SELECT count(*) FROM (SELECT FROM {schema}.tasks WHERE ready AND {named} LIMIT {sorted_rows} + 1) AS c)
+ (SELECT count(*) FROM (
    SELECT FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL LIMIT {sorted_rows} + 1
) AS c))

-- name: where_all
true

-- name: where_names
name = ANY ({value}::text[])

-- name: where_name_prefix
starts_with(name, {value}::text)

-- name: where_states
state = ANY ({value}::text[])

-- name: where_terminal
completed_at IS NOT NULL

-- name: where_not_terminal
completed_at IS NULL

-- name: where_tags
-- The first is for speed, the second says it: a pair is there as a whole, or not at all.
(tags @> {value}::jsonb AND NOT EXISTS (
    SELECT FROM jsonb_each({value}::jsonb) AS wanted WHERE tags -> wanted.key IS DISTINCT FROM wanted.value
))

-- name: where_worker
(state = 'running' AND worker_id = {value}::text)

-- name: where_error_text
strpos(lower(error), lower({value}::text)) > 0

-- name: where_created_after
created_at >= {value}::timestamptz

-- name: where_created_before
created_at < {value}::timestamptz

-- name: where_within
(id >= {low}::uuid AND id <= {high}::uuid)
