"""Around each task of a worker: care for Django's connections, and Django's signals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, cast

from asgiref.sync import sync_to_async
from django.db import connections, reset_queries

from tasklib.api.sync import run_sync
from tasklib.contrib.django.compat import task_backends, task_finished, task_started
from tasklib.contrib.django.results import result_of
from tasklib.contrib.django.types import is_registered, running
from tasklib.core.errors import TaskNotFound
from tasklib.engine.current import RunningTask
from tasklib.engine.middleware import Middleware, TaskEvent

if TYPE_CHECKING:
    from tasklib.contrib.django.backend import TasklibBackend


class DjangoMiddleware(Middleware):
    def __init__(self, alias: str) -> None:
        self._alias = alias

    @property
    def _backend(self) -> TasklibBackend:
        return cast("TasklibBackend", task_backends[self._alias])

    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        renew_connections()
        try:
            if is_registered(task.name):
                self._start(self._backend.read_result(task.id) if _in_transaction() else self._read(task))
            yield
        finally:
            renew_connections()

    @asynccontextmanager
    async def around_async(self, task: RunningTask) -> AsyncIterator[None]:
        in_thread = sync_to_async(renew_connections)  # the one in which Django runs what is sync for coroutines
        await in_thread()
        try:
            if is_registered(task.name):
                row = await self._backend.engine.get_or_raise(task.id)
                result = result_of(row, self._alias)
                running.set(result)
                await task_started.asend(type(self._backend), task_result=result)
            yield
        finally:
            await in_thread()

    def on_completed(self, event: TaskEvent) -> None:
        self._finish(event)

    def on_failed(self, event: TaskEvent) -> None:
        self._finish(event)

    def on_cancelled(self, event: TaskEvent) -> None:
        self._finish(event)

    def _read(self, task: RunningTask) -> Any:
        row = run_sync(self._backend.engine.get(task.id))
        if row is None:
            raise TaskNotFound(task.id)
        return result_of(row, self._alias)

    def _start(self, result: Any) -> None:
        running.set(result)
        task_started.send(type(self._backend), task_result=result)

    def _finish(self, event: TaskEvent) -> None:
        row = run_sync(self._backend.engine.get(event.id)) if is_registered(event.name) else None
        if row is None:  # another's, or deleted since
            return
        result = result_of(row, self._alias)
        renew_connections()
        try:
            if event.exception is not None:
                raise event.exception  # so that those who log it find it: they ask sys.exc_info()
            task_finished.send(type(self._backend), task_result=result)
        except BaseException as error:
            if error is not event.exception:
                raise
            task_finished.send(type(self._backend), task_result=result)
        finally:
            renew_connections()


def renew_connections() -> None:
    """As Django does before and after a request; and what has been idle is looked at before it is used: the server may
    have closed it since."""
    reset_queries()
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:  # a test's
            connection.health_check_enabled = True
            connection.close_if_unusable_or_obsolete()


def _in_transaction() -> bool:
    """As in a test: then only this thread's connection sees the task."""
    return any(connection.in_atomic_block for connection in connections.all(initialized_only=True))
