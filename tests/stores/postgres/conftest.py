"""A queue in a schema of the test's own on the shared PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from tasklib.stores.sql.postgres import PostgresStore


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def schema(postgres_url: str) -> str:
    return postgres_url.rpartition("schema=")[2]
