"""Faults that a task brings along: it kills its worker or its child, or holds up everybody else."""

from contextlib import suppress

from tasklib.core.errors import TRANSIENT_OR_SLOW, TaskConflict
from tests.chaos import app
from tests.chaos.faults import Missed, fault
from tests.chaos.world import World


@fault("poison: each start kills its worker")
async def poison(world: World) -> None:
    await world.finished(await world.submit(app.poison), 60)


@fault("running task cancelled", brief=True)
async def cancelled(world: World) -> None:
    _, task_id = await world.occupied(app.linger, 30.0)
    with suppress(TaskConflict, *TRANSIENT_OR_SLOW):
        await world.engine.cancel(task_id)
        await world.finished(task_id, 25)  # long before it would end by itself
        return
    raise Missed("it could not be asked")


@fault("child segfaults")
async def segfault(world: World) -> None:
    await world.finished(await world.submit(app.child_dies, "segfault"), 60)


@fault("child exits")
async def child_exits(world: World) -> None:
    await world.finished(await world.submit(app.child_dies, "exit"), 60)


@fault("child out of memory")
async def out_of_memory(world: World) -> None:
    await world.finished(await world.submit(app.child_dies, "out of memory"), 60)


@fault("handler blocks the loop for three leases")
async def blocked_loop(world: World) -> None:
    await world.finished(await world.submit(app.block_the_loop, 3 * world.lease), 90)


@fault("handler holds the interpreter for two leases")
async def held_interpreter(world: World) -> None:
    await world.finished(await world.submit(app.hold_the_interpreter, int(2 * world.lease)), 90)
