"""Tasks for workers in processes of their own. Each start is noted in the journal."""

import asyncio
import ctypes
import os
import signal
import threading
import time
from pathlib import Path

from tasklib import Snooze, current_task, task
from tests.worker.journal import note


@task
def work(number: int) -> int:
    note("work", number)
    return number * 2


@task
def tick(schedule: str) -> None:
    note("tick", schedule, current_task().slot)


@task
def slow(number: int) -> int:
    """Long enough to be running when something beside it kills its worker."""
    note("slow", number)
    threading.Event().wait(0.2)
    return number


@task
def fails_once(number: int) -> int:
    note("fails_once", number)
    if current_task().attempt == 1:
        raise ValueError("the first attempt")
    return number


@task(max_retries=2)
def poison() -> None:
    note("poison")
    os.kill(os.getpid(), signal.SIGKILL)


@task
def wait_for_file(path: str) -> str:
    note("wait")
    gate = threading.Event()
    while not Path(path).exists():
        gate.wait(0.01)
    return path


@task
async def wait_for_file_async(path: str) -> str:
    note("wait")
    while not Path(path).exists():
        await asyncio.to_thread(threading.Event().wait, 0.01)
    return path


@task
def blocks_forever() -> None:
    note("blocks")
    threading.Event().wait()


@task(name="snoozes")
def snoozes() -> None:
    raise Snooze(delay=3600)


@task(executor="process", retry_for=OSError, no_retry_for=[FileNotFoundError])
def picky(kind: str) -> None:
    raise {"connection": ConnectionError, "missing": FileNotFoundError, "value": ValueError}[kind]


@task(executor="process")
def doubled(number: int) -> int:
    return number * 2


@task(executor="process", max_retries=0)
def sum_of_parents() -> list[str | int]:
    return [str(current_task().flow_id), sum(parent.value for parent in current_task().parents())]


@task(executor="process")
def in_child(number: int) -> int:
    note("child", number)
    return number + 1


@task(executor="process")
async def in_child_async(number: int) -> int:
    return number + 2


@task(executor="process", timeout_seconds=1, max_retries=0)
def holds_the_interpreter() -> None:
    note("holds")
    ctypes.PyDLL(None).sleep(60)  # a C call that keeps the interpreter's lock


@task(executor="process", max_retries=0)
def dies(how: str) -> None:
    note("dies", how)
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "out of memory":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(7)


@task(executor="process")
def child_waits(path: str) -> str:
    note("child_waits")
    gate = threading.Event()
    while not Path(path).exists():
        gate.wait(0.01)
    return path


@task
def holds_gil(seconds: int) -> str:
    note("holds_gil")
    ctypes.PyDLL(None).sleep(seconds)
    return "done"


@task
async def blocks_the_loop(seconds: float) -> str:
    note("blocks_the_loop")
    threading.Event().wait(seconds)
    return "done"


@task
def keep(text: str) -> int:
    return len(text)


@task
def tells_the_time(path: str) -> float:
    """What this process takes for the time; waits for the file, so that a lease has to be kept."""
    note("tells_the_time")
    gate = threading.Event()
    while not Path(path).exists():
        gate.wait(0.01)
    return time.time()


@task
def blocks_once(path: str) -> str:
    """Only its first start never ends by itself."""
    note("blocks_once")
    if not Path(path).exists():
        Path(path).touch()
        threading.Event().wait()
    return path


@task(executor="process", max_retries=0)
def has_a_child(how: str, escaped: bool = False) -> None:
    """Forks a process that does not end by itself, notes its pid, and ends in its own way, or not at all."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        if escaped:
            os.setsid()
        note("grandchild")
        os.write(writing, b"noted")
        signal.pause()
    os.read(reading, 1)
    if how == "exits":
        os._exit(7)
    threading.Event().wait()
