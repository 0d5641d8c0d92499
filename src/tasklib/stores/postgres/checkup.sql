-- What the check-up reads.

-- name: server
SELECT
    current_setting('server_version_num')::int,
    current_setting('server_version'),
    clock_timestamp(),
    pg_is_in_recovery(),
    current_setting('transaction_read_only')::boolean,
    (SELECT max(clock_timestamp() - xact_start) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'),
    (
        SELECT format('pid %s, %s, %s', pid, coalesce(nullif(application_name, ''), 'unnamed'), state)
        FROM pg_catalog.pg_stat_activity
        WHERE backend_type = 'client backend' AND xact_start IS NOT NULL
        ORDER BY xact_start
        LIMIT 1
    );

-- name: dead_rows
SELECT n_live_tup, n_dead_tup, greatest(last_vacuum, last_autovacuum)
FROM pg_catalog.pg_stat_user_tables
WHERE schemaname = $1 AND relname = 'tasks';

-- name: unhandled
-- Names with something ready, found by jumping through the index, that no live worker has registered.
WITH RECURSIVE names AS (
    (SELECT name FROM {schema}.tasks WHERE ready ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (SELECT t.name FROM {schema}.tasks t WHERE t.ready AND t.name > n.name ORDER BY t.name LIMIT 1)
    FROM names n
    WHERE n.name IS NOT NULL
)
SELECT name FROM names n
WHERE name IS NOT NULL AND NOT EXISTS (
    SELECT FROM {schema}.task_workers w
    WHERE n.name = ANY (w.names) AND w.stopped_at IS NULL
      AND w.seen_at > statement_timestamp() + $1::interval - interval '1 minute'
)
ORDER BY name
LIMIT 100;

-- name: leases
SELECT
    count(*) FILTER (WHERE locked_until <= statement_timestamp() + $1::interval),
    count(*) FILTER (
        WHERE locked_until > statement_timestamp() + $1::interval
          AND locked_until <= statement_timestamp() + $1::interval + interval '30 seconds'
    )
FROM {schema}.tasks
WHERE state = 'running';
