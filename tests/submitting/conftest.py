"""A queue as the default one, and task types that other tests never see."""

from collections.abc import AsyncIterator

import pytest

from tasklib.api.sync import run_sync
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tests.queues import as_default


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
async def engine(backend_url: str) -> AsyncIterator[Engine]:
    """The default queue for as long as the test lasts, on each backend in turn."""
    async with as_default(Engine(Config(database_url=backend_url))) as engine:
        yield engine
        run_sync(engine.close())


@pytest.fixture
async def memory(memory_url: str) -> AsyncIterator[Engine]:
    """The default queue, in memory: for what is decided before any backend is asked."""
    async with as_default(Engine(Config(database_url=memory_url))) as engine:
        yield engine
        run_sync(engine.close())
