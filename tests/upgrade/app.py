"""Tasks of an upgrade, in the words of schema version 1: the code of that time imports this file, too."""

import threading

from tasklib import current_task, task
from tests.worker.journal import note


@task
def work(number: int) -> int:
    note("work", number)
    return number * 2


@task
def slow(number: int) -> int:
    """Long enough to be running while the schema is changed beside it."""
    note("slow", number)
    threading.Event().wait(0.2)
    return number


@task
def fails_once(number: int) -> int:
    note("fails_once", number)
    if current_task().attempt == 1:
        raise ValueError("the first attempt")
    return number
