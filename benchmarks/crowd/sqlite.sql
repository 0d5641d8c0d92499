-- Finished tasks: row 0 is the oldest. Statements are separated by an empty line.
INSERT INTO tasks (
    id, name, state, scheduled_at, started_at, completed_at, created_at, updated_at,
    kwargs, result, error, retry_count, tags, version, history
)
WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < $finished),
clock (newest, span) AS (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 - 60000, $days * 86400000),
rows AS (
    SELECT
        i,
        newest - span + i * span / $finished AS at,
        200 + i % 13 * 300 AS run,
        CASE
            WHEN i < $finished / 2 AND i % max(1, $finished / 20) = 0 THEN '$rare'
            WHEN i * 2654435761 % 100 < 60 THEN '$common'
            WHEN i * 2654435761 % 100 < 80 THEN 'resize_image'
            WHEN i * 2654435761 % 100 < 90 THEN 'sync_customer'
            ELSE 'type_' || (i % 16)
        END AS name,
        CASE
            WHEN i < $finished / 10 AND i % 50 = 7 THEN 'cancelled'
            WHEN i % 50 = 3 THEN 'failed'
            ELSE 'completed'
        END AS state
    FROM numbers, clock
)
SELECT
    printf('%08x-%04x-7%03x-8%03x-%012x', at >> 16, at & 65535, i & 4095, i & 4095, i * 2654435761 & 281474976710655),
    name,
    state,
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', (at + 500) / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', (at + 500 + run) / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', (at + 500 + run) / 1000.0, 'unixepoch'),
    json_object('to', 'user' || (i % 1000) || '@example.com', 'number', i),
    CASE WHEN state = 'completed' THEN json_object('sent', json('true'), 'number', i) END,
    CASE WHEN state = 'failed' THEN 'Traceback (most recent call last):'
        || replace(printf('%.12c', '.'), '.', char(10) || '  File "app/tasks.py", line 12')
        || CASE WHEN i < 1000 THEN char(10) || 'DiskFull: no space left on device'
                ELSE char(10) || 'ConnectionError: peer ' || (i % 100) || ' went away' END END,
    CASE WHEN state = 'failed' THEN 3 ELSE 0 END,
    CASE WHEN i < 1000 THEN json_object('tenant', 't' || (i % 100), 'campaign', 'spring')
         ELSE json_object('tenant', 't' || (i % 100)) END,
    2,
    CASE WHEN state = 'failed' THEN '[{"attempt": 4, "error": "ConnectionError: peer went away"}]' ELSE '[]' END
FROM rows;

INSERT INTO tasks (id, name, kwargs, priority, scheduled_at)
WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < $future)
SELECT printf('%s-7000-8000-%012x', n.head, i), 'later', json_object('number', i), 9,
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+7 days', '+' || i || ' seconds')
FROM numbers, (SELECT printf('%08x-%04x', ms >> 16, ms & 65535) AS head
    FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS ms)) AS n
WHERE $future > 0;

INSERT INTO tasks (id, name, kwargs, ready)
WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < $ready)
SELECT printf('%s-7000-8001-%012x', n.head, i), CASE WHEN i % 3 = 0 THEN 'resize_image' ELSE '$common' END,
    json_object('number', i), 1
FROM numbers, (SELECT printf('%08x-%04x', ms >> 16, ms & 65535) AS head
    FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS ms)) AS n
WHERE $ready > 0;

INSERT INTO tasks (id, name, kwargs, state, worker_id, version, started_at, locked_until)
WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < $running)
SELECT printf('%s-7000-8002-%012x', n.head, i), '$common', json_object('number', i), 'running', 'host-' || (i % 4), 1,
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+10 minutes')
FROM numbers, (SELECT printf('%08x-%04x', ms >> 16, ms & 65535) AS head
    FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS ms)) AS n
WHERE $running > 0;

INSERT INTO tasks (id, name, kwargs, state, error, retry_count, version, next_retry_at)
WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < $waiting)
SELECT printf('%s-7000-8003-%012x', n.head, i), '$common', json_object('number', i), 'failed',
    'ConnectionError: peer went away', 1, 2, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+' || i || ' minutes')
FROM numbers, (SELECT printf('%08x-%04x', ms >> 16, ms & 65535) AS head
    FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS ms)) AS n
WHERE $waiting > 0;

INSERT INTO task_workers (id, hostname, pid, names, concurrency, running, listening, started_at, seen_at, stopped_at)
WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < 20)
SELECT 'host-' || i, 'host', i, json_array('$common', 'resize_image'), 16, 12, 1,
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day'), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
    CASE WHEN i > 4 THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hour') END
FROM numbers;

INSERT INTO task_counts (minute, name, state, bucket, count, run_ms)
SELECT
    CASE
        WHEN completed_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-2 days') THEN substr(completed_at, 1, 16) || ':00.000Z'
        WHEN completed_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-60 days') THEN substr(completed_at, 1, 13) || ':00:00.000Z'
        ELSE '1970-01-01T00:00:00.000Z'
    END AS minute,
    name,
    state,
    CASE WHEN completed_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-60 days') THEN 8 ELSE -1 END AS bucket,
    count(*),
    count(*) * 2000
FROM tasks
WHERE completed_at IS NOT NULL
GROUP BY 1, 2, 3, 4;

