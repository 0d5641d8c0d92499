"""A queue as the default one, and task types that other tests never see."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tasklib.api.sync import run_sync
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tests.queues import as_default
from tests.submitting.apis import Court, House


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


@pytest.fixture
def court() -> Iterator[Court]:
    with asyncio.Runner() as runner:
        house = House()
        before = use_engine(house.engine)
        yield Court(house, runner)
        use_engine(before)
        runner.run(house.close())
