"""Faults of the line between one process and the PostgreSQL server."""

from collections.abc import Callable

from tests.chaos.crew import Member
from tests.chaos.faults import POSTGRES, Missed, fault
from tests.chaos.world import World
from tests.stores.proxy import Proxy


def any_line(world: World) -> tuple[Member, Proxy]:
    """Of whoever is connected now."""
    found = [m for m in world.crew.members if m.alive and m.proxy is not None and m.proxy.busy]
    if not found:
        raise Missed("nobody is connected")
    member = world.rng.choice(found)
    assert member.proxy is not None
    return member, member.proxy


@fault("connections reset", POSTGRES, brief=True)
async def reset(world: World) -> None:
    any_line(world)[1].cut()


async def lose(world: World, order: Callable[[Proxy, bytes], None], marker: bytes) -> None:
    """The next message with the marker, whoever sends it."""
    any_line(world)
    proxies = [member.proxy for member in world.crew.members if member.proxy is not None]
    before = sum(proxy.faults for proxy in proxies)
    for proxy in proxies if marker else [world.rng.choice(proxies)]:
        order(proxy, marker)

    async def lost() -> bool:
        return sum(proxy.faults for proxy in proxies) > before

    try:
        await world.until(lost, 10, "nothing was sent")
    finally:
        for proxy in proxies:
            proxy.disarm()


@fault("cut before the statement arrives", POSTGRES)
async def lose_request(world: World) -> None:
    await lose(world, Proxy.lose_request, b"")


@fault("cut after the commit, before the reply", POSTGRES, brief=True)
async def lose_reply(world: World) -> None:
    await lose(world, Proxy.lose_reply, b"")


@fault("cut before COMMIT", POSTGRES)
async def lose_commit(world: World) -> None:
    await lose(world, Proxy.lose_request, b"COMMIT\0")


@fault("reply to COMMIT lost", POSTGRES)
async def lose_committed(world: World) -> None:
    await lose(world, Proxy.lose_reply, b"COMMIT\0")


@fault("latency", POSTGRES)
async def latency(world: World) -> None:
    _, proxy = any_line(world)
    proxy.delay = world.rng.uniform(0.02, 0.2)
    try:
        await world.pause(3)
    finally:
        proxy.delay = 0.0


@fault("silence for a moment", POSTGRES)
async def short_silence(world: World) -> None:
    await silence(world, Proxy.freeze, 0.5)


@fault("silence for longer than the lease", POSTGRES)
async def long_silence(world: World) -> None:
    await silence(world, Proxy.freeze, 2 * world.lease)


@fault("answers lost, requests arrive", POSTGRES)
async def one_way(world: World) -> None:
    await silence(world, lambda line: line.freeze("to client"), 1.5 * world.lease)


async def silence(world: World, begin: Callable[[Proxy], None], seconds: float) -> None:
    _, proxy = any_line(world)
    begin(proxy)
    try:
        await world.pause(seconds)
    finally:
        proxy.thaw()
