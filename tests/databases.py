"""Databases of one's own on the shared server, for what a schema of one's own does not do: code that is given a plain
address, or files that say `public`."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg


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
