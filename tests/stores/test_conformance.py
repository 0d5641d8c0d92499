"""Every store, one suite."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tasklib.engine.backends import make_store
from tasklib.engine.config import Config
from tasklib.stores.protocol import Store
from tests.conformance import OpenStore, StoreSuite


class TestStores(StoreSuite):
    @pytest.fixture
    async def open_store(self, backend_url: str) -> AsyncIterator[OpenStore]:
        async with AsyncExitStack() as stack:

            async def open_store() -> Store:
                store = make_store(Config(database_url=backend_url))
                await store.open()
                stack.push_async_callback(store.close)
                return store

            yield open_store

    @pytest.fixture
    async def store(self, open_store: OpenStore) -> Store:
        return await open_store()
