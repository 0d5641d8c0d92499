"""Schemas and databases of one's own on the shared PostgreSQL. Databases are for what a schema does not do: code that
is given a plain address, or files that say `public`."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg


@contextmanager
def new_schema(server: str) -> Iterator[str]:
    """An empty schema: `postgresql://...?schema=t_...`."""
    schema = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    yield f"{server}{'&' if '?' in server else '?'}schema={schema}"
    with psycopg.connect(server, autocommit=True) as connection:
        # A session that the test left open inside a transaction shows as an error, not as a test that hangs.
        connection.execute("SET lock_timeout = '10s'")
        for _ in range(5):
            # What a test stopped may be ending, and hold its locks in another order.
            with suppress(psycopg.errors.DeadlockDetected):
                connection.execute(f"DROP SCHEMA {schema} CASCADE")
                return
        raise AssertionError(f"{schema} could not be dropped: somebody works in it")


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """The address of an empty database, which goes at the end with whoever is still connected."""
    name = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    base, mark, query = server.partition("?")
    try:
        yield f"{base.rpartition('/')[0]}/{name}{mark}{query}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
