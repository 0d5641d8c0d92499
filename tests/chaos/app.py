"""The task types of a chaos run. Each start is noted before any work, with a mark that only this start has; the mark is
in the result, so that a stored result tells which start it is of."""

import asyncio
import ctypes
import os
import random
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from typing_extensions import TypedDict

from tasklib import Middleware, RunningTask, Snooze, TaskEvent, current_task, task
from tests.chaos.history import from_environment

ERRAND = "errand"
"""The type that agents claim by hand; no worker serves it."""

history = from_environment()
_inside: ContextVar[bool] = ContextVar("inside", default=False)


class Witness(Middleware):
    """Notes what it is told, and lets handlers see that it is around them."""

    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        token = _inside.set(True)
        try:
            yield
        finally:
            _inside.reset(token)

    def on_completed(self, event: TaskEvent) -> None:
        history.note("told", kind="completed", id=str(event.id))

    def on_failed(self, event: TaskEvent) -> None:
        history.note("told", kind="failed", id=str(event.id))

    def on_retry(self, event: TaskEvent) -> None:
        history.note("told", kind="retry", id=str(event.id))

    def on_cancelled(self, event: TaskEvent) -> None:
        history.note("told", kind="cancelled", id=str(event.id))


class Done(TypedDict):
    mark: str


def begin() -> str:
    mark = secrets.token_hex(8)
    now = current_task()
    history.note("start", id=str(now.id), attempt=now.attempt, mark=mark, around=_inside.get())
    return mark


def end(mark: str) -> Done:
    history.note("end", id=str(current_task().id), mark=mark)
    return {"mark": mark}


def rest(seconds: float) -> None:
    threading.Event().wait(seconds)


@task
def work(number: int) -> Done:
    mark = begin()
    rest(random.uniform(0, 0.02))
    return end(mark)


@task
async def work_async(number: int) -> Done:
    mark = begin()
    await asyncio.to_thread(rest, random.uniform(0, 0.02))
    return end(mark)


@task
def gather(parts: list[Done]) -> Done:
    """Waits for others, and gets what they returned."""
    mark = begin()
    assert all(part["mark"] for part in parts)
    return end(mark)


@task
def only(number: int) -> Done:
    """Unique by keys that many submit."""
    mark = begin()
    rest(random.uniform(0, 0.1))
    return end(mark)


@task
def tick(seconds: float) -> Done:
    """Of a schedule."""
    mark = begin()
    rest(seconds)
    return end(mark)


@task(max_retries=0)
def coin(number: int) -> Done:
    """The head of a flow, which loses it what it needs every other time, until somebody tries it again."""
    mark = begin()
    if random.random() < 0.5:
        raise RuntimeError("tails")
    return end(mark)


@task(max_retries=4)
def flaky(number: int) -> Done:
    mark = begin()
    if random.random() < 0.5:
        raise RuntimeError(f"attempt {current_task().attempt} of {number} had no luck")
    return end(mark)


@task
def snoozes(number: int) -> Done:
    mark = begin()
    if random.random() < 0.5:
        raise Snooze(delay=random.uniform(0, 0.5))
    return end(mark)


@task(timeout_seconds=1, max_retries=1)
def dawdles(number: int) -> Done:
    mark = begin()
    for _ in range(500):
        rest(0.01)
    return end(mark)


@task(executor="process", max_retries=5)
def in_child(number: int) -> Done:
    mark = begin()
    return end(mark)


@task(executor="process", max_retries=1)
def child_dies(how: str) -> Done:
    mark = begin()
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "out of memory":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(7)
    return end(mark)


@task(max_retries=1)
def poison() -> Done:
    begin()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


@task(max_retries=20)
def linger(seconds: float) -> Done:
    """Runs for this long, in steps that a stop can interrupt. Time goes on while the process is frozen: then it ends as
    soon as it can, and its outcome comes late."""
    until = time.monotonic() + seconds
    mark = begin()
    while time.monotonic() < until:
        rest(0.01)
    return end(mark)


@task(max_retries=20)
async def block_the_loop(seconds: float) -> Done:
    mark = begin()
    rest(seconds)
    return end(mark)


@task(max_retries=3)
def hold_the_interpreter(seconds: int) -> Done:
    mark = begin()
    ctypes.PyDLL(None).sleep(seconds)  # a C call that keeps the interpreter's lock
    return end(mark)
