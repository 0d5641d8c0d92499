-- Lists and counts under a filter: see lists.py. `{places}` are some of the `list_...` below, `{where}` the conditions of
-- the filter, `{key}` those of them by which a place is looked up, `{order}` is by the id, and `{sorted}` the same where
-- no index has that order: a count does without. `:top` is how many ids each place has to give.
--
-- Of the engine: `{by_...}` names the index, `{fence}` keeps the planner from looking for another one, and `{given_names}` is
-- a table of them.

-- name: list_ids
SELECT id FROM ({places}) AS found {order} LIMIT :limit OFFSET :skip

-- name: count_listed
SELECT count(*) FROM (SELECT 1 FROM ({places}) AS found LIMIT :top) AS counted

-- name: list_longest
-- Of the newest, those that ran the longest.
SELECT t.id FROM (SELECT id FROM ({places}) AS found {order} LIMIT :top) AS newest
JOIN {schema}.tasks AS t ON t.id = newest.id
ORDER BY {run_time} DESC NULLS LAST, t.id DESC LIMIT :limit OFFSET :skip

-- name: list_walked
SELECT id FROM (
    SELECT t.id FROM {schema}.tasks AS t {by_id}
    WHERE t.id BETWEEN :low AND :high AND {where}
    {walk_order} LIMIT :top
) AS walked

-- name: list_near
SELECT id FROM (
    SELECT t.* FROM {schema}.tasks AS t {by_id} WHERE t.id BETWEEN :low AND :high {walk_order} LIMIT :near
) AS t WHERE {where}

-- name: list_by_id
SELECT id FROM (SELECT t.* FROM {schema}.tasks AS t {by_id} WHERE {key} {fence}) AS t
WHERE t.id BETWEEN :low AND :high AND {where}

-- name: list_by_idempotency
SELECT id FROM (
    SELECT t.* FROM {schema}.tasks AS t {by_idempotency} WHERE t.idempotency_key = :idempotency_key {fence}
) AS t
WHERE t.id BETWEEN :low AND :high AND {where}

-- name: list_by_flow
SELECT id FROM (
    SELECT t.id FROM {schema}.tasks AS t {by_flow}
    WHERE t.flow_id = :flow_id AND t.id BETWEEN :low AND :high AND {where}
    {walk_order} LIMIT :top
) AS of_flow

-- name: list_retrying
SELECT id FROM (
    SELECT t.id FROM {schema}.tasks AS t {by_retrying}
    WHERE t.completed_at IS NULL AND t.state NOT IN ('pending', 'running')
        AND t.id BETWEEN :low AND :high AND {where}
    {order} LIMIT :top
) AS retrying

-- name: list_running
SELECT id FROM (
    SELECT t.id FROM (SELECT t.* FROM {schema}.tasks AS t {by_running} WHERE t.state = 'running' {fence}) AS t
    WHERE t.completed_at IS NULL AND t.id BETWEEN :low AND :high AND {where}
    {sorted} LIMIT :top
) AS running

-- name: list_ready
SELECT id FROM (
    SELECT t.id FROM (SELECT t.* FROM {schema}.tasks AS t {by_ready} WHERE {is_ready} AND {key} {fence}) AS t
    WHERE t.state = 'pending' AND t.completed_at IS NULL AND t.id BETWEEN :low AND :high AND {where}
    {sorted} LIMIT :top
) AS ready

-- name: list_waiting
SELECT id FROM (
    SELECT t.id FROM (
        SELECT t.* FROM {schema}.tasks AS t {by_waiting}
        WHERE {is_not_ready} AND t.state IN ('pending', 'failed') AND t.completed_at IS NULL {fence}
    ) AS t
    WHERE t.state = 'pending' AND t.id BETWEEN :low AND :high AND {where}
    {sorted} LIMIT :top
) AS waiting

-- name: list_ended
-- The order is for PostgreSQL's planner: no other index has it.
SELECT id FROM (
    SELECT t.id FROM (
        SELECT t.* FROM {schema}.tasks AS t {by_ended}
        WHERE t.completed_at IS NOT NULL AND t.state <> 'completed' AND {ended}
        ORDER BY t.completed_at {fence}
    ) AS t
    WHERE t.id BETWEEN :low AND :high AND {where}
    {sorted} LIMIT :top
) AS ended

-- name: count_ended
-- How many there are to sort.
SELECT count(*) FROM (
    SELECT 1 FROM {schema}.tasks AS t {by_ended}
    WHERE t.completed_at IS NOT NULL AND t.state <> 'completed' AND {ended}
    ORDER BY t.completed_at LIMIT :most
) AS ended

-- name: latest_ended
SELECT t.completed_at, t.id FROM {schema}.tasks AS t {by_ended}
WHERE t.completed_at IS NOT NULL AND t.state <> 'completed' AND {where}
ORDER BY t.completed_at DESC, t.id DESC LIMIT :limit OFFSET :skip

