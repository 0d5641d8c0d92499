"""Makes the queue of a `TASKS` backend the one that tasklib's own functions use in this process.

A module of its own: children of workers import it for their settings, before they import tasks.
"""

from __future__ import annotations

import os
from typing import Any

import django
from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from tasklib.contrib.django.backend import TasklibBackend
from tasklib.contrib.django.compat import DEFAULT_ALIAS, InvalidTaskBackend, task_backends
from tasklib.contrib.django.types import known_tasks, register
from tasklib.core.errors import TaskLibError
from tasklib.engine.default import current_engine, held_engine, init
from tasklib.engine.engine import Engine

BACKEND_VARIABLE = "TASKLIB_DJANGO_BACKEND"
"""The alias in TASKS, for processes that a command starts."""

_alias = DEFAULT_ALIAS
_ours: Engine | None = None
"""What was set here; what the application sets by itself stays."""


def backend_of(alias: str) -> TasklibBackend:
    """Raises InvalidTaskBackend where the alias is none of tasklib's."""
    backend = task_backends[alias]
    if not isinstance(backend, TasklibBackend):
        raise InvalidTaskBackend(f"TASKS[{alias!r}] is not a backend of tasklib's")
    return backend


def current_backend() -> TasklibBackend:
    """The one whose queue this process uses."""
    return backend_of(_alias)


def use_queue(alias: str) -> TasklibBackend:
    """Raises InvalidTaskBackend, and InvalidConfig for its options."""
    global _alias, _ours
    backend = backend_of(alias)
    _alias = alias
    if held_engine() is None:  # a test has its own
        init(backend.config())
        _ours = current_engine()
    return backend


def follow_database(**about: Any) -> None:
    """When Django starts, and when it connects: tests have a database of their own, and only a connection tells."""
    current = current_engine()
    if current is not _ours:
        return
    try:
        if current is None or current.config.database_url != current_backend().queue_options.url():
            use_queue(_alias)
    except (InvalidTaskBackend, TaskLibError):
        return  # what is wrong is said by the checks


def load_project(alias: str) -> None:
    """For those who run tasks: the queue, and the tasks of all apps."""
    backend = use_queue(alias)
    autodiscover_modules("tasks")
    for task in known_tasks():  # also those of other aliases: `using(backend=...)` may send them here
        register(task, backend.queues, backend.queue_options.max_retries)


if not apps.models_ready:  # in a child
    django.setup()
    load_project(os.environ.get(BACKEND_VARIABLE, DEFAULT_ALIAS))
