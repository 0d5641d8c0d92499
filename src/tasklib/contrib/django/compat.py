"""The names of `django.tasks`, which Django 5.2 has from the package `django-tasks`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import django

from tasklib.core.errors import MissingExtra

BUILT_IN = django.VERSION[0] >= 6
_NAME = "django.tasks" if BUILT_IN else "django_tasks"


def _module(name: str = "") -> Any:
    try:
        return import_module(_NAME + name)
    except ImportError as error:
        raise MissingExtra("django", "django-tasks", "tasklib.contrib.django on Django 5.2") from error


_tasks, _base, _exceptions, _signals = _module(), _module(".base"), _module(".exceptions"), _module(".signals")
_module(".checks")  # importing it registers the check that asks each backend

task_backends: Any = _tasks.task_backends
DEFAULT_ALIAS: str = _tasks.DEFAULT_TASK_BACKEND_ALIAS
DEFAULT_QUEUE: str = _tasks.DEFAULT_TASK_QUEUE_NAME
DEFAULT_PRIORITY: int = _base.DEFAULT_TASK_PRIORITY
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
BaseTaskBackend: Any = _module(".backends.base").BaseTaskBackend
TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
InvalidTask: Any = _exceptions.InvalidTask if BUILT_IN else _exceptions.InvalidTaskError
InvalidTaskBackend: Any = _exceptions.InvalidTaskBackend if BUILT_IN else _exceptions.InvalidTaskBackendError
task_enqueued: Any = _signals.task_enqueued
task_started: Any = _signals.task_started
task_finished: Any = _signals.task_finished
normalize_json: Any = (import_module("django.utils.json") if BUILT_IN else _module(".utils")).normalize_json
