-- Lists and their counts: what tasklib.stores.lists says of arms, in statements. `<arms>` are those below, `<where>` the
-- conditions of a filter, `<order>` is ASC or DESC. `:top` is how many rows any arm has to give.

-- name: list
SELECT json_group_array(json_array(<task_columns>)) FROM (
    SELECT id AS picked FROM (<arms>) ORDER BY id <order> LIMIT :limit OFFSET :offset
) CROSS JOIN tasks AS t INDEXED BY sqlite_autoindex_tasks_1 ON t.id = picked

-- name: count
SELECT count(*) FROM (SELECT 1 FROM (<arms>) LIMIT :top)

-- What an arm with an order of its own gives for each of several ranges, in one statement. A count needs no order.
-- name: ranged_list
SELECT found.value AS id FROM json_each(:<ranges>) AS r CROSS JOIN json_each((
    SELECT json_group_array(id) FROM (SELECT f.id FROM <range> AND <where> ORDER BY f.id <order> LIMIT :top)
)) AS found

-- name: ranged_count
SELECT f.id FROM json_each(:<ranges>) AS r CROSS JOIN <range> AND <where>

-- name: range_walk
tasks AS f INDEXED BY sqlite_autoindex_tasks_1 <on> f.id >= r.value ->> 0 AND f.id <= r.value ->> 1

-- name: range_finished
tasks AS f INDEXED BY ix_tasks_finished
<on> f.completed_at IS NOT NULL AND f.name = r.value ->> 0 AND f.state = r.value ->> 1
    AND f.id >= r.value ->> 2 AND f.id <= r.value ->> 3

-- name: range_failed
tasks AS f INDEXED BY ix_tasks_failed
<on> f.state IN ('failed', 'cancelled') AND f.state = r.value ->> 0 AND (f.completed_at IS NULL) = r.value ->> 1
    AND f.id >= r.value ->> 2 AND f.id <= r.value ->> 3

-- The others are looked through. First the ids, for which the index is enough, then what else is asked for, in their
-- order and no further than needed.
-- name: arm_ready
SELECT * FROM (
    SELECT f.id FROM (
        SELECT f.id AS picked FROM tasks AS f INDEXED BY ix_tasks_ready
        WHERE f.ready = 1 AND f.state = 'pending' AND <named> AND <within> ORDER BY f.id <order> LIMIT -1
    ) CROSS JOIN tasks AS f INDEXED BY sqlite_autoindex_tasks_1 ON f.id = picked
    WHERE f.completed_at IS NULL AND <where> LIMIT :top
)

-- name: arm_waiting
SELECT * FROM (
    SELECT f.id FROM (
        SELECT f.id AS picked FROM tasks AS f INDEXED BY ix_tasks_waiting
        WHERE f.ready = 0 AND f.state IN ('pending', 'failed') AND f.completed_at IS NULL AND f.state = 'pending'
            AND <named> AND <within> ORDER BY f.id <order> LIMIT -1
    ) CROSS JOIN tasks AS f INDEXED BY sqlite_autoindex_tasks_1 ON f.id = picked
    WHERE <where> LIMIT :top
)

-- A count has no order, and there is nothing to be gained from looking at the ids first.
-- name: arm_ready_counted
SELECT f.id FROM tasks AS f INDEXED BY ix_tasks_ready
WHERE f.ready = 1 AND f.state = 'pending' AND <named> AND <within> AND f.completed_at IS NULL AND <where>

-- name: arm_waiting_counted
SELECT f.id FROM tasks AS f INDEXED BY ix_tasks_waiting
WHERE f.ready = 0 AND f.state IN ('pending', 'failed') AND f.completed_at IS NULL AND f.state = 'pending'
    AND <named> AND <within> AND <where>

-- name: arm_running
SELECT f.id FROM tasks AS f INDEXED BY ix_tasks_running WHERE f.state = 'running' AND <within> AND <where>

-- name: arm_odd
SELECT f.id FROM tasks AS f INDEXED BY ix_tasks_odd
WHERE CASE f.state
    WHEN 'pending' THEN f.completed_at IS NOT NULL OR f.ready NOT IN (0, 1)
    WHEN 'running' THEN false
    WHEN 'completed' THEN f.completed_at IS NULL
    ELSE f.state NOT IN ('failed', 'cancelled')
END AND <within> AND <where>

-- name: arm_ids
SELECT f.id FROM tasks AS f INDEXED BY sqlite_autoindex_tasks_1
WHERE f.id IN (SELECT value FROM json_each(:ids)) AND <within> AND <where>

-- What is to be searched by text or tag: the newest tasks only.
-- name: search_floor
SELECT id FROM tasks INDEXED BY sqlite_autoindex_tasks_1 ORDER BY id DESC LIMIT 1 OFFSET :rows

-- name: nearest_below
SELECT id FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE id < :id ORDER BY id DESC LIMIT 1 OFFSET :rows

-- name: nearest_above
SELECT id FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE id > :id ORDER BY id LIMIT 1 OFFSET :rows

-- The names among the finished that begin with a prefix, jumping from one to the next.
-- name: known_names
WITH RECURSIVE known(name, number) AS (
    SELECT min(name), 1 FROM tasks INDEXED BY ix_tasks_finished WHERE completed_at IS NOT NULL AND name >= :prefix
    UNION ALL
    SELECT (
        SELECT min(t.name) FROM tasks AS t INDEXED BY ix_tasks_finished
        WHERE t.completed_at IS NOT NULL AND t.name > k.name
    ), number + 1
    FROM known AS k
    WHERE substr(k.name, 1, length(:prefix)) = :prefix AND number <= :most
)
SELECT json_group_array(name) FROM known WHERE substr(name, 1, length(:prefix)) = :prefix

-- How many pending tasks there are to sort.
-- name: count_ready
SELECT count(*) FROM (
    SELECT 1 FROM tasks AS f INDEXED BY ix_tasks_ready WHERE f.ready = 1 AND <named> LIMIT :most
)

-- name: count_waiting
SELECT count(*) FROM (
    SELECT 1 FROM tasks INDEXED BY ix_tasks_waiting
    WHERE ready = 0 AND state IN ('pending', 'failed') AND completed_at IS NULL LIMIT :most
)
