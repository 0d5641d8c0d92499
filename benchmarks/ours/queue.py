"""tasklib on any of its stores."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.contender import Contender
from benchmarks.crowd import counted
from benchmarks.ours.tasks import nap, noop, noop_async
from tasklib import Config, TaskWorker, init, submit_many, task
from tasklib.core.ids import uuid7
from tasklib.core.registry import Registry, default_registry
from tasklib.engine.default import default_engine
from tasklib.worker.gc_tuning import tune_gc


class Tasklib(Contender):
    """Options: `kind` (def, async, or nap for one that takes a second), `concurrency` (left out: every setting at its
    default), `types` (how many more task types are registered beside the one that is used)."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        super().__init__(url, options)
        chosen = f"concurrency {options['concurrency']}, all else" if "concurrency" in options else "every setting"
        self.settings = f"{chosen} at its default. Arguments validated, results stored, rows kept."
        self.task: Any = {"async": noop_async, "nap": nap}.get(options.get("kind", ""), noop)
        self.config = Config(database_url=url)
        self.since = uuid7(time.time_ns() // 1_000_000 - 1000, 0, 0)
        init(self.config)

    async def open(self) -> None:
        await default_engine().store()

    async def send(self, number: int) -> None:
        await self.task.submit_async(number=number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        await submit_many(self.task, [{"number": number} for number in numbers])

    async def close(self) -> None:
        await default_engine().close()

    async def done(self) -> int:
        """Counted in the table itself, or on NATS by the store, which keeps a list of all tasks."""
        if self.url.startswith("nats://"):
            stats = (await default_engine().stats()).get(self.task.name)
            return 0 if stats is None else stats.completed
        return counted(self.url, self.task.name, self.since)

    def work(self) -> None:
        options = {"concurrency": self.options["concurrency"]} if "concurrency" in self.options else {}
        tune_gc()  # as the command `tasklib worker` does
        asyncio.run(TaskWorker(self.config, registry=self._registry(), **options).run())

    def _registry(self) -> Registry:
        for number in range(self.options.get("types", 0)):

            def idle(number: int) -> int:
                return number

            task(name=f"idle_{number}")(idle)
        return default_registry


class BlockingTasklib(Tasklib):
    """Submits from synchronous code."""

    def open(self) -> None:  # type: ignore[override]
        pass

    def send(self, number: int) -> None:  # type: ignore[override]
        self.task.submit(number=number)

    def send_many(self, numbers: Sequence[int]) -> None:  # type: ignore[override]
        self.task.submit_many([{"number": number} for number in numbers])
