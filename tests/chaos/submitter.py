"""Submits tasks of all kinds, at a steady run_times, whatever happens to the database."""

import asyncio
import random
from contextlib import suppress
from typing import Any

from tasklib import TaskFunction
from tasklib.core.errors import TRANSIENT_OR_SLOW
from tasklib.core.options import check_options
from tasklib.core.task import NewTask
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call, prepare
from tasklib.stores.values import Filter
from tests.chaos import app

PER_SECOND = 25.0
BACKLOG = 500
Kind = TaskFunction[Any, Any, Any]
KINDS: list[tuple[Kind, float]] = [
    (app.work, 50),
    (app.work_async, 20),
    (app.flaky, 12),
    (app.snoozes, 4),
    (app.in_child, 3),
    (app.dawdles, 0.3),
]
ERRANDS = 10


async def run(engine: Engine, rng: random.Random, stop: asyncio.Event) -> None:
    number = 0
    while not stop.is_set():
        if number % 100 < 20 and await _is_full(engine):
            await _rest(stop, 0.5)
            continue
        batch = [_task(engine, rng, number + each) for each in range(rng.choice((1, 1, 1, 5, 20)))]
        number += len(batch)
        try:
            await engine.insert(batch)
        except TRANSIENT_OR_SLOW as error:
            app.history.note("not submitted", error=type(error).__name__, ids=[str(task.id) for task in batch])
        await _rest(stop, len(batch) / PER_SECOND * rng.uniform(0.5, 1.5))


async def _is_full(engine: Engine) -> bool:
    """On a slow machine the backlog would grow for as long as the run lasts."""
    with suppress(*TRANSIENT_OR_SLOW):
        return (await engine.count(Filter(states=["pending"]), BACKLOG)).capped
    return True


async def _rest(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


def _task(engine: Engine, rng: random.Random, number: int) -> NewTask:
    delay = rng.uniform(0, 3) if rng.random() < 0.15 else None
    options = check_options({"delay_seconds": delay, "priority": rng.choice((0, 0, 0, 1, 5))})
    weights = [weight for _, weight in KINDS]
    kind = rng.choices([*(kind for kind, _ in KINDS), None], [*weights, ERRANDS])[0]
    if kind is None:
        return prepare(Call(app.ERRAND, {"number": number}, options), None, engine.config).task
    arguments = kind.task_type.bind((number,), {})
    return prepare(Call(kind.name, arguments, options, kind.task_type), None, engine.config).task
