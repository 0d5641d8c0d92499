"""An operator who cancels, retries, deletes and pauses whatever is on the page."""

import asyncio
import random
from contextlib import suppress

from tasklib.core.errors import TRANSIENT_OR_SLOW, FlowNotFound, ScheduleConflict, TaskConflict, TaskNotFound
from tasklib.core.task import Task
from tasklib.engine import flows
from tasklib.engine.bulk import Action
from tasklib.engine.engine import Engine
from tasklib.stores.values import ControlChange, Filter
from tests.chaos import app
from tests.chaos.timetable import OVERLAPPING

PAUSED = ("flaky", "snoozes", "errand")
STATES = {"cancel": ["pending", "running", "failed"], "retry": ["failed"], "delete": ["completed", "cancelled"]}


async def run(engine: Engine, rng: random.Random, stop: asyncio.Event) -> None:
    while not stop.is_set():
        with suppress(*TRANSIENT_OR_SLOW, TaskConflict, TaskNotFound):
            await _act(engine, rng, stop)
        await _rest(stop, rng.uniform(0.05, 0.3))


async def _act(engine: Engine, rng: random.Random, stop: asyncio.Event) -> None:
    if rng.random() < 0.05:
        await _pause(engine, rng.choice(PAUSED), stop, rng.uniform(0.1, 1.0))
        return
    if rng.random() < 0.05:
        await _schedule(engine, rng.choice(OVERLAPPING), stop, rng)
        return
    what = rng.choice(("cancel", "cancel running", "retry", "delete", "flow"))
    if what == "flow":
        await _flow(engine, rng)
        return
    if what == "cancel running":
        what, states = "cancel", ["running"]
    else:
        states = STATES[what]
    page = await engine.page(Filter(states=states), limit=50)
    # What has a key, or is a fault's own, is left alone: their stories are told elsewhere.
    found = [task for task in page.tasks if task.idempotency_key is None and task.priority < 100]
    for task in rng.sample(found, min(3, len(found))):
        with suppress(TaskConflict, TaskNotFound):
            await _do(engine, what, task)


async def _flow(engine: Engine, rng: random.Random) -> None:
    """All of a flow is cancelled, or what failed of it is tried again."""
    lost = await engine.page(Filter(names=[app.coin.name], states=["failed"], terminal=True), limit=50)
    others = await engine.page(Filter(names=[app.gather.name], states=["pending"]), limit=50)
    for action, page in ((Action.RETRY, lost), (Action.CANCEL, others)):
        flows_found = sorted({task.flow_id for task in page.tasks if task.flow_id is not None})
        if flows_found and (action is Action.RETRY or rng.random() < 0.3):
            flow_id = rng.choice(flows_found)
            app.history.note("operator", action=f"{action} flow", id=str(flow_id))
            with suppress(FlowNotFound):
                await flows.act(engine, action, flow_id)


async def _schedule(engine: Engine, name: str, stop: asyncio.Event, rng: random.Random) -> None:
    with suppress(ScheduleConflict):
        if rng.random() < 0.5:
            await engine.schedules.trigger(name)
            app.history.note("operator", action="trigger", name=name)
            return
        await engine.schedules.pause(name)
        app.history.note("operator", action="pause schedule", name=name)
        await _rest(stop, rng.uniform(0.5, 2))
        if not stop.is_set():  # else it would go on while all is worked off
            await engine.schedules.resume(name)


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
