"""Stores for the actors: each has one of its own, with its own connections, on one database."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest

from tasklib.engine.backends import make_store
from tasklib.engine.config import Config
from tasklib.stores.protocol import Store

pytest.register_assert_rewrite("tests.races.scenes")

ROUNDS = int(os.environ.get("TASKLIB_MODEL_RACES", "1"))
"""How many times the usual number of random orders."""


@pytest.fixture(params=["sqlite", "postgres"])
def race_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def stores(race_url: str) -> AsyncIterator[Sequence[Store]]:
    async with AsyncExitStack() as stack:
        stores = []
        for _ in range(6):
            store = make_store(Config(database_url=race_url))
            await store.open()
            stack.push_async_callback(store.close)
            stores.append(store)
        yield stores
