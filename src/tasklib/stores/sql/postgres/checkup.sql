-- What the check-up reads.

-- name: server
SELECT
    current_setting('server_version_num')::int,
    current_setting('server_version'),
    clock_timestamp(),
    pg_is_in_recovery(),
    current_setting('transaction_read_only')::boolean

-- name: connections
-- How many there are, how many there may be, and who has the most.
SELECT
    count(*),
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    mode() WITHIN GROUP (ORDER BY coalesce(nullif(application_name, ''), 'unnamed'))
FROM pg_catalog.pg_stat_activity
WHERE backend_type = 'client backend'

-- name: old_transactions
-- Those that began `:old` ago, and those in which nothing has happened for `:idle`. The oldest is first.
SELECT pid, application_name, usename, state, xact_start
FROM pg_catalog.pg_stat_activity
WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
  AND (
    xact_start < clock_timestamp() - :old::interval
    OR state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - :idle::interval
  )
ORDER BY xact_start
LIMIT 10

-- name: blockers
-- Who keeps others from our tables: whoever has locked one of them whole, and whoever others with locks there wait for.
-- Somebody who waits, too, is not to blame. No table of ours is read: it may be the one that is locked.
WITH ours AS (
    SELECT c.oid, c.relname
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = {schema_name} AND c.relname IN (
        'tasks', 'task_workers', 'task_controls', 'task_counts', 'task_tokens', 'task_audit', 'task_migrations'
    )
),
locks AS (
    SELECT l.pid, l.mode, l.granted, o.relname
    FROM pg_catalog.pg_locks l JOIN ours o ON o.oid = l.relation
    WHERE l.locktype = 'relation'
      AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
),
whole AS (
    SELECT pid, mode, relname, granted
    FROM locks
    WHERE mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
),
waits AS (
    SELECT w.pid AS waiting, unnest(pg_blocking_pids(w.pid)) AS pid
    FROM (SELECT DISTINCT pid FROM pg_catalog.pg_locks WHERE NOT granted) w
    WHERE w.pid IN (SELECT pid FROM locks)
)
SELECT
    pid,
    application_name,
    usename,
    state,
    xact_start,
    (SELECT string_agg(DISTINCT format('%s on %s', mode, relname), ', ') FROM whole w WHERE w.pid = a.pid AND granted),
    (SELECT count(DISTINCT waiting) FROM waits w WHERE w.pid = a.pid),
    -- Whoever wants to write, or to read, must wait even behind one who waits for such a lock.
    EXISTS (SELECT FROM whole),
    EXISTS (SELECT FROM whole WHERE mode = 'AccessExclusiveLock')
FROM pg_catalog.pg_stat_activity a
WHERE pid <> pg_backend_pid() AND pid NOT IN (SELECT waiting FROM waits)
  AND (
    pid IN (SELECT pid FROM whole WHERE granted)
    OR pid IN (SELECT pid FROM waits)
       -- Others wait for every transaction now and then. Not for one that does nothing, nor for this long.
       AND (state LIKE 'idle in transaction%' OR xact_start < clock_timestamp() - :long_wait::interval)
  )
ORDER BY xact_start
LIMIT 10

-- name: dead_rows
SELECT n_live_tup, n_dead_tup, greatest(last_vacuum, last_autovacuum)
FROM pg_catalog.pg_stat_user_tables
WHERE schemaname = {schema_name} AND relname = 'tasks'

-- name: unhandled
-- Names that no live worker has registered, with something that waits and is due: ready, found by jumping through the
-- index, or waiting for the claim that would make it so.
WITH RECURSIVE names AS (
    (SELECT name FROM {schema}.tasks WHERE ready ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (SELECT t.name FROM {schema}.tasks t WHERE t.ready AND t.name > n.name ORDER BY t.name LIMIT 1)
    FROM names n
    WHERE n.name IS NOT NULL
)
SELECT name FROM (
    SELECT name FROM names
    UNION
    SELECT name FROM {schema}.tasks
    WHERE NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL
      AND coalesce(next_retry_at, scheduled_at) <= statement_timestamp() + :offset::interval
) AS n
WHERE name IS NOT NULL AND NOT EXISTS (
    SELECT FROM {schema}.task_workers w
    WHERE n.name = ANY (w.names) AND w.stopped_at IS NULL
      AND w.seen_at > statement_timestamp() + :offset::interval - interval '1 minute'
)
ORDER BY name
LIMIT 100
