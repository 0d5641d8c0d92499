"""A TaskQueue on each backend, and the fluent face of one."""

from collections.abc import Iterator

import pytest

from tasklib import Config, TaskQueue
from tasklib.api.fluent import FluentQueue
from tasklib.api.sync import run_sync
from tasklib.engine.engine import Engine


@pytest.fixture
def engine(backend_url: str) -> Iterator[Engine]:
    engine = Engine(
        Config(database_url=backend_url, heartbeat_seconds=0.1, dead_after_seconds=20, lock_timeout_seconds=30)
    )
    yield engine
    run_sync(engine.close())


@pytest.fixture
def queue(engine: Engine) -> Iterator[TaskQueue]:
    """Works only when it is told to."""
    queue = TaskQueue(engine=engine, enable_worker=False, poll_interval=0.05)
    yield queue
    queue.stop()


@pytest.fixture
def local_queue(memory_url: str) -> Iterator[TaskQueue]:
    """For what no backend has a say in."""
    queue = TaskQueue(memory_url, enable_worker=False, poll_interval=0.05)
    yield queue
    queue.stop()


@pytest.fixture
def fluent(engine: Engine) -> Iterator[FluentQueue]:
    """A `tq` of this test alone, with a worker beside it."""
    fluent = FluentQueue()
    fluent.init(engine=engine, poll_interval=0.05)
    yield fluent
    fluent.stop()
