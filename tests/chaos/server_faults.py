"""Faults of the database: restarted, crashed, its sessions ended, its table locked."""

import asyncio
import threading

import apsw
import psycopg

from tests.chaos.faults import NATS, POSTGRES, SQLITE, Missed, fault
from tests.chaos.world import World
from tests.servers import PostgresServer


def server(world: World) -> PostgresServer:
    assert world.server is not None
    return world.server


@fault("PostgreSQL restarted", POSTGRES)
async def restart(world: World) -> None:
    async with world.alone:
        await asyncio.to_thread(server(world).restart, "fast")


@fault("PostgreSQL stopped immediate", POSTGRES, brief=True)
async def stop_immediate(world: World) -> None:
    async with world.alone:
        await asyncio.to_thread(server(world).restart, "immediate")


@fault("PostgreSQL killed", POSTGRES)
async def crash(world: World) -> None:
    async with world.alone:
        await asyncio.to_thread(server(world).kill9)
        await asyncio.to_thread(server(world).start)


@fault("PostgreSQL away for longer than the lease", POSTGRES)
async def away(world: World) -> None:
    async with world.alone:
        await asyncio.to_thread(server(world).stop, "fast")
        try:
            await world.pause(1.5 * world.lease)
        finally:
            await asyncio.to_thread(server(world).start)


@fault("sessions terminated", POSTGRES, brief=True)
async def terminate(world: World) -> None:
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND random() < 0.5"
    )
    async with world.alone:
        if not await asyncio.to_thread(world.sql, ended):
            raise Missed("there was no session to end")


@fault("table locked for longer than the lease", POSTGRES)
async def lock_table(world: World) -> None:
    async with world.alone:
        session = await psycopg.AsyncConnection.connect(server(world).dsn)
        async with session:
            await session.execute("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")
            await world.pause(1.2 * world.lease)


@fault("file locked for a moment", SQLITE, brief=True)
async def lock_file(world: World) -> None:
    await asyncio.to_thread(_hold, world, 0.5)


@fault("file locked for longer than the lease", SQLITE)
async def lock_file_long(world: World) -> None:
    async with world.alone:
        await asyncio.to_thread(_hold, world, 1.2 * world.lease)


def _hold(world: World, seconds: float) -> None:
    connection = apsw.Connection(str(world.path))
    try:
        connection.set_busy_timeout(10_000)
        connection.execute("BEGIN IMMEDIATE")
        threading.Event().wait(seconds)
        connection.execute("ROLLBACK")
    finally:
        connection.close()


@fault("a reader that holds back the WAL", SQLITE)
async def long_read(world: World) -> None:
    connection = apsw.Connection(str(world.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM tasks").fetchall()
        await world.pause(2 * world.lease)
        connection.execute("ROLLBACK")
    finally:
        connection.close()


@fault("node killed", NATS, brief=True)
async def kill_node(world: World) -> None:
    assert world.cluster is not None
    async with world.alone:
        node = world.rng.choice(world.cluster.nodes)
        await asyncio.to_thread(node.kill9)
        await world.pause(world.lease)
        await asyncio.to_thread(node.start)
        await world.pause(world.lease)
