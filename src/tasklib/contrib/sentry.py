"""Failures of tasks in Sentry, with the task's id, name and attempt as tags.

    import sentry_sdk
    from tasklib.contrib.sentry import SentryMiddleware

    sentry_sdk.init(dsn="...")
    tasklib.init(Config(middleware=[SentryMiddleware()]))

Each run has an isolation scope of its own: tags and breadcrumbs of one task are never seen in another's. Tasks in child
processes are captured there, so `sentry_sdk.init` stands in a module that the child imports, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from tasklib.core.errors import MissingExtra
from tasklib.core.outcome import Fail, Snooze
from tasklib.engine import task_log
from tasklib.engine.current import RunningTask
from tasklib.engine.middleware import Middleware, TaskEvent

try:
    import sentry_sdk
    from sentry_sdk.integrations.logging import ignore_logger
except ImportError as error:
    raise MissingExtra("sentry", "sentry-sdk", "tasklib.contrib.sentry") from error

__all__ = ["SentryMiddleware"]


class SentryMiddleware(Middleware):
    """Captures what failed for good; with `every_attempt`, each attempt that failed."""

    def __init__(self, *, every_attempt: bool = False) -> None:
        self._every_attempt = every_attempt
        ignore_logger(task_log.log.name)  # the line of a failure carries its exception, too

    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        with _scope(task.id, task.name, task.attempt):
            try:
                yield
            except Snooze:
                raise
            except Exception as error:
                if self._every_attempt or task.is_last or isinstance(error, Fail):
                    sentry_sdk.capture_exception(error)
                raise

    def on_failed(self, event: TaskEvent) -> None:
        self._capture(event)

    def on_retry(self, event: TaskEvent) -> None:
        if self._every_attempt:
            self._capture(event)

    def _capture(self, event: TaskEvent) -> None:
        """What never was an exception around the handler: timeouts, workers that vanished, values that do not fit."""
        if event.seen:
            return
        with _scope(event.id, event.name, event.attempt) as scope:
            if isinstance(event.exception, Exception):
                sentry_sdk.capture_exception(event.exception)
            else:
                text = event.error or "failed"
                scope.set_context("tasklib", {"error": text})
                sentry_sdk.capture_message(text.rsplit("\n", 1)[-1], level="error")


@contextmanager
def _scope(task_id: UUID, name: str, attempt: int) -> Iterator[sentry_sdk.Scope]:
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()
        scope.set_transaction_name(name, source="task")
        scope.set_tags({"task_id": str(task_id), "task_name": name, "task_attempt": str(attempt)})
        yield scope
