"""`tasklib worker --processes N`: N worker processes, and one supervisor that runs none of the user's code.

It starts a dead one again, with growing pauses; passes on the signal to stop; and ends when all have ended.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Sequence

from tasklib.cli.ending import AFTER_GRACE_SECONDS, EXIT_SECONDS
from tasklib.cli.exits import LASTING, Exit
from tasklib.cli.workerprocess import Lifeline, WorkerProcess
from tasklib.worker.signals import STOP_SIGNALS, StopSignals

log = logging.getLogger("tasklib.supervisor")

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
HEALTHY_SECONDS = 10.0
"""A process that lived this long starts again after the shortest pause."""
BURST_TRIES = 5
"""In a burst, so many quick deaths in a row are the end: somebody waits for it."""
PATIENCE_SECONDS = 5.0
"""How long a process may take to leave at once."""

LATE_SECONDS = AFTER_GRACE_SECONDS + 2 * EXIT_SECONDS + 1.0
"""How long after its grace period a process that was told to stop is killed."""


class Supervisor:
    def __init__(self, arguments: Sequence[Sequence[str]], *, burst: bool) -> None:
        """`arguments`: of each process."""
        self._arguments = arguments
        self._burst = burst
        self._lifeline = Lifeline()
        self._alive: set[WorkerProcess] = set()
        self._started = asyncio.Event()
        self._signals = StopSignals()
        self._stopping = asyncio.Event()
        self._leaving = asyncio.Event()
        self._code = Exit.OK

    async def run(self) -> Exit:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._told, number)
        keepers: list[asyncio.Task[None]] = []
        try:
            # The first alone: what is wrong with the modules is then said once.
            keepers.append(asyncio.create_task(self._keep(1)))
            started = asyncio.create_task(self._started.wait())
            await asyncio.wait({keepers[0], started}, return_when=FIRST_COMPLETED)
            if not started.cancel():
                keepers += [asyncio.create_task(self._keep(number)) for number in range(2, len(self._arguments) + 1)]
            leaving = asyncio.create_task(self._leave(keepers))
            await asyncio.gather(*keepers)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
        finally:
            for process in list(self._alive):
                process.tell(signal.SIGKILL)
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)
            self._lifeline.close()
        return Exit.INTERRUPTED if self._leaving.is_set() else self._code

    def _told(self, number: signal.Signals) -> None:
        if not self._signals.count():
            return
        if self._stopping.is_set():
            self._leaving.set()
        log.info("%s: %s", number.name, "leaving at once" if self._leaving.is_set() else "stopping all processes")
        self._stop(number)

    def _stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        self._stopping.set()
        for process in list(self._alive):
            process.tell(number)

    async def _keep(self, number: int) -> None:
        """Keeps one process going for as long as it should."""
        pause, quick_deaths = FIRST_PAUSE_SECONDS, 0
        while not self._stopping.is_set():
            begun = time.monotonic()
            code = await self._run_once(number)
            if self._stopping.is_set() or (self._burst and code == Exit.OK):
                break
            if code == Exit.OK:
                log.info("process %d has ended in order, as it was asked to; it does not start again", number)
                break
            if code in LASTING:
                self._code = Exit(code)
                self._stop()
                break
            healthy = time.monotonic() - begun >= HEALTHY_SECONDS
            quick_deaths = 0 if healthy else quick_deaths + 1
            pause = FIRST_PAUSE_SECONDS if healthy or quick_deaths == 1 else min(pause * 2, LONGEST_PAUSE_SECONDS)
            if self._burst and quick_deaths >= BURST_TRIES:
                log.error("process %d died %d times in a row: giving up", number, quick_deaths)
                self._code = Exit.FAILED
                self._stop()
                break
            log.warning("process %d %s; it starts again in %g s", number, _ending(code), pause)
            await self._pause(pause)

    async def _run_once(self, number: int) -> int:
        process = await WorkerProcess.start(self._arguments[number - 1], self._lifeline)
        self._alive.add(process)
        try:
            if self._stopping.is_set():  # told while it was being started
                process.tell(signal.SIGTERM)
            log.info("process %d started, pid %d", number, process.pid)
            grace = await process.ready()
            if grace is not None:
                self._started.set()
            return await self._until_ended(number, process, grace or 0.0)
        finally:
            self._alive.discard(process)

    async def _until_ended(self, number: int, process: WorkerProcess, grace: float) -> int:
        """A process that was told to stop sees to its own end, unless a C call holds its interpreter."""
        ended = asyncio.create_task(process.ended())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({ended, stopping}, return_when=FIRST_COMPLETED)
        stopping.cancel()
        _, late = await asyncio.wait({ended}, timeout=grace + LATE_SECONDS)
        if late:
            log.error("process %d, pid %d, does not end: it is killed", number, process.pid)
            process.tell(signal.SIGKILL)
        return await ended

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass

    async def _leave(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        await self._leaving.wait()
        _, late = await asyncio.wait(keepers, timeout=PATIENCE_SECONDS)
        if late:
            for process in list(self._alive):
                process.tell(signal.SIGKILL)


def _ending(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