-- name: latest_failed
SELECT id FROM (
    SELECT t.id, t.name, t.state, t.completed_at FROM {schema}.tasks AS t {by_ended}
    WHERE t.completed_at IS NOT NULL AND t.state <> 'completed'
    ORDER BY t.completed_at DESC, t.id DESC LIMIT :looked
) AS ended
WHERE state = 'failed' AND (CAST(:name AS text) IS NULL OR name = CAST(:name AS text))
ORDER BY completed_at DESC, id DESC LIMIT :limit

-- name: known_names
-- The types of what is over, jumping from one to the next.
WITH RECURSIVE known (name, number) AS (
    SELECT (
        SELECT t.name FROM {schema}.tasks AS t {by_finished} WHERE t.completed_at IS NOT NULL ORDER BY t.name LIMIT 1
    ), 1
    UNION ALL
    SELECT (
        SELECT t.name FROM {schema}.tasks AS t {by_finished}
        WHERE t.completed_at IS NOT NULL AND t.name > known.name ORDER BY t.name LIMIT 1
    ), number + 1
    FROM known WHERE name IS NOT NULL AND number < :most
)
SELECT name FROM known WHERE name IS NOT NULL

-- name: known_kinds
-- The same for the states that there are of each type.
WITH RECURSIVE known (name, state) AS (
    SELECT n.name, (
        SELECT t.state FROM {schema}.tasks AS t {by_finished}
        WHERE t.completed_at IS NOT NULL AND t.name = n.name ORDER BY t.state LIMIT 1
    ) FROM {given_names} AS n
    UNION ALL
    SELECT known.name, (
        SELECT t.state FROM {schema}.tasks AS t {by_finished}
        WHERE t.completed_at IS NOT NULL AND t.name = known.name AND t.state > known.state ORDER BY t.state LIMIT 1
    ) FROM known WHERE state IS NOT NULL
)
SELECT name, state FROM known WHERE state IS NOT NULL

-- name: latest_flows
WITH RECURSIVE latest (id, number) AS (
    SELECT (
        SELECT t.flow_id FROM {schema}.tasks AS t {by_flow}
        WHERE t.flow_id IS NOT NULL AND t.flow_id < :cursor ORDER BY t.flow_id DESC LIMIT 1
    ), 1
    UNION ALL
    SELECT (
        SELECT t.flow_id FROM {schema}.tasks AS t {by_flow}
        WHERE t.flow_id IS NOT NULL AND t.flow_id < latest.id ORDER BY t.flow_id DESC LIMIT 1
    ), number + 1
    FROM latest WHERE id IS NOT NULL AND number < :limit
)
SELECT id FROM latest WHERE id IS NOT NULL ORDER BY id DESC

-- name: flow_graph
SELECT {columns} FROM {schema}.tasks AS t {by_flow} WHERE flow_id = :flow_id ORDER BY id LIMIT :limit

-- name: count_pending
-- How many there are to sort. Those that wait are found by their time alone.
SELECT (SELECT count(*) FROM (
    SELECT 1 FROM {schema}.tasks AS t {by_ready} WHERE {is_ready} AND {key} LIMIT :most
) AS ready) + (SELECT count(*) FROM (
    SELECT 1 FROM {schema}.tasks AS t {by_waiting}
    WHERE {is_not_ready} AND t.state IN ('pending', 'failed') AND t.completed_at IS NULL LIMIT :most
) AS waiting)

-- name: id_below
SELECT id FROM {schema}.tasks AS t {by_id} WHERE id <= :id ORDER BY id DESC LIMIT 1 OFFSET :rows

-- name: id_above
SELECT id FROM {schema}.tasks AS t {by_id} WHERE id >= :id ORDER BY id LIMIT 1 OFFSET :rows

-- name: where_ids
t.id {in_ids :ids}

-- name: where_names
t.name {in_texts :names}

-- name: where_states
t.state {in_texts :states}

-- name: where_name_prefix
substr(t.name, 1, length(CAST(:name_prefix AS text))) = CAST(:name_prefix AS text)

-- name: where_idempotency_key
t.idempotency_key = :idempotency_key

-- name: where_flow_id
t.flow_id = :flow_id

-- name: where_terminal
t.completed_at IS NOT NULL

-- name: where_not_terminal
t.completed_at IS NULL

-- name: where_worker_id
(t.state = 'running' AND t.worker_id = :worker_id)

-- name: where_created_after
t.created_at >= :created_after

-- name: where_created_before
t.created_at < :created_before

-- name: where_ended_after
t.completed_at >= :ended_after

-- name: where_ended_before
t.completed_at < :ended_before

-- name: where_not_due
(t.completed_at IS NULL AND t.state <> 'running' AND t.waits <= 0 AND coalesce(t.next_retry_at, t.scheduled_at) > {now})

-- name: where_behind
(t.completed_at, t.id) < (:behind_at, :behind_id)

-- name: where_up_to
(t.completed_at, t.id) >= (:last_at, :last_id)
