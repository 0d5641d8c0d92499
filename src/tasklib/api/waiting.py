"""Waiting for a task to finish, as every API does it."""

from __future__ import annotations

from uuid import UUID

from tasklib.core.durations import Seconds
from tasklib.core.task import Task
from tasklib.engine.current import warn_of_waiting
from tasklib.engine.engine import Engine


async def wait_for_task(engine: Engine, task_id: UUID, timeout: Seconds | None) -> Task:
    """The task once it has finished. Raises WaitTimeout. Who waits inside a handler is warned."""
    warn_of_waiting(task_id, engine.config.database_url)
    return await engine.wait(task_id, timeout)
