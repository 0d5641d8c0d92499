"""What a worker does while its database is away, and what its janitor does."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasklib import Config, TaskState, TaskWorker, task
from tasklib.core.errors import StoreGone
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.stores.values import ControlChange, Filter
from tasklib.worker.janitor import SUBMIT_SLACK_SECONDS, Janitor
from tests.conformance.builders import new_task
from tests.queues import as_default
from tests.servers import PostgresServer
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.conftest import Serve
from tests.worker.processes import fleet_on


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.mark.timeout(240)
async def test_a_restarted_server_loses_nothing(own_server: PostgresServer, tmp_path: Path):
    """Fault 10: stopped at once and restarted under load. The worker reconnects by itself, in few words."""
    async with as_default(Engine(Config(database_url=own_server.dsn))) as engine:
        ids = await app.work.submit_many_async({"number": number} for number in range(1000))
        with fleet_on(own_server.dsn, tmp_path) as fleet:
            worker = fleet.start(2)
            for mode in ("immediate", "fast"):
                seen = len(fleet.journal)
                await eventually_async(lambda seen=seen: len(fleet.journal) > seen, 60)  # type: ignore[misc]
                await asyncio.to_thread(own_server.restart, mode)
                ids += await app.work.submit_many_async({"number": number} for number in range(500))

            async def all_done() -> bool:
                return (await engine.count(Filter(states=[TaskState.COMPLETED]), 10_000)).value == len(ids)

            await eventually_async(all_done, 90, interval=0.1)
            assert worker.process.poll() is None, "it reconnected by itself"
            assert len(worker.said.splitlines()) < 200, "no flood of log lines"
            for found in await (await engine.store()).get(ids):
                assert found is not None
                assert fleet.starts("work")[str(found.id)] <= found.attempts


async def test_a_worker_whose_file_is_gone_ends_and_says_so(sqlite_url: str, tmp_path: Path):
    """It would wait for ever in a file that nobody submits to. Started anew, it serves the file that is there then."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with fleet_on(sqlite_url, tmp_path) as fleet:
        worker = fleet.start(1)
        await eventually_async(lambda: " starts: " in worker.said, 60)
        path.rename(path.with_name("aside.db"))
        assert await asyncio.to_thread(worker.wait, 60) != 0
        await eventually_async(lambda: f"{path} is no longer there" in worker.said, 10)
    assert not path.exists(), "nobody makes an empty one in its place"


async def test_a_worker_does_not_wait_for_a_file_that_is_gone(sqlite_url: str, registry: Registry):
    @task(registry=registry)
    def known() -> None: ...

    path = Path(sqlite_url.removeprefix("sqlite:///"))
    engine = Engine(Config(database_url=sqlite_url))
    worker = TaskWorker(engine=engine, registry=registry, poll_interval_seconds=0.1, handle_signals=False)
    running = asyncio.create_task(worker.run())
    await eventually_async(engine.workers, 30)
    path.rename(path.with_name("aside.db"))
    with pytest.raises(StoreGone):
        await asyncio.wait_for(running, 30)
    await engine.close()


async def test_a_worker_waits_for_a_server_that_is_not_there_yet_and_heeds_sigterm(
    own_server: PostgresServer, tmp_path: Path
):
    """Fault 9, at the start and with the database away: a signal is heeded all the same."""
    own_server.stop()
    with fleet_on(own_server.dsn, tmp_path) as fleet:
        waiting, ended = fleet.start(1, call_timeout_seconds=2), fleet.start(1, call_timeout_seconds=2)
        await eventually_async(lambda: "waiting for the database" in waiting.said, 60)
        await eventually_async(lambda: "waiting for the database" in ended.said, 60)
        ended.send(signal.SIGTERM)
        assert await asyncio.to_thread(ended.wait) == 0
        await asyncio.to_thread(own_server.start)
        async with as_default(Engine(Config(database_url=own_server.dsn))):
            assert await (await app.work.submit_async(4)).result_async(60) == 8


async def test_retention_removes_what_is_old_enough(backend_url: str, registry: Registry):
    @task(registry=registry, max_retries=0)
    def maybe(fine: bool) -> None:
        if not fine:
            raise RuntimeError

    config = Config(database_url=backend_url, keep_completed_seconds=3600, keep_failed_seconds=7200)
    async with as_default(Engine(config)) as engine:
        good, bad = await maybe.submit_async(True), await maybe.submit_async(False)
        worker = TaskWorker(engine=engine, registry=registry, burst=True, handle_signals=False)
        await worker.run()
        janitor = Janitor(engine, lambda: None)
        assert await janitor.prune() == 0
        engine.advance(4000)
        assert await janitor.prune() == 1
        assert await engine.get(good.id) is None
        engine.advance(4000)
        assert await janitor.prune() == 1
        assert await engine.get(bad.id) is None
        assert (await engine.stats()).get("maybe") is None or (await engine.stats())["maybe"].completed == 0


async def test_retention_keeps_a_task_while_its_submit_may_be_repeated(backend_url: str, registry: Registry):
    @task(registry=registry)
    def quick() -> None:
        pass

    config = Config(database_url=backend_url, keep_completed_seconds=0, call_timeout_seconds=60)
    async with as_default(Engine(config)) as engine:
        submitted = [new_task("quick")]
        await engine.insert(submitted)
        await TaskWorker(engine=engine, registry=registry, burst=True, handle_signals=False).run()
        janitor = Janitor(engine, lambda: None)
        engine.advance(60)
        assert await janitor.prune() == 0
        await engine.insert(submitted)  # as is done when nobody answered
        assert (await engine.get_or_raise(submitted[0].id)).state == "completed", "it is not to run again"
        engine.advance(SUBMIT_SLACK_SECONDS + 1)
        assert await janitor.prune() == 1


async def test_pause_holds_everything_until_resume(engine: Engine, registry: Registry, serve: Serve):
    ran = []

    @task(registry=registry)
    def quick() -> None:
        ran.append(1)

    await engine.control(ControlChange(paused=True))
    handle = await quick.submit_async()
    async with serve(2) as worker:

        async def seen() -> bool:
            return any(info.id == worker.worker_id for info in await engine.workers())

        await eventually_async(seen)
        assert (await engine.get_or_raise(handle.id)).state == TaskState.PENDING
        assert ran == []
        await engine.control(ControlChange(paused=False))
        assert (await handle.wait_async(10)).state == TaskState.COMPLETED


async def test_a_worker_is_seen_and_signs_off(engine: Engine, registry: Registry, serve: Serve):
    @task(registry=registry)
    def known() -> None: ...

    async with serve(3) as worker:

        async def mine() -> bool:
            return any(info.id == worker.worker_id and info.names == ("known",) for info in await engine.workers())

        await eventually_async(mine)
        [info] = await engine.workers()
        assert (info.concurrency, info.stopped_at) == (3, None)
    assert all(info.stopped_at is not None for info in await engine.workers())
