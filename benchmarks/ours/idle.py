"""Workers that have nothing to do."""

import asyncio
import signal

from benchmarks.contender import Contender
from tasklib import Config, TaskWorker
from tasklib.core.registry import Registry, TaskOptions, define


def never_submitted(number: int) -> int:
    return number


class IdleWorkers(Contender):
    """Options: `count`. All in one process, each with connections, threads and heartbeats of its own."""

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        registry = Registry()
        registry.add(define(never_submitted, name=None, options=TaskOptions()))
        workers = [
            TaskWorker(Config(database_url=self.url), registry=registry, handle_signals=False)
            for _ in range(self.options["count"])
        ]
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: [worker.stop() for worker in workers])
        await asyncio.gather(*(worker.run() for worker in workers))
