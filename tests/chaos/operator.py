"""An operator who cancels, retries, deletes and pauses whatever is on the page."""

import asyncio
import random
from contextlib import suppress

from tasklib.core.errors import TRANSIENT_OR_SLOW, TaskConflict, TaskNotFound
from tasklib.core.task import Task
from tasklib.engine.engine import Engine
from tasklib.stores.values import ControlChange, Filter
from tests.chaos import app

PAUSED = ("flaky", "snoozes", "errand")


async def run(engine: Engine, rng: random.Random, stop: asyncio.Event) -> None:
    while not stop.is_set():
        with suppress(*TRANSIENT_OR_SLOW, TaskConflict, TaskNotFound):
            await _act(engine, rng, stop)
        await _rest(stop, rng.uniform(0.05, 0.3))


async def _act(engine: Engine, rng: random.Random, stop: asyncio.Event) -> None:
    if rng.random() < 0.05:
        await _pause(engine, rng.choice(PAUSED), stop, rng.uniform(0.1, 1.0))
        return
    what = rng.choice(("cancel", "retry", "delete"))
    states = {"cancel": ["pending", "running", "failed"], "retry": ["failed"], "delete": ["completed", "cancelled"]}
    page = await engine.page(Filter(states=states[what]), limit=50)
    # What has a key, or is a fault's own, is left alone: their stories are told elsewhere.
    found = [task for task in page.tasks if task.idempotency_key is None and task.priority < 100]
    for task in rng.sample(found, min(3, len(found))):
        with suppress(TaskConflict, TaskNotFound):
            await _do(engine, what, task)


async def _do(engine: Engine, what: str, task: Task) -> None:
    app.history.note("operator", action=what, id=str(task.id))
    await {"cancel": engine.cancel, "retry": engine.retry, "delete": engine.delete}[what](task.id)


async def _pause(engine: Engine, name: str, stop: asyncio.Event, seconds: float) -> None:
    await engine.control(ControlChange(name=name, paused=True))
    app.history.note("operator", action="pause", name=name)
    await _rest(stop, seconds)
    await engine.control(ControlChange(name=name, paused=False))


async def _rest(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
