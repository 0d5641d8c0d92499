"""Run what is due, here and now: the real worker, until nothing is left to do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from tasklib.core.registry import Registry, default_registry
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine
from tasklib.worker.worker import TaskWorker


async def drain_async(
    engine: Engine | None = None,
    *,
    names: Sequence[str] | None = None,
    concurrency: int = 1,
    registry: Registry = default_registry,
) -> None:
    """Runs all that is due, and what that submits in turn, through claim, JSON and settle as in production."""
    worker = TaskWorker(
        concurrency=concurrency,
        poll_interval_seconds=0.05,
        names=names,
        registry=registry,
        burst=True,
        handle_signals=False,
        engine=engine or default_engine(),
    )
    await worker.run()


def drain(
    engine: Engine | None = None,
    *,
    names: Sequence[str] | None = None,
    concurrency: int = 1,
    registry: Registry = default_registry,
) -> None:
    """`drain_async` for tests without an event loop; also works inside one."""
    problems: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(drain_async(engine, names=names, concurrency=concurrency, registry=registry))
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=work, name="tasklib-drain")
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
