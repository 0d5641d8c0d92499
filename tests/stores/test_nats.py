"""NATS, the suite of every store."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tasklib.stores.base import Store
from tasklib.stores.nats import NatsStore
from tasklib.testing.suite import OpenStore, StoreSuite


class TestNats(StoreSuite):
    @pytest.fixture
    async def open_store(self, nats_url: str) -> AsyncIterator[OpenStore]:
        async with AsyncExitStack() as stack:

            async def open_store() -> Store:
                store = NatsStore(nats_url)
                await store.open()
                stack.push_async_callback(store.close)
                return store

            yield open_store

    @pytest.fixture
    async def store(self, open_store: OpenStore) -> Store:
        return await open_store()
