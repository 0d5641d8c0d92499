"""Submits tasks of all kinds, at a steady run_times, whatever happens to the database."""

import asyncio
import random
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from tasklib import TaskFunction, Unique, debounce, throttle
from tasklib.core.errors import TRANSIENT_OR_SLOW, InvalidOption
from tasklib.core.options import check_options
from tasklib.core.task import NewTask
from tasklib.engine.engine import Engine
from tasklib.engine.submission import NO_INPUTS, Call, prepare
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
    (app.linger, 1),
]
ERRANDS = 10
FLOWS = 0.1
"""So many batches are flows."""
LATE_LINKS = 0.06
"""So many wait for a task that was submitted a while ago, and runs, or is over, or gone."""
UNIQUE = 0.1
REFUSED: tuple[type[Exception], ...] = (*TRANSIENT_OR_SLOW, InvalidOption)
"""What a late link is to wait for may be gone."""
RULES: list[Unique] = [
    Unique("started", until="started"),
    Unique("finished", until="finished"),
    Unique("newest", until="started", conflict="replace"),
    Unique("newest of all", until="finished", conflict="replace"),
    debounce("quiet", seconds=0.5, at_most=2),
    throttle("at times", seconds=1),
]


async def run(engine: Engine, rng: random.Random, stop: asyncio.Event) -> None:
    number = 0
    recent: deque[UUID] = deque(maxlen=40)
    while not stop.is_set():
        if number % 100 < 20 and await _is_full(engine):
            await _rest(stop, 0.5)
            continue
        what = rng.random()
        if what < FLOWS:
            batch = _flow(engine, rng, number)
        elif what < FLOWS + LATE_LINKS and recent:
            batch = [_prepared(engine, app.work, number, after=[rng.choice(recent)], on=rng.choice(("success", "end")))]
        elif what < FLOWS + LATE_LINKS + UNIQUE:
            batch = [_prepared(engine, app.only, number, unique=rng.choice(RULES))]
        else:
            batch = [_task(engine, rng, number + each) for each in range(rng.choice((1, 1, 1, 5, 20)))]
        number += len(batch)
        try:
            recent.append((await engine.insert(batch))[0].id)
        except REFUSED as error:
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


def _flow(engine: Engine, rng: random.Random, number: int) -> list[NewTask]:
    """One, some that wait for it, one that gets what they return, and one that runs whatever became of that."""

    def task(kind: Kind, inputs: Mapping[str, UUID] = NO_INPUTS, **options: Any) -> NewTask:
        return _prepared(engine, kind, number, inputs, **options)

    head = task(rng.choice((app.work, app.flaky, app.coin)))
    parts = [task(rng.choice((app.work, app.work_async, app.flaky)), after=[head]) for _ in range(rng.randint(1, 4))]
    whole = task(app.gather, {f"/parts/{place}": part.id for place, part in enumerate(parts)})
    last = task(app.work, after=[whole], on="end", delay_seconds=rng.choice((None, 0.2)))
    return [each._replace(flow_id=head.id) for each in (head, *parts, whole, last)]


def _prepared(
    engine: Engine, kind: Kind, number: int, inputs: Mapping[str, UUID] = NO_INPUTS, **options: Any
) -> NewTask:
    payload = {"parts": [None] * len(inputs)} if inputs else {"number": number}
    call = Call(kind.name, payload, check_options(options), kind.task_type, inputs=inputs)
    return prepare(call, None, engine.config).task


def _task(engine: Engine, rng: random.Random, number: int) -> NewTask:
    delay = rng.uniform(0, 3) if rng.random() < 0.15 else None
    options = check_options({"delay_seconds": delay, "priority": rng.choice((0, 0, 0, 1, 5))})
    weights = [weight for _, weight in KINDS]
    kind = rng.choices([*(kind for kind, _ in KINDS), None], [*weights, ERRANDS])[0]
    if kind is None:
        return prepare(Call(app.ERRAND, {"number": number}, options), None, engine.config).task
    arguments = kind.task_type.bind((rng.uniform(0.5, 2.0) if kind is app.linger else number,), {})
    return prepare(Call(kind.name, arguments, options, kind.task_type), None, engine.config).task
