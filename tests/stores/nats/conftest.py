"""A queue in a bucket of the test's own on the shared NATS server."""

from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest

from tasklib.stores.nats import NatsStore


@pytest.fixture
async def store(nats_url: str) -> AsyncIterator[NatsStore]:
    store = NatsStore(nats_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def kv(store: NatsStore, nats_url: str) -> AsyncIterator[Any]:
    """The bucket as any other program sees it."""
    connection = await nats.connect(nats_url.partition("?")[0])
    yield await connection.jetstream().key_value(nats_url.rpartition("=")[2])
    await connection.close()
