"""The table of tasks, to read: for the admin, its permissions, and your own queries on PostgreSQL."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models
from django.db.utils import NotSupportedError


class Task(models.Model):
    """A row of the queue. It is made and changed through tasklib, which guards and records what is done to it."""

    id = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=255)
    state = models.CharField(max_length=20)
    priority = models.IntegerField()
    kwargs = models.JSONField("arguments")
    result = models.JSONField(null=True)
    error = models.TextField(null=True)
    tags = models.JSONField()
    retry_count = models.IntegerField()
    max_retries = models.IntegerField()
    created_at = models.DateTimeField()
    scheduled_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    next_retry_at = models.DateTimeField(null=True)
    worker_id = models.CharField(max_length=255, null=True)

    class Meta:
        managed = False
        db_table = "tasks"
        ordering = ("-id",)
        default_permissions = ("view", "change")

    def __str__(self) -> str:
        return f"{self.name} {self.id}"

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSupportedError("tasks are changed through tasklib: enqueue, retry_task, cancel_task")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSupportedError("tasks are deleted through tasklib: delete_task")
