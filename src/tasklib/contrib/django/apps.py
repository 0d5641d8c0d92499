from __future__ import annotations

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class TasklibConfig(AppConfig):
    name = "tasklib.contrib.django"
    label = "tasklib"
    verbose_name = "Tasks"

    def ready(self) -> None:
        from tasklib.contrib.django.startup import follow_database

        follow_database()
        connection_created.connect(follow_database, dispatch_uid="tasklib")
