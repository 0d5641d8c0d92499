"""A queue on each backend, and workers on it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from tasklib import Config, TaskWorker
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tests.queues import as_default

Serve = Callable[..., AbstractAsyncContextManager[TaskWorker]]


@pytest.fixture
def registry() -> Registry:
    """Task types of this test alone."""
    return Registry()


@pytest.fixture
async def engine(backend_url: str) -> AsyncIterator[Engine]:
    """The default queue of this test."""
    config = Config(database_url=backend_url, heartbeat_seconds=0.1, dead_after_seconds=1.5, lock_timeout_seconds=20)
    async with as_default(Engine(config)) as engine:
        yield engine


@pytest.fixture
def serve(engine: Engine, registry: Registry) -> Serve:
    """`async with serve() as worker`: a worker in this loop, stopped at the end."""

    @asynccontextmanager
    async def start(concurrency: int = 4, **options: Any) -> AsyncIterator[TaskWorker]:
        options = {"engine": engine, "registry": registry, "poll_interval_seconds": 0.1, **options}
        worker = TaskWorker(concurrency=concurrency, handle_signals=False, **options)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await asyncio.wait_for(running, 20)

    return start
