"""A queue on three nodes of NATS, worked on by real processes, while a node and a worker are killed."""

import signal
from pathlib import Path

from tasklib import Config
from tasklib.core.errors import TRANSIENT
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter
from tests.nats_servers import NatsCluster
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import fleet_on

TASKS = 12_000


async def test_a_node_and_a_worker_are_killed_and_nothing_is_lost(tmp_path: Path):
    """Fault 22: one of three nodes is killed, and a worker too. The cluster goes on, every task has one outcome."""
    with NatsCluster() as cluster:
        url = f"{cluster.url}?replicas=3&bucket=shop"
        engine = Engine(Config(database_url=url))
        before = use_engine(engine)
        submitted = await app.work.submit_many_async([{"number": number} for number in range(TASKS)])
        use_engine(before)

        async def completed() -> int:
            return (await engine.stats())["work"].completed

        async def has_come_to(number: int) -> None:
            async def reached() -> bool:
                try:
                    return await completed() >= number
                except TRANSIENT:  # a leader is being chosen
                    return False

            await eventually_async(reached, timeout=90, interval=0.2)

        with fleet_on(url, tmp_path) as fleet:
            for _ in range(3):
                fleet.start(8)
            await has_come_to(500)
            node = cluster.leader_of("KV_shop")
            node.kill9()
            await has_come_to(1_000)
            victim = fleet.workers[0]
            victim.send(signal.SIGKILL)
            assert victim.wait() == -signal.SIGKILL
            assert len(fleet.starts("work")) < TASKS, "it was killed while there was work"
            node.start(wait=False)
            fleet.start(8)
            await has_come_to(TASKS)
            starts = fleet.starts("work")
            assert set(starts) == {str(task_id) for task_id in submitted}, "every task ran"

        tasks = []
        cursor = None
        while True:
            page = await engine.page(Filter(), limit=1000, cursor=cursor)
            tasks += page.tasks
            cursor = page.next_cursor
            if cursor is None:
                break
        assert {task.id for task in tasks} == set(submitted)
        assert {task.state for task in tasks} == {"completed"}
        assert all(task.result == {"value": task.kwargs["number"] * 2} for task in tasks)
        # One more start for each attempt that the killed worker took with it, and for no other.
        assert all(starts[str(task.id)] <= 1 + task.retry_count for task in tasks)
        await engine.close()
