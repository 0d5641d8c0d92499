"""Looks at tasks."""

from uuid import UUID

from tasklib import Task, TaskQueue


def need(queue: TaskQueue, task_id: UUID) -> Task:
    task = queue.get_task(task_id)
    assert task is not None
    return task
