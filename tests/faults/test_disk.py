"""A disk that is full, and then has room again: mounted small for the purpose, so it takes root."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from uuid import UUID

import apsw
import psycopg
import pytest

from tasklib import Config, StoreFull, TaskState
from tasklib.core.errors import TRANSIENT
from tasklib.engine.engine import Engine
from tests.faults.disk import SmallDisk, small_disk
from tests.queues import as_default
from tests.servers import PostgresServer, owner
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import fleet_on

pytestmark = [pytest.mark.infrastructure, pytest.mark.root]

LOAD = [{"text": "x" * 2000}] * 50


@asynccontextmanager
async def queue_on(url: str) -> AsyncIterator[Engine]:
    async with as_default(Engine(Config(database_url=url, call_timeout_seconds=10))) as engine:
        yield engine


async def submit_for_ever(acknowledged: list[UUID]) -> None:
    while True:
        acknowledged += await app.keep.submit_many_async(LOAD)


async def submit_until_full(acknowledged: list[UUID]) -> None:
    """Until a submit is refused, which must say why."""
    with pytest.raises(StoreFull) as caught:
        await submit_for_ever(acknowledged)
    assert "room" in str(caught.value) or "space" in str(caught.value)


async def fill_and_make_room(engine: Engine, disk: SmallDisk, url: str, folder: Path) -> list[UUID]:
    """Twice full, and twice room again, with a worker at work all the while."""
    acknowledged: list[UUID] = []
    with fleet_on(url, folder) as fleet:
        worker = fleet.start(2)
        first = await app.keep.submit_async("first")
        await first.wait_async(60)
        for _ in range(2):
            disk.fill(leave=3 * 1024 * 1024)
            await submit_until_full(acknowledged)
            disk.fill()
            disk.make_room()
            # The same engine and the same worker go on.
            acknowledged += await app.keep.submit_many_async(LOAD)
        await drained(engine)
        assert worker.process.poll() is None, "no restart was needed"
        assert len(worker.said.splitlines()) < 300, worker.said[:3000]
    for task in await (await engine.store()).get(acknowledged):
        assert task is not None, "acknowledged and gone"
        assert (task.state, task.result) == (TaskState.COMPLETED, {"value": 2000})
    assert len(acknowledged) > 200
    return acknowledged


async def drained(engine: Engine) -> None:
    async def nothing_left() -> bool:
        figures = (await engine.stats())["keep"]
        return figures.pending == figures.running == figures.waiting == 0

    await eventually_async(nothing_left, 90, interval=0.2)


async def test_sqlite(tmp_path: Path):
    """Fault 15 on SQLite: a submit without room is refused and says so, nothing acknowledged is missing, and with room
    again the same processes go on."""
    with small_disk(tmp_path / "disk", 64) as disk:
        path = disk.folder / "tasks.db"
        async with queue_on(f"sqlite:///{path}") as engine:
            await fill_and_make_room(engine, disk, f"sqlite:///{path}", tmp_path)
        connection = apsw.Connection(str(path))
        assert connection.pragma("integrity_check") == "ok"
        connection.close()


@pytest.mark.timeout(240)
async def test_postgres(tmp_path: Path):
    """Fault 15 on PostgreSQL, the disk of its tables: the same."""
    with PostgresServer() as server, small_disk(server.home / "disk", 64) as disk:
        tables = disk.folder / "tables"
        tables.mkdir()
        os.chown(tables, owner().pw_uid, owner().pw_gid)
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
            connection.execute("CREATE DATABASE queue TABLESPACE small")
        url = server.dsn.removesuffix("postgres") + "queue"
        async with queue_on(url) as engine:
            await fill_and_make_room(engine, disk, url, tmp_path)
        assert "could not extend file" in server.log
        assert "PANIC" not in server.log


@pytest.mark.timeout(240)
async def test_postgres_without_room_for_its_log(tmp_path: Path):
    """Fault 15 on PostgreSQL, the disk of its write-ahead log: the server itself breaks down. Started again with room,
    it has all that was acknowledged, and the same engine and worker go on."""
    acknowledged: list[UUID] = []
    with LogOnSmallDisk() as server, fleet_on(server.dsn, tmp_path) as fleet:
        async with queue_on(server.dsn) as engine:
            worker = fleet.start(2, call_timeout_seconds=5)
            await (await app.keep.submit_async("first")).wait_async(60)
            server.disk.fill(leave=2 * 1024 * 1024)
            with pytest.raises(TRANSIENT):
                await submit_for_ever(acknowledged)
            await eventually_async(lambda: "PANIC" in server.log, 60)
            server.stop("immediate")
            server.disk.make_room()
            await asyncio.to_thread(server.start)
            acknowledged += await app.keep.submit_many_async(LOAD)
            await drained(engine)
            assert worker.process.poll() is None
            found = await (await engine.store()).get(acknowledged)
            assert {task.state if task else None for task in found} == {TaskState.COMPLETED}


class LogOnSmallDisk(PostgresServer):
    def __init__(self) -> None:
        super().__init__(settings={"max_wal_size": "8MB", "min_wal_size": "2MB", "wal_recycle": "off"})
        self._mounts = ExitStack()

    def _make_data(self) -> None:
        self.disk = self._mounts.enter_context(small_disk(self.home / "disk", 32, owner().pw_uid))
        options = ["--username=postgres", "--auth=trust", "--encoding=utf8", "--locale=C", "--wal-segsize=1"]
        self._run("initdb", *options, f"--pgdata={self.data}", f"--waldir={self.disk.folder}/log")

    def close(self) -> None:
        self.stop("immediate")
        self._mounts.close()
        super().close()
