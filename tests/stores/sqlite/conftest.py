"""A queue in a SQLite file of the test's own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import apsw
import pytest

from tasklib.stores.sql.sqlite import SqliteStore, schema
from tasklib.stores.sql.sqlite.address import parse
from tasklib.stores.sql.sqlite.connection import connect
from tests.stores.sqlite.scripts import Run


@pytest.fixture
def path(sqlite_url: str) -> Path:
    """Where the file is, or will be."""
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture
async def store(sqlite_url: str) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(sqlite_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def connection(store: SqliteStore, path: Path) -> Iterator[apsw.Connection]:
    """A caller's own."""
    connection = apsw.Connection(str(path))
    yield connection
    connection.close()


@pytest.fixture
def writer(sqlite_url: str) -> Iterator[apsw.Connection]:
    """A connection as a store's writer has it, with the tables there and no store beside it."""
    connection = connect(parse(sqlite_url))
    schema.migrate(connection)
    yield connection
    connection.close()


@pytest.fixture
def run(sqlite_url: str) -> Iterator[Run]:
    """Runs a script in a process of its own."""
    runner = Run(sqlite_url)
    yield runner
    for script in runner.scripts:
        script.kill()
