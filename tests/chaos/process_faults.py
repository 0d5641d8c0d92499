"""Faults of processes: killed, frozen, told to stop, deprived of their streams."""

import asyncio
import signal
import subprocess
from contextlib import suppress

import psutil

from tasklib.core.errors import TRANSIENT_OR_SLOW
from tests.chaos import app
from tests.chaos.crew import Member
from tests.chaos.faults import Missed, fault
from tests.chaos.world import World


def any_worker(world: World) -> Member:
    workers = world.crew.workers
    if not workers:
        raise Missed("no worker is up")
    return world.rng.choice(workers)


@fault("worker killed, whatever it does", brief=True)
async def kill_any(world: World) -> None:
    any_worker(world).send(signal.SIGKILL)


@fault("worker killed in mid-task", brief=True)
async def kill_busy(world: World) -> None:
    worker, task_id = await world.occupied(app.linger, 1.0)
    worker.send(signal.SIGKILL)
    await world.finished(task_id, 30)


@fault("submitter killed")
async def kill_submitter(world: World) -> None:
    submitters = world.crew.by_role("submitter")
    if not submitters:
        raise Missed("no submitter is up")
    world.rng.choice(submitters).send(signal.SIGKILL)


@fault("agent killed")
async def kill_agent(world: World) -> None:
    agents = world.crew.by_role("agent")
    if not agents:
        raise Missed("no agent is up")
    world.rng.choice(agents).send(signal.SIGKILL)


@fault("worker frozen for longer than its lease", brief=True)
async def freeze_long(world: World) -> None:
    for _ in range(8):  # several end at once when it wakes, and hardly all are told in time that they are lost
        await world.submit(app.linger, 1.0)
    worker, _ = await world.occupied(app.linger, 1.0)
    await freeze(world, worker, world.lease * 1.5)


@fault("worker frozen for a moment", brief=True)
async def freeze_short(world: World) -> None:
    worker, _ = await world.occupied(app.linger, 0.5)
    await freeze(world, worker, 0.3)


async def freeze(world: World, worker: Member, seconds: float) -> None:
    """On SQLite not while it holds the write lock: then nobody could get on, and nothing would be shown."""
    for _ in range(20):
        if not worker.alive:
            raise Missed("it died before it could be frozen")
        worker.freeze()
        try:
            if await _others_can_write(world):
                await world.pause(seconds)
                return
        finally:
            worker.thaw()
    raise Missed("it always held the write lock")


async def _others_can_write(world: World) -> bool:
    if world.path is None:
        return True
    try:
        async with asyncio.timeout(1):
            await world.unpause("nobody")
    except TimeoutError:
        return False
    return True


@fault("SIGTERM while short tasks run", brief=True)
async def stop_with_short_tasks(world: World) -> None:
    worker, _ = await world.occupied(app.linger, 0.2)
    await stop(worker)


@fault("SIGTERM while a long task runs")
async def stop_with_long_task(world: World) -> None:
    worker, task_id = await world.occupied(app.linger, 3.0)
    await stop(worker)
    await world.finished(task_id, 60)


async def stop(worker: Member) -> None:
    worker.send(signal.SIGTERM)
    assert worker.process is not None
    try:
        await asyncio.to_thread(worker.process.wait, 30)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{worker.name} did not stop within 30 s:\n{worker.said[-2000:]}") from None


@fault("second signal")
async def second_signal(world: World) -> None:
    worker, _ = await world.occupied(app.linger, 5.0)
    worker.send(signal.SIGTERM)
    await world.pause(1.2)  # what comes in the same instant as the first is no second one
    if not worker.alive:
        raise Missed("it had left before the second signal")
    await stop(worker)


@fault("child of a worker killed")
async def kill_child(world: World) -> None:
    children: list[psutil.Process] = []
    # Not while a worker starts: it tries a child first, and does not start without one.
    registered: set[int] = set()
    with suppress(*TRANSIENT_OR_SLOW):
        registered = {info.pid for info in await world.engine.workers()}
    for worker in (worker for worker in world.crew.workers if worker.pid in registered):
        try:
            children += psutil.Process(worker.pid).children(recursive=True)  # and their guardians
        except psutil.NoSuchProcess:
            continue
    if not children:
        await world.submit(app.in_child, 0)
        raise Missed("no worker has a child")
    try:
        world.rng.choice(children).kill()
    except psutil.NoSuchProcess as error:
        raise Missed("it was gone before") from error


@fault("worker whose stdout and stderr are closed")
async def closed_streams(world: World) -> None:
    worker = await world.crew.start("worker", closed_streams=True)

    async def registered() -> bool:
        return any(info.id.startswith(f"{worker.name}-") for info in await world.engine.workers())

    try:
        await world.until(registered, 90, "it never registered")  # slow on a machine that is busy
        await world.pause(1.0)
        if not worker.alive:
            raise Missed("it was killed by another fault")
    finally:
        if worker in world.crew.members:
            await world.crew.retire(worker)
