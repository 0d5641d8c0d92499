"""For tests of a Django project: its tasks run inside the transaction of a `TestCase`, and are undone with it.

class OrderTest(TestCase):
    def setUp(self):
        self.queue = self.enterContext(task_queue())

    def test_an_order_is_shipped(self):
        order.place()
        self.queue.drain()
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections

from tasklib.api.sync import run_sync
from tasklib.contrib.django.backend import Adding, TasklibBackend
from tasklib.contrib.django.compat import DEFAULT_ALIAS
from tasklib.contrib.django.operations import PUBLIC
from tasklib.contrib.django.startup import backend_of
from tasklib.core.durations import Seconds
from tasklib.core.registry import Registry, default_registry
from tasklib.core.task import Task
from tasklib.engine.default import current_engine
from tasklib.engine.listeners import flush_blocking
from tasklib.stores.sql.queries import made_by_steps
from tasklib.testing.engine import EngineForTests
from tasklib.testing.queue import QueueForTests, fresh_queue

__all__ = ["DjangoQueue", "task_queue"]


class DjangoQueue:
    """What `task_queue()` gives."""

    def __init__(self, queue: QueueForTests, backend: TasklibBackend) -> None:
        self._queue = queue
        self._backend = backend

    @property
    def engine(self) -> EngineForTests:
        return self._queue.engine

    @property
    def _connection(self) -> Any:
        return connections[self._backend.queue_options.database]

    def drain(self) -> None:
        """Runs all that is due, and what that enqueues in turn, in this thread: each task in a savepoint, which is
        undone if it fails. What waits for a commit is stored first, as a commit would."""
        while True:
            self._commit()
            self._queue.drain(registry=_sync_types(), connection=self._connection)
            if not self._waiting():
                return

    async def adrain(self) -> None:
        await sync_to_async(self.drain)()

    def advance(self, seconds: Seconds) -> None:
        """Moves the queue's clock, so that retries and what was put off fall due without waiting."""
        self._queue.advance(seconds)

    def tasks(self, name: str | None = None) -> list[Task]:
        """All that this test has enqueued, oldest first."""
        return self._queue.tasks(name, connection=self._connection)

    def close(self) -> None:
        """What was committed is deleted, as `TransactionTestCase` does with the rows of models."""
        flush_blocking()
        current = current_engine()
        if current is not None and current is not self._queue.engine:  # a command's, which would keep its connections
            run_sync(current.close())
        options, connection = self._backend.queue_options, self._connection
        if options.in_database and not connection.in_atomic_block:
            schema = connection.ops.quote_name(options.schema or PUBLIC)
            tables = [name for name in made_by_steps("postgres", "TABLE") if name != "task_migrations"]
            with connection.cursor() as cursor:
                for name in tables:  # TRUNCATE takes longer
                    cursor.execute(f"DELETE FROM {schema}.{name}")  # noqa: S608 (names of our own)

    def _waiting(self) -> list[Any]:
        return [entry for entry in self._connection.run_on_commit if isinstance(entry[1], Adding)]

    def _commit(self) -> None:
        """Other callbacks are the test's own: Django's `captureOnCommitCallbacks` runs them."""
        waiting = self._waiting()
        self._connection.run_on_commit = [each for each in self._connection.run_on_commit if each not in waiting]
        for entry in waiting:
            entry[1]()


@contextmanager
def task_queue(backend: str = DEFAULT_ALIAS) -> Iterator[DjangoQueue]:
    """For as long as the block lasts tasks go to a queue of the test's own: in the test's database, if that is
    PostgreSQL and the queue is there in production, too; otherwise in memory."""
    own = backend_of(backend)
    settings = own.config().given
    if not own.queue_options.in_database:
        del settings["database_url"]
    with fresh_queue(**settings) as queue:
        found = DjangoQueue(queue, own)
        try:
            yield found
        finally:
            found.close()


def _sync_types() -> Registry:
    """Coroutines are run as Django runs them for sync code: what they ask the database goes through this thread."""
    found = Registry()
    for kind in default_registry:
        found.add(replace(kind, function=async_to_sync(kind.function), is_async=False) if kind.is_async else kind)
    return found
