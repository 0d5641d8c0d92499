"""Faults that a task brings along: it kills its worker or its child, or holds up everybody else."""

from tests.chaos import app
from tests.chaos.faults import fault
from tests.chaos.world import World


@fault("poison: each start kills its worker")
async def poison(world: World) -> None:
    await world.finished(await world.submit(app.poison), 60)


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
