"""Waiting for a task to finish, as every API does it."""

from __future__ import annotations

import asyncio
from uuid import UUID

from tasklib.core.durations import Seconds
from tasklib.core.errors import WouldDeadlock
from tasklib.core.task import Task
from tasklib.engine.current import RunningTask, warn_of_waiting
from tasklib.engine.engine import Engine
from tasklib.engine.waits import Waits

LOOK_AGAIN_SECONDS = 1.0
"""What a slot waits for may be put back, or the worker be given fewer slots, after it began to wait."""


async def wait_for_task(engine: Engine, task_id: UUID, timeout: Seconds | None) -> Task:
    """The task once it has finished. Raises WaitTimeout. Who waits inside a handler is warned, and refused with
    WouldDeadlock where no slot would be left to run the task."""
    handler = warn_of_waiting(task_id, engine.config.database_url)
    if handler is None or handler._waits is None:
        return await engine.wait(task_id, timeout)
    return await _wait_in_handler(engine, task_id, timeout, handler, handler._waits)


async def _wait_in_handler(
    engine: Engine, task_id: UUID, timeout: Seconds | None, handler: RunningTask, waits: Waits
) -> Task:
    slot = (handler.id, handler._version)
    waits.begin(slot, task_id)
    waiting = asyncio.create_task(engine.wait(task_id, timeout))
    try:
        while not waiting.done():
            awaited = waits.awaited_by_all(slot)
            if awaited and all(map(waits.is_stuck, await (await engine.store()).get(awaited))):
                raise WouldDeadlock(
                    f"task {handler.id} ({handler.name}) would wait for task {task_id} for ever: every slot of its "
                    "worker waits inside a handler for tasks that need one; give the awaited task's .output to "
                    "the task that needs it, or submit that with after=[...], instead of waiting here",
                    task_id=task_id,
                )
            await asyncio.wait({waiting}, timeout=LOOK_AGAIN_SECONDS)
        return waiting.result()
    finally:
        waits.end(slot, task_id)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
