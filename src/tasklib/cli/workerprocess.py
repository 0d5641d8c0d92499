"""A worker in a process of its own: started, told when it is ready, and never left behind.

Its lifeline is the reading end of a pipe whose other end only the parent holds: when the parent is gone, even by
kill -9, the pipe ends, and the worker stops as if told to. It starts a session of its own, because a Ctrl-C reaches all
processes of a terminal: what a worker is told comes from its parent alone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any


class Lifeline:
    """The parent's end. Close it, or die, and the workers stop."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()

    def close(self) -> None:
        os.close(self.reading)
        os.close(self._writing)


async def start(arguments: Sequence[str], lifeline: Lifeline, *fds: int, **options: Any) -> asyncio.subprocess.Process:
    """Runs `tasklib` with these arguments for as long as the lifeline holds. `fds` stay open in it."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tasklib.cli", *arguments, "--lifeline", str(lifeline.reading)),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=(lifeline.reading, *fds),
        start_new_session=True,
        **options,
    )


class WorkerProcess:
    def __init__(self, process: asyncio.subprocess.Process, ready: asyncio.Task[float | None]) -> None:
        self._process = process
        self._ready = ready

    @classmethod
    async def start(cls, arguments: Sequence[str], lifeline: Lifeline) -> WorkerProcess:
        """Runs `tasklib worker` with these arguments."""
        reading, writing = os.pipe()
        try:
            process = await start(["worker", *arguments, "--ready", str(writing)], lifeline, writing)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return cls(process, asyncio.create_task(_read_grace(reading)))

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> float | None:
        """Its grace period, once its tasks are loaded; None if it ended before."""
        return await asyncio.shield(self._ready)

    async def ended(self) -> int:
        """Its exit code; negative for the signal that ended it."""
        return await self._process.wait()

    def tell(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def stop(self, patience: float) -> None:
        await end(self._process, patience)


async def end(process: asyncio.subprocess.Process, patience: float) -> None:
    """Politely, then by force."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(patience):
            await process.wait()
    except TimeoutError:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _read_grace(fd: int) -> float | None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(fd, readable.set)
    try:
        await readable.wait()
        told = os.read(fd, 64)
        return float(told) if told else None
    finally:
        loop.remove_reader(fd)
        os.close(fd)


# -- the worker's side ------------------------------------------------------------------------------------------------


def hold_lifeline(fd: int) -> None:
    """Stops this process, as a signal would, when its parent is gone."""

    def wait() -> None:
        while os.read(fd, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    os.set_inheritable(fd, False)
    threading.Thread(target=wait, name="tasklib-lifeline", daemon=True).start()


def say_ready(fd: int, grace: float) -> None:
    with suppress(OSError):  # nobody waits for it any more
        os.write(fd, str(grace).encode())
    os.close(fd)
