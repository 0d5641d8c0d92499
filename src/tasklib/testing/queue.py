"""A queue of one's own for a test, in memory unless it says otherwise, with a clock that the test moves."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from tasklib.api.fluent import tq
from tasklib.api.sync import run_sync
from tasklib.core.durations import Seconds
from tasklib.core.options import check_run_at
from tasklib.core.registry import Registry, default_registry
from tasklib.core.task import Task
from tasklib.engine.config import Config
from tasklib.engine.default import holding
from tasklib.stores.sql.sqlite import forget_memory
from tasklib.stores.values import Filter
from tasklib.testing.drain import drain, drain_async
from tasklib.testing.engine import EngineForTests
from tasklib.testing.inline import Inline, play

_LIMIT = 10_000


class QueueForTests:
    """What the fixture `tasklib_queue` gives."""

    def __init__(self, engine: EngineForTests) -> None:
        self.engine = engine

    def drain(
        self,
        *,
        names: Sequence[str] | None = None,
        registry: Registry = default_registry,
        connection: object | None = None,
    ) -> None:
        """Runs all that is due, by a worker. With the connection of the test: in this thread, each task in a
        savepoint of the connection's transaction, in which it sees what the test did and which nothing leaves."""
        if connection is None:
            drain(self.engine, names=names, registry=registry)
        else:
            here = Inline(self.engine, registry, connection, waits=False, note=self.engine.note)
            self.engine.note(play(here.drain(names)))

    async def drain_async(
        self,
        *,
        names: Sequence[str] | None = None,
        registry: Registry = default_registry,
        connection: object | None = None,
    ) -> None:
        if connection is None:
            await drain_async(self.engine, names=names, registry=registry)
        else:
            here = Inline(self.engine, registry, connection, waits=True, note=self.engine.note)
            self.engine.note(await here.drain(names))

    @contextmanager
    def inline(self, *, registry: Registry = default_registry) -> Iterator[None]:
        """For as long as the block lasts, a submit runs its task at once, in the thread that submits, and returns when
        it has ended, whatever it came to. What is not due yet waits, and so do retries."""
        run_sync(self.engine.store())  # so that sync submits have a loop to come by
        before, self.engine.state.inline = self.engine.state.inline, registry
        try:
            yield
        finally:
            self.engine.state.inline = before

    @property
    def now(self) -> datetime:
        """The queue's clock, `advance` included."""
        return run_sync(self._now())

    async def _now(self) -> datetime:
        return await (await self.engine.store()).now()

    def advance(self, seconds: Seconds) -> None:
        """Moves the queue's clock, so that delayed tasks and retries fall due without waiting."""
        self.engine.advance(seconds)

    def advance_to(self, when: datetime, *, drain: bool = False, registry: Registry = default_registry) -> None:
        """Moves the queue's clock to this instant, and fires what schedules have due on the way, each at its time.
        `drain`: what has fallen due is run each time, before the clock moves on."""
        when = check_run_at(when, "when")
        run_sync(self.engine.publish(registry))
        while (due_at := run_sync(self._fired())) is not None and due_at <= when:
            if drain:
                self.drain(registry=registry)
            self._move(due_at)
        if drain:
            self.drain(registry=registry)
        self._move(when)
        run_sync(self._fired())

    def _move(self, when: datetime) -> None:
        step = when - self.now + timedelta(milliseconds=1)  # a store may count those only
        if step > timedelta(0):
            self.advance(step)

    async def _fired(self) -> datetime | None:
        """Fires what is due now. When the next will be."""
        await self.engine.schedules.keep()
        wait = await self.engine.schedules.fire()
        return None if wait is None else await self._now() + timedelta(seconds=wait)

    def tasks(self, name: str | None = None, *, connection: object | None = None) -> list[Task]:
        """All tasks, oldest first. With a connection: those that its transaction sees."""
        if connection is not None:
            found = play(Inline(self.engine, default_registry, connection, waits=False).tasks(name))
            if found is not None:
                return found
        return run_sync(self._all(name))

    async def tasks_async(self, name: str | None = None, *, connection: object | None = None) -> list[Task]:
        if connection is not None:
            found = await Inline(self.engine, default_registry, connection, waits=True).tasks(name)
            if found is not None:
                return found
        return await self._all(name)

    async def _all(self, name: str | None) -> list[Task]:
        where = Filter(names=None if name is None else [name])
        return (await self.engine.page(where, limit=_LIMIT, oldest_first=True)).tasks


@contextmanager
def fresh_queue(**settings: Any) -> Iterator[QueueForTests]:
    """Puts an empty in-memory queue in the place of the default one for as long as the block lasts. `settings` are the
    fields of Config; with a `database_url` it is that queue, as it is."""
    name = f"test-{secrets.token_hex(8)}"
    settings = {"database_url": f"memory://{name}", **settings}
    engine = EngineForTests(Config(**settings), settings=settings)
    try:
        with holding(engine):
            yield QueueForTests(engine)
    finally:
        tq.leave(engine)
        run_sync(engine.shutdown())
        forget_memory(name)
