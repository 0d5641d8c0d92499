"""The queue of a site as it was when the site started, while its server and its worker go on."""

from urllib.parse import parse_qs, urlsplit, urlunsplit

import apsw
import psycopg

# The workers stay: they are alive. Counts come after tasks, because deleting tasks is counted.
TABLES = ("tasks", "task_counts", "task_controls", "task_schedules", "task_audit", "task_tokens")
EMPTY = ";".join(f"DELETE FROM {table}" for table in TABLES)


def empty(database_url: str) -> None:
    if database_url.startswith("sqlite"):
        _empty_sqlite(database_url.removeprefix("sqlite:///"))
    else:
        _empty_postgres(database_url)


def _empty_sqlite(path: str) -> None:
    connection = apsw.Connection(path)
    try:
        connection.set_busy_timeout(10_000)
        connection.execute(f"BEGIN IMMEDIATE; {EMPTY}; COMMIT")
    finally:
        connection.close()


def _empty_postgres(database_url: str) -> None:
    parts = urlsplit(database_url)
    schema = parse_qs(parts.query)["schema"][0]
    options = f"-c search_path={schema} -c lock_timeout=10s"
    with psycopg.connect(urlunsplit(parts._replace(query="")), options=options) as connection:
        connection.execute(EMPTY.encode())
