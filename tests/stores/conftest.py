"""What tests of stores share. The folders have one `store` each, of their engine."""

from collections.abc import AsyncIterator, Callable
from urllib.parse import parse_qs, urlsplit, urlunsplit

import apsw
import psycopg
import pytest

from tasklib.stores.protocol import Store
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.sql.sqlite import SqliteStore
from tasklib.stores.values import Filter
from tests.stores.proxy import Proxy

Execute = Callable[[str], None]
Fault = Callable[[Proxy, bytes], None]

faults = pytest.mark.parametrize("fault", [Proxy.lose_request, Proxy.lose_reply], ids=["request lost", "reply lost"])


@pytest.fixture
async def store(table_url: str) -> AsyncIterator[Store]:
    """The test runs once on each store that keeps a table."""
    store = PostgresStore(table_url) if table_url.startswith("postgres") else SqliteStore(table_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def by_hand(table_url: str, store: Store) -> Execute:
    """Runs SQL on a connection of its own. `<seconds>` stands for that many seconds from now."""
    parts = urlsplit(table_url)

    def in_postgres(sql: str) -> None:
        schema = parse_qs(parts.query)["schema"][0]
        sql = sql.replace("<", "(now() + interval '").replace(">", " seconds')")
        with psycopg.connect(urlunsplit(parts._replace(query="")), options=f"-c search_path={schema}") as connection:
            connection.execute(sql.encode())

    def in_sqlite(sql: str) -> None:
        sql = sql.replace("<", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '").replace(">", " seconds')")
        if parts.scheme == "memory":
            filename = f"file:/{parts.netloc}?vfs=memdb"
        else:
            filename = table_url.removeprefix("sqlite:///")
        connection = apsw.Connection(filename, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(10_000)
            connection.execute(sql)
        finally:
            connection.close()

    return in_postgres if parts.scheme.startswith("postgres") else in_sqlite


async def number_of(store: Store) -> int:
    """How many tasks there are."""
    return (await store.count(Filter(), 1_000_000)).value
