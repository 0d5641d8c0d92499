-- Finished tasks: row 0 is the oldest. Statements are separated by an empty line.
INSERT INTO tasks (
    id, name, state, scheduled_at, started_at, completed_at, created_at, updated_at,
    kwargs, result, error, retry_count, tags, version, history
)
SELECT
    (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i & 4095), 3, '0')
        || '8' || substr(md5(i::text), 1, 15))::uuid,
    name,
    state,
    at,
    at + interval '500 ms',
    at + interval '500 ms' + run,
    at,
    at + interval '500 ms' + run,
    jsonb_build_object('to', 'user' || i % 1000 || '@example.com', 'number', i),
    CASE WHEN state = 'completed' THEN jsonb_build_object('sent', true, 'number', i) END,
    CASE WHEN state = 'failed' THEN 'Traceback (most recent call last):' || repeat(E'\n  File "app/tasks.py", line 12', 12)
        || CASE WHEN i < 1000 THEN E'\nDiskFull: no space left on device'
                ELSE E'\nConnectionError: peer ' || i % 100 || ' went away' END END,
    CASE WHEN state = 'failed' THEN 3 ELSE 0 END,
    CASE WHEN i < 1000 THEN jsonb_build_object('tenant', 't' || (i % 100), 'campaign', 'spring')
         ELSE jsonb_build_object('tenant', 't' || (i % 100)) END,
    2,
    CASE WHEN state = 'failed' THEN '[{"attempt": 4, "error": "ConnectionError: peer went away"}]'::jsonb ELSE '[]' END
FROM (
    SELECT
        i,
        now() - interval '$days days' + i * (interval '$days days' / $finished) - interval '1 minute' AS at,
        (200 + i % 13 * 300) * interval '1 ms' AS run,
        CASE
            WHEN i < $finished / 2 AND i % greatest(1, $finished / 20) = 0 THEN '$rare'
            WHEN i * 2654435761 % 100 < 60 THEN '$common'
            WHEN i * 2654435761 % 100 < 80 THEN 'resize_image'
            WHEN i * 2654435761 % 100 < 90 THEN 'sync_customer'
            ELSE 'type_' || i % 16
        END AS name,
        CASE
            WHEN i < $finished / 10 AND i % 50 = 7 THEN 'cancelled'
            WHEN i % 50 = 3 THEN 'failed'
            ELSE 'completed'
        END AS state
    FROM generate_series(0, $finished - 1) AS i
) AS rows;

INSERT INTO tasks (name, kwargs, priority, scheduled_at)
SELECT 'later', jsonb_build_object('number', i), 9, now() + interval '7 days' + i * interval '1 s'
FROM generate_series(1, $future) AS i;

INSERT INTO tasks (name, kwargs, ready)
SELECT CASE WHEN i % 3 = 0 THEN 'resize_image' ELSE '$common' END, jsonb_build_object('number', i), true
FROM generate_series(1, $ready) AS i;

INSERT INTO tasks (name, kwargs, state, worker_id, version, started_at, locked_until)
SELECT '$common', jsonb_build_object('number', i), 'running', 'host-' || i % 4, 1, now(), now() + interval '10 minutes'
FROM generate_series(1, $running) AS i;

INSERT INTO tasks (name, kwargs, state, error, retry_count, version, next_retry_at)
SELECT '$common', jsonb_build_object('number', i), 'failed', 'ConnectionError: peer went away', 1, 2,
    now() + i * interval '1 minute'
FROM generate_series(1, $waiting) AS i;

INSERT INTO task_workers (id, hostname, pid, names, concurrency, running, listening, started_at, seen_at, stopped_at)
SELECT 'host-' || i, 'host', i, ARRAY['$common', 'resize_image'], 16, 12, true, now() - interval '1 day', now(),
    CASE WHEN i > 4 THEN now() - interval '1 hour' END
FROM generate_series(0, 20) AS i;

INSERT INTO task_counts (minute, name, state, bucket, count, run_ms)
SELECT
    CASE
        WHEN completed_at > now() - interval '2 days' THEN date_trunc('minute', completed_at)
        WHEN completed_at > now() - interval '60 days' THEN date_trunc('hour', completed_at)
        ELSE 'epoch'
    END AS minute,
    name,
    state,
    CASE
        WHEN completed_at <= now() - interval '60 days' THEN -1
        WHEN completed_at - started_at <= interval '500 ms' THEN 6
        WHEN completed_at - started_at <= interval '1 s' THEN 7
        WHEN completed_at - started_at <= interval '2500 ms' THEN 8
        ELSE 9
    END AS bucket,
    count(*),
    sum(extract(epoch FROM completed_at - started_at) * 1000)::bigint
FROM tasks
WHERE completed_at IS NOT NULL
GROUP BY 1, 2, 3, 4;

