"""A queue of one's own for a test, in memory, with a clock that the test moves."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tasklib.core.registry import Registry, default_registry
from tasklib.core.task import Task
from tasklib.doors.blocking import run_blocking
from tasklib.doors.tq import tq
from tasklib.engine.config import Config
from tasklib.engine.default import holding
from tasklib.engine.engine import Engine
from tasklib.stores.sqlite import forget_memory
from tasklib.stores.values import Filter
from tasklib.testing.drain import drain, drain_async


class QueueForTests:
    """What the fixture `tasklib_queue` gives."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def drain(self, *, names: Sequence[str] | None = None, registry: Registry = default_registry) -> None:
        """Runs all that is due."""
        drain(self.engine, names=names, registry=registry)

    async def drain_async(self, *, names: Sequence[str] | None = None, registry: Registry = default_registry) -> None:
        await drain_async(self.engine, names=names, registry=registry)

    def advance(self, seconds: float) -> None:
        """Moves the queue's clock, so that delayed tasks and retries fall due without waiting."""
        self.engine.advance(seconds)

    def tasks(self, name: str | None = None) -> list[Task]:
        """All tasks, oldest first."""
        where = Filter(names=None if name is None else [name])
        return run_blocking(self.engine.page(where, limit=10_000, oldest_first=True)).tasks


@contextmanager
def fresh_queue(**settings: Any) -> Iterator[QueueForTests]:
    """Puts an empty in-memory queue in the place of the default one for as long as the block lasts."""
    name = f"test-{secrets.token_hex(8)}"
    engine = Engine(Config(database_url=f"memory://{name}", **settings))
    try:
        with holding(engine):
            yield QueueForTests(engine)
    finally:
        tq.leave(engine)
        run_blocking(engine.close_for_good())
        forget_memory(name)
