"""What PostgreSQL refuses by its settings is told at once, and the setting named; what may pass is waited for."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import psycopg
import pytest

from tasklib.core.errors import StoreBusy, StoreRefused, StoreUnavailable
from tasklib.stores.sql.postgres import PostgresStore
from tests.conformance.builders import new_task, submit
from tests.databases import new_database
from tests.servers import QUICK, PostgresServer
from tests.stores.conftest import number_of
from tests.waiting import eventually

NewRole = Callable[[str], str]

AT_ONCE = 10.0
"""Seconds, on a machine with much else to do: a third of what a call may take."""


@pytest.fixture
def new_role(store: PostgresStore, postgres_server: str, schema: str) -> Iterator[NewRole]:
    """A role with these attributes that may use the queue; gives its name."""
    names: list[str] = []

    def create(attributes: str) -> str:
        name = f"t_{uuid4().hex}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN {attributes}".encode())
            names.append(name)
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {name}".encode())
            connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {name}".encode())
        return name

    yield create
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


def url_as(role: str, url: str, *hosts: str) -> str:
    """The address as another role's; `hosts` come before its own."""
    parts = urlsplit(url)
    here = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}@{','.join((*hosts, here))}"))


async def opened_and_used(store: PostgresStore) -> None:
    await store.open()
    await submit(store)


async def refused_at_once(store: PostgresStore, kind: type[Exception], setting: str) -> None:
    began = time.monotonic()
    with pytest.raises(kind, match=setting):
        await opened_and_used(store)
    assert time.monotonic() - began < AT_ONCE
    await store.close()


@pytest.mark.parametrize("hosts", [(), ("127.0.0.1:1",)], ids=["one host", "several hosts"])
@pytest.mark.parametrize("whose", ["role", "role in database"])
async def test_a_role_whose_sessions_may_only_read(
    postgres_url: str, postgres_server: str, new_role: NewRole, hosts: tuple[str, ...], whose: str
):
    """Fault 27: what a setting refuses."""
    role = new_role("SUPERUSER")
    place = "" if whose == "role" else f"IN DATABASE {urlsplit(postgres_server).path[1:]}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"ALTER ROLE {role} {place} SET default_transaction_read_only = on".encode())
    store = PostgresStore(url_as(role, postgres_url, *hosts))
    await refused_at_once(store, StoreRefused, "default_transaction_read_only is on for this role")


async def test_a_session_that_may_only_read_by_its_url(postgres_url: str, store: PostgresStore):
    reading = PostgresStore(f"{postgres_url}&options=-c%20default_transaction_read_only%3Don")
    await refused_at_once(reading, StoreRefused, "default_transaction_read_only is on for .* URL")


async def test_a_database_whose_sessions_may_only_read(postgres_server: str):
    with new_database(postgres_server) as url:
        store = PostgresStore(url)
        await store.open()
        await store.close()
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            name = urlsplit(url).path[1:]
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        await refused_at_once(PostgresStore(url), StoreRefused, "default_transaction_read_only is on for this database")


async def test_a_server_that_may_only_read_for_now_is_waited_for():
    """As it is made for a moment when servers change places. Its setting is named all the same."""
    with PostgresServer(settings=QUICK | {"default_transaction_read_only": "on"}) as server:
        for url in (server.dsn, f"{server.dsn}?target_session_attrs=read-write"):
            store = PostgresStore(url, call_timeout=3.0)
            with pytest.raises(StoreUnavailable, match=r"default_transaction_read_only.*tried for 3 s"):
                await store.open()
            await store.close()


async def test_a_try_that_the_deadline_cuts_off_is_told_by_what_refused_the_one_before(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    """It is what stands in the way. That there was no answer says nothing."""
    tries = 0

    async def refused_then_silent(connection: Any, timeout: float) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise asyncpg.ReadOnlySQLTransactionError("cannot execute UPDATE in a read-only transaction")
        await asyncio.Event().wait()

    monkeypatch.setattr(store._calls, "call_timeout", 1.0)
    with pytest.raises(StoreUnavailable, match=r"takes no writes: cannot execute UPDATE.*tried for 1 s"):
        await store._calls.run(refused_then_silent)
    assert tries > 1


async def test_a_role_without_a_connection_left(postgres_url: str, new_role: NewRole):
    store = PostgresStore(url_as(new_role("CONNECTION LIMIT 0"), postgres_url))
    await refused_at_once(store, StoreBusy, "CONNECTION LIMIT of the role")


async def test_a_database_without_a_connection_left(postgres_server: str, new_role: NewRole):
    with new_database(postgres_server) as url:
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {urlsplit(url).path[1:]} CONNECTION LIMIT 0".encode())
        store = PostgresStore(url_as(new_role(""), url))
        await refused_at_once(store, StoreBusy, "CONNECTION LIMIT of the database")


async def test_a_pool_that_reaches_the_limit_makes_do_with_what_it_has(
    postgres_url: str, store: PostgresStore, new_role: NewRole
):
    limited = PostgresStore(url_as(new_role("CONNECTION LIMIT 2"), postgres_url), pool_size=8)
    await limited.open()
    await asyncio.gather(*(limited.insert([new_task()]) for _ in range(40)))
    assert await number_of(store) == 40
    await limited.close()


async def test_a_server_without_a_connection_left_is_waited_for():
    with PostgresServer(settings=QUICK | {"max_connections": "3", "superuser_reserved_connections": "0"}) as server:
        store = PostgresStore(server.dsn, call_timeout=1.0)
        taken: list[psycopg.Connection[Any]] = []

        def take() -> bool:
            with suppress(psycopg.OperationalError):  # that of whoever saw that the server is there may be about to end
                taken.append(psycopg.connect(server.dsn))
            return len(taken) == 3

        eventually(take)
        with pytest.raises(StoreBusy, match=r"max_connections.*tried for 1 s"):
            await store.open()
        await store.close()
        for connection in taken:
            connection.close()
