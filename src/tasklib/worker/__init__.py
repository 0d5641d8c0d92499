"""The loops that claim tasks, run them and settle what came of them."""

from tasklib.engine.current import RunningTask, current_task
from tasklib.worker.worker import TaskWorker

__all__ = ["RunningTask", "TaskWorker", "current_task"]
