"""`tasklib worker --reload`: one worker process, started anew whenever a Python file changes. For development."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from tasklib.cli.exits import Exit
from tasklib.cli.workerprocess import Lifeline, WorkerProcess
from tasklib.core.errors import MissingExtra

log = logging.getLogger("tasklib.reload")

PATIENCE_SECONDS = 10.0
"""How long running tasks may hold up a start anew."""


class Reloader:
    def __init__(self, arguments: Sequence[str], modules: Sequence[str]) -> None:
        self._arguments = list(arguments)
        self._folders = _folders(modules)
        self._stopping = asyncio.Event()

    async def run(self) -> Exit:
        try:
            from watchfiles import PythonFilter, awatch
        except ImportError:
            raise MissingExtra("reload", "watchfiles", "tasklib worker --reload") from None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        lifeline = Lifeline()
        process = await WorkerProcess.start(self._arguments, lifeline)
        ending = asyncio.create_task(self._tell_end(process))
        log.info("watching %s for changes", ", ".join(map(str, self._folders)))
        try:
            changes = awatch(*self._folders, watch_filter=PythonFilter(), stop_event=self._stopping)
            async for changed in changes:
                log.info("%s changed: starting anew", ", ".join(sorted(_shown(path) for _, path in changed)))
                ending.cancel()
                await process.stop(PATIENCE_SECONDS)
                process = await WorkerProcess.start(self._arguments, lifeline)
                ending = asyncio.create_task(self._tell_end(process))
        finally:
            ending.cancel()
            await process.stop(PATIENCE_SECONDS)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            lifeline.close()
        return Exit.OK

    async def _tell_end(self, process: WorkerProcess) -> None:
        """A worker that ends by itself could not start: the next change may mend that."""
        code = await process.ended()
        log.warning("the worker ended with exit code %d; it starts anew with the next change", code)


def _folders(modules: Sequence[str]) -> list[Path]:
    """The current one, and those of modules that were named by a path elsewhere."""
    here = Path.cwd()
    given = [Path(module).absolute().parent for module in modules if module.endswith(".py")]
    return [here, *(folder for folder in dict.fromkeys(given) if not folder.is_relative_to(here))]


def _shown(path: str) -> str:
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path
