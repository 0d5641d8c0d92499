"""Which task a log record was made in."""

from __future__ import annotations

import logging

from tasklib.engine.current import running


class TaskLogFilter(logging.Filter):
    """Gives each record `task_id`, `task_name` and `task_attempt`, which are None outside of a task. Put it on a
    handler, so that it sees the records of all loggers. What a record has already is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        make = running.get()
        task = None if make is None else make()
        fields = record.__dict__
        fields.setdefault("task_id", None if task is None else str(task.id))
        fields.setdefault("task_name", None if task is None else task.name)
        fields.setdefault("task_attempt", None if task is None else task.attempt)
        return True
