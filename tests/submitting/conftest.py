"""A queue as the default one, and task types that other tests never see."""

from collections.abc import AsyncIterator

import pytest

from tasklib.core.registry import Registry
from tasklib.doors.blocking import run_blocking
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
async def engine(backend_url: str) -> AsyncIterator[Engine]:
    """The default queue for as long as the test lasts, on each backend in turn."""
    engine = Engine(Config(database_url=backend_url))
    before = use_engine(engine)
    yield engine
    use_engine(before)
    run_blocking(engine.close())
    await engine.close()


@pytest.fixture
async def memory(memory_url: str) -> AsyncIterator[Engine]:
    """The default queue, in memory: for what is decided before any backend is asked."""
    engine = Engine(Config(database_url=memory_url))
    before = use_engine(engine)
    yield engine
    use_engine(before)
    run_blocking(engine.close())
    await engine.close()
