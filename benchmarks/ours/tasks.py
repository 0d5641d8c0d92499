"""The tasks that are measured: one small argument, one small result."""

import threading

from benchmarks.starts import mark
from tasklib import task


@task
def noop(number: int) -> int:
    mark(number)
    return number


@task
def nap(number: int) -> int:
    mark(number)
    threading.Event().wait(1)
    return number


@task
async def noop_async(number: int) -> int:
    mark(number)
    return number
