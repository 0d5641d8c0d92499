"""PostgreSQL ends sessions, again and again, and is away for a while."""

import asyncio
from pathlib import Path

import psutil
import psycopg
import pytest

from tasklib import Config
from tasklib.engine.engine import Engine
from tests.queues import as_default
from tests.servers import PostgresServer
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import fleet_on

LONG = 60
END_SESSIONS = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()
"""


async def test_sessions_that_are_ended_under_load_cost_nothing(postgres_url: str, tmp_path: Path):
    """Fault 10, backends killed: five times all sessions of a worker and of who submits are ended while they work. Both
    reconnect by themselves; every task has one outcome, and no start without its attempt."""
    ours = f"ended-{tmp_path.parent.name}"
    url = f"{postgres_url}&application_name={ours}"
    ids = []
    async with as_default(Engine(Config(database_url=url))) as engine:
        with fleet_on(url, tmp_path) as fleet, psycopg.connect(postgres_url.partition("?")[0], autocommit=True) as psql:
            worker = fleet.start(4, dead_after_seconds=30.0)
            ended = 0
            for _ in range(5):
                ids += await app.work.submit_many_async({"number": number} for number in range(100))
                seen = len(fleet.journal)
                await eventually_async(lambda seen=seen: len(fleet.journal) > seen, LONG)  # type: ignore[misc]
                ended += (psql.execute(END_SESSIONS, [ours]).fetchone() or (0,))[0]
            assert ended >= 10, "sessions were ended"

            async def all_done() -> bool:
                return (await engine.stats())["work"].completed == len(ids)

            await eventually_async(all_done, LONG, interval=0.1)
            assert worker.process.poll() is None
            assert len(worker.said.splitlines()) < 100
            for found in await (await engine.store()).get(ids):
                assert found is not None
                assert 1 <= fleet.starts("work")[str(found.id)] <= found.attempts


@pytest.mark.infrastructure
async def test_a_server_that_is_away_costs_little_while_it_is(tmp_path: Path):
    """Fault 10, no busy loop: while the server is away an idle and a busy worker use next to no processor time and few
    lines of the log; when it is back both go on by themselves."""
    with PostgresServer() as server, fleet_on(server.dsn, tmp_path) as fleet:
        gate = tmp_path / "gate"
        async with as_default(Engine(Config(database_url=server.dsn))) as engine:
            waits = await app.wait_for_file.submit_async(str(gate))
            workers = [fleet.start(1, dead_after_seconds=60.0, call_timeout_seconds=2) for _ in range(2)]
            await eventually_async(lambda: len(fleet.journal) == 1, LONG)
            await eventually_async(lambda: _registered(engine, 2), LONG)
            await asyncio.to_thread(server.stop)
            await eventually_async(lambda: all("heartbeat not confirmed" in each.said for each in workers), LONG)
            processes = [psutil.Process(worker.process.pid) for worker in workers]
            used = [sum(process.cpu_times()[:2]) for process in processes]
            lines = [len(worker.said.splitlines()) for worker in workers]

            def five_more() -> bool:
                return all(len(each.said.splitlines()) >= was + 5 for each, was in zip(workers, lines, strict=True))

            begun = asyncio.get_running_loop().time()
            await eventually_async(five_more, LONG)
            took = asyncio.get_running_loop().time() - begun
            for process, was in zip(processes, used, strict=True):
                assert sum(process.cpu_times()[:2]) - was < 0.3 * took, "it is busy waiting"
            await asyncio.to_thread(server.start)
            gate.touch()
            assert (await waits.wait_async(LONG)).attempts == 1
            assert await (await app.work.submit_async(2)).result_async(LONG) == 4
            await eventually_async(lambda: all("connected again to" in worker.said for worker in workers), LONG)
            assert all(len(worker.said.splitlines()) < 100 for worker in workers)


async def _registered(engine: Engine, number: int) -> bool:
    return len(await engine.workers()) == number
