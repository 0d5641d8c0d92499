"""Tasks for child processes, and middleware that notes what it sees in a file."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasklib import Middleware, RunningTask, TaskLogFilter, task

NOTES = "TASKLIB_TEST_NOTES"


def note(*words: object) -> None:
    with Path(os.environ[NOTES]).open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


class Noting(Middleware):
    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        note("before", task.name, task.attempt, task.arguments, task.is_last, os.getpid())
        try:
            yield
        finally:
            note("after", task.name, task.attempt)


class Absent(Middleware):
    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        yield


class NotesHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note("log", self.format(record))


log = logging.getLogger("tests.worker.middleware_app")


def _watch() -> None:
    handler = NotesHandler()
    handler.setFormatter(logging.Formatter("%(task_name)s %(task_attempt)s %(task_id)s %(message)s"))
    handler.addFilter(TaskLogFilter())
    log.addHandler(handler)


@task(executor="process", max_retries=0)
def tells() -> None:
    told = logging.getLogger("shop.orders")
    told.debug("too fine for the worker")
    told.info("packed %d of %s", 2, "3", extra={"customer": "ada", "items": [1]})
    if (pid := os.fork()) == 0:
        told.info("from a process of its own")
        os._exit(0)
    os.waitpid(pid, 0)
    try:
        raise LookupError("no label")
    except LookupError:
        told.exception("could not label")
    os.kill(os.getpid(), signal.SIGKILL)


@task(executor="process")
def noted(number: int) -> int:
    note("handler", os.getpid())
    return number


@task(executor="process")
async def noted_async(number: int) -> int:
    note("handler", os.getpid())
    return number


@task(executor="process", max_retries=0)
def fails() -> None:
    raise LookupError("no such thing")


@task(executor="process")
def logs() -> None:
    _watch()
    log.warning("said inside")
