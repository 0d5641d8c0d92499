"""Tasks of version 1 that are over: what a migration has to walk through."""

import apsw
import psycopg

POSTGRES = """
    INSERT INTO tasks (name, state, scheduled_at, created_at, started_at, completed_at, kwargs, result)
    SELECT 'work', CASE WHEN n %% 50 = 0 THEN 'failed' ELSE 'completed' END, at, at, at, at,
        '{"number": 1}', '{"value": 2}'
    FROM generate_series(1, %s) AS n, LATERAL (SELECT now() - n * interval '1 second' AS at) AS times
"""
SQLITE = """
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
    INSERT INTO tasks (id, name, state, scheduled_at, created_at, started_at, completed_at, kwargs, result)
    SELECT printf('00000000-0000-7000-8000-%012x', n), 'work', iif(n % 50 = 0, 'failed', 'completed'), at, at, at, at,
        '{"number": 1}', '{"value": 2}'
    FROM (SELECT n, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', -n || ' seconds') AS at FROM numbers)
"""


def fill(url: str, rows: int) -> None:
    if url.startswith("sqlite"):
        file = apsw.Connection(url.removeprefix("sqlite:///"))
        try:
            file.execute(SQLITE, [rows])
        finally:
            file.close()
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(POSTGRES, [rows])
