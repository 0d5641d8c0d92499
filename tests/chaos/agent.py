"""A worker of somebody else's making: claims errands by hand, and is not always reliable."""

import asyncio
import random
import secrets
from contextlib import suppress

from tasklib import AsyncTaskManager, TaskConflict, TaskNotFound
from tasklib.api.manager import ManagedTask
from tasklib.core.errors import TRANSIENT_OR_SLOW
from tasklib.engine.engine import Engine
from tests.chaos import app

WAYS = [("complete", 60), ("extend", 10), ("fail", 12), ("release", 8), ("forget", 2), ("late", 3)]


async def run(engine: Engine, rng: random.Random, stop: asyncio.Event) -> None:
    manager = AsyncTaskManager(engine)
    me = f"{engine.config.worker_id}-{secrets.token_hex(4)}"
    while not stop.is_set():
        try:
            errands = await manager.claim_next(me, names=[app.ERRAND], limit=3, wait_seconds=0.5)
        except TRANSIENT_OR_SLOW:
            await _rest(stop, 0.2)
            continue
        for errand in errands:
            with suppress(TaskConflict, TaskNotFound, *TRANSIENT_OR_SLOW):
                await _run(manager, me, errand, rng, stop)


async def _run(
    manager: AsyncTaskManager, me: str, errand: ManagedTask, rng: random.Random, stop: asyncio.Event
) -> None:
    mark = secrets.token_hex(8)
    app.history.note("start", id=str(errand.id), attempt=errand.attempts, mark=mark)
    way = rng.choices([way for way, _ in WAYS], [weight for _, weight in WAYS])[0]
    match way:
        case "fail":
            await manager.fail(errand.id, "no luck", worker_id=me)
            return
        case "release":
            await manager.release(errand.id, worker_id=me)
            return
        case "forget":
            return
        case "extend":
            await manager.extend(errand.id, worker_id=me)
        case "late":  # for longer than the lease: somebody else may have it by then
            await _rest(stop, manager.engine.config.lock_timeout_seconds * 1.2)
    await manager.complete(errand.id, {"mark": mark}, worker_id=me)
    app.history.note("end", id=str(errand.id), mark=mark)


async def _rest(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
