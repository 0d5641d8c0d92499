"""tasklib as the backend of `django.tasks`: on Django 6, and on Django 5.2 with the package `django-tasks`.

    INSTALLED_APPS = [..., "tasklib.contrib.django"]
    TASKS = {"default": {"BACKEND": "tasklib.contrib.django.TasklibBackend"}}

It says in Django's words what tasklib does: tasks are rows of the queue, workers are tasklib's, and `manage.py tasklib`
is the command `tasklib`.
"""

from __future__ import annotations

from tasklib.core.errors import MissingExtra

try:
    import django as _django
except ImportError as error:
    raise MissingExtra("django", "django", "tasklib.contrib.django") from error
else:
    del _django

from tasklib.contrib.django.backend import TasklibBackend
from tasklib.contrib.django.decorator import TasklibTask, task

__all__ = ["TasklibBackend", "TasklibTask", "task"]
