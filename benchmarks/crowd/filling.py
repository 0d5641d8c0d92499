"""Fills a queue with rows as months of work would leave them, by SQL alone: millions in a minute or two.

What is rare lies where it is hard to find: a type, a tag, an error text and all cancellations are among the oldest
rows only. The counters are summed up from the rows, by minute, hour and "long ago", as housekeeping leaves them.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from string import Template
from uuid import UUID

import apsw
import psycopg

from tasklib import Config
from tasklib.engine.engine import Engine

DAYS = 90
COMMON, RARE, UNKNOWN = "send_email", "rare_report", "no_such_type"


@dataclass(frozen=True)
class Crowd:
    finished: int = 0
    future: int = 5_000
    """Due in a week, of higher priority than everything else."""
    ready: int = 5_000
    running: int = 50
    waiting: int = 500
    """Failed, with a retry to come."""


def fill(url: str, crowd: Crowd) -> None:
    """Makes the schema and the rows."""
    asyncio.run(make_schema(url))
    if url.startswith("sqlite:"):
        _fill_sqlite(url.removeprefix("sqlite:///"), crowd)
    else:
        _fill_postgres(url, crowd)


def counted(url: str, name: str, since: UUID | None = None) -> int:
    """Completed tasks of a type, asked of the database itself; only newer ones than the id, if there is one: then the
    millions that were there before need not be looked through."""
    # The index of finished tasks has each once; the primary key has all that a task has been.
    done = "completed_at IS NOT NULL AND state = 'completed'"
    sql = f"SELECT count(*) FROM tasks WHERE {done} AND name = :name AND id >= :since"
    values = {"name": name, "since": str(since or UUID(int=0))}
    if url.startswith("sqlite:"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(10_000)
        try:
            return int(next(connection.execute(sql, values))[0])
        finally:
            connection.close()
    with psycopg.connect(url) as connection:
        found = connection.execute(sql.replace(":name", "%(name)s").replace(":since", "%(since)s"), values).fetchone()
        return int(found[0]) if found else 0


async def make_schema(url: str) -> None:
    """tasklib's tables in an empty database."""
    engine = Engine(Config(database_url=url))
    await engine.store()
    await engine.close()


def _fill_postgres(url: str, crowd: Crowd) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        for statement in _statements("postgres", crowd):
            connection.execute(statement)
        # What autovacuum has long done where such a table has grown in months.
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def _fill_sqlite(path: str, crowd: Crowd) -> None:
    connection = apsw.Connection(path)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        for statement in _statements("sqlite", crowd):
            with connection:
                connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _statements(engine: str, crowd: Crowd) -> list[str]:
    values = {
        "finished": max(crowd.finished, 1),
        "future": crowd.future,
        "ready": crowd.ready,
        "running": crowd.running,
        "waiting": crowd.waiting,
        "days": DAYS,
        "common": COMMON,
        "rare": RARE,
    }
    text = Template(Path(__file__).with_name(f"{engine}.sql").read_text()).substitute(values)
    return [part for part in text.split(";\n\n") if part.strip()][0 if crowd.finished else 1 :]
