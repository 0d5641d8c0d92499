"""The backend for `TASKS`: Django's tasks as tasks of a tasklib queue."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from typing import Any, cast
from uuid import UUID

from django.apps import apps
from django.core import checks
from django.db import connections, transaction
from django.utils import timezone

from tasklib.api.sync import run_sync
from tasklib.contrib.django.compat import (
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    task_backends,
    task_enqueued,
)
from tasklib.contrib.django.decorator import TasklibTask
from tasklib.contrib.django.middleware import DjangoMiddleware
from tasklib.contrib.django.options import Commit, QueueOptions
from tasklib.contrib.django.results import new_result, result_of
from tasklib.contrib.django.types import Arguments, check_arguments, name_of, register
from tasklib.core.errors import InvalidInput, MissingExtra, SchemaMismatch, TaskLibError, TaskNotFound
from tasklib.core.ids import as_task_id
from tasklib.core.options import check_options
from tasklib.core.registry import default_registry
from tasklib.core.task import NewTask, Task
from tasklib.engine.config import Config
from tasklib.engine.default import current_engine, held_engine
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.stores.values import Inserted

APP = "tasklib.contrib.django"

_engines: dict[str, Engine] = {}
"""By alias. Django has backend objects for each thread; they share these."""


class TasklibBackend(BaseTaskBackend):
    task_class = TasklibTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    # -- the queue ----------------------------------------------------------------------------------------------------

    @cached_property
    def queue_options(self) -> QueueOptions:
        """Raises InvalidConfig."""
        return QueueOptions.read(self.options)

    def config(self) -> Config:
        return self.queue_options.config(DjangoMiddleware(self.alias))

    @property
    def engine(self) -> Engine:
        """A test's, if it has one; else the one of this process, if that is on this queue; else one for this alias."""
        held = held_engine()
        if held is not None:
            return held
        url, current = self.queue_options.url(), current_engine()
        if current is not None and current.config.database_url == url:
            return current
        known = _engines.get(self.alias)
        if known is None or known.config.database_url != url:
            known = _engines[self.alias] = Engine(self.config())
        return known

    # -- tasks --------------------------------------------------------------------------------------------------------

    def validate_task(self, task: Any) -> None:
        """Also makes it known to workers: every task of this alias passes here when it is defined."""
        super().validate_task(task)
        try:
            max_retries = self.queue_options.max_retries
        except InvalidInput as error:
            raise InvalidTask(f"TASKS[{self.alias!r}]: {error}") from error
        register(task, self.queues, max_retries)

    def enqueue(self, task: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        """Stores the task as `commit` says. Raises before anything is stored: InvalidTask, or TypeError for arguments
        that are not JSON or that the function does not take."""
        self.validate_task(task)
        arguments = check_arguments(task, args, kwargs)
        name = name_of(task)
        options = check_options({"priority": task.priority, "run_at": _aware(task.run_after)})
        call = Call(name, arguments.model_dump(), options, default_registry.get(name), is_json=False)
        prepared = self.engine.prepare_at_once(call)
        assert prepared is not None, name  # the type is known here
        adding = Adding(self, task, arguments, prepared.task)
        if self.queue_options.commit is Commit.ON_COMMIT and self._connection.in_atomic_block:
            transaction.on_commit(adding, using=self.queue_options.database)
            return new_result(task, prepared.task.id, arguments, None)
        return adding()

    def get_result(self, result_id: str) -> Any:
        try:
            return self.read_result(as_task_id(result_id))
        except (InvalidInput, TaskNotFound, LookupError) as error:
            raise TaskResultDoesNotExist(result_id) from error

    def read_result(self, task_id: UUID) -> Any:
        """As the transaction sees it that this thread is in. Raises TaskNotFound, or LookupError where it is not a task
        of Django's."""
        row = self._row_here(task_id) if self._sees_queue else run_sync(self.engine.get(task_id))
        if row is None:
            raise TaskNotFound(task_id)
        return result_of(row, self.alias)

    # -- checks -------------------------------------------------------------------------------------------------------

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        where = f"TASKS[{self.alias!r}]"
        found = []
        if not apps.is_installed(APP):
            found.append(
                checks.Error(f"{where}: its app is not installed", f"Add {APP!r} to INSTALLED_APPS", id="tasklib.E001")
            )
        try:
            config = self.config()
        except (TaskLibError, ImportError) as error:
            return [*found, checks.Error(f"{where}: OPTIONS: {error}", id="tasklib.E002")]
        if config.scheme.startswith("postgres") and find_spec("asyncpg") is None:
            found.append(checks.Error(str(MissingExtra("postgres", "asyncpg", where)), id="tasklib.E003"))
        if self.alias in _sharing(config.database_url)[1:]:
            hint = "Give one of them a schema or a database of its own, or use one alias with several QUEUES"
            found.append(checks.Error(f"{where}: another alias has the same queue", hint, id="tasklib.E004"))
        if not self.queues:
            hint = "Name them in QUEUES, so that workers know what they may meet"
            text = f"{where}: without QUEUES tasks go to the queues they are defined with, and to no other"
            found.append(checks.Warning(text, hint, id="tasklib.W001"))
        return found

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _connection(self) -> Any:
        return connections[self.queue_options.database]

    @property
    def _sees_queue(self) -> bool:
        """Whether Django's own connections lead to the queue: then web processes need no others."""
        return self.queue_options.in_database and self.engine.config.scheme.startswith("postgres")

    def _row_here(self, task_id: UUID) -> Task | None:
        from tasklib.stores.sql.postgres import PostgresStore

        store = cast(PostgresStore, self.engine.new_store())
        rows = cast(list[Task], store.inside(self._connection).tasks(task_id=task_id))
        return rows[0] if rows else None

    def store(self, new: NewTask) -> Inserted:
        if self.queue_options.commit is not Commit.TRANSACTION:
            [inserted] = run_sync(self.engine.insert([new], dated=True))
            return inserted
        connection = self._connection
        alone = new.unique_rule is None or connection.in_atomic_block  # one statement needs no transaction
        around: Any = nullcontext() if alone else transaction.atomic(using=connection.alias)
        try:
            with around:
                [inserted] = cast(list[Inserted], self.engine.insert_on(connection, [new], dated=True))
        except SchemaMismatch as error:
            error.add_note("In this project the tables are made by: manage.py migrate")
            raise
        return inserted


@dataclass(frozen=True, slots=True)
class Adding:
    """What is left to do of an enqueue: now, or after the commit."""

    backend: TasklibBackend
    task: Any
    arguments: Arguments
    new: NewTask

    def __call__(self) -> Any:
        inserted = self.backend.store(self.new)
        if inserted.created_at is not None:
            result = new_result(self.task, inserted.id, self.arguments, inserted.created_at)
        else:  # of a unique task: it may be the one that was there
            result = self.backend.read_result(inserted.id)
        if inserted.created:
            task_enqueued.send(type(self.backend), task_result=result)
        return result


def _aware(run_after: datetime | None) -> datetime | None:
    """Without a zone, where USE_TZ is off, it is in the project's."""
    return run_after if run_after is None or timezone.is_aware(run_after) else timezone.make_aware(run_after)


def _sharing(url: str) -> list[str]:
    """The aliases whose queue is there."""
    found = []
    for alias in task_backends.settings:
        backend = task_backends[alias]
        if isinstance(backend, TasklibBackend):
            try:
                found += [alias] if backend.queue_options.url() == url else []
            except TaskLibError:
                continue  # its own check says so
    return found
