"""Process tasks that start processes of their own: all of them end with the task's child."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tasklib import Config, TaskState, TaskWorker
from tasklib.engine.engine import Engine
from tests.processes import has_ended
from tests.queues import as_default
from tests.waiting import eventually, eventually_async
from tests.worker import app
from tests.worker.journal import JOURNAL
from tests.worker.processes import Fleet, WorkerProcess, fleet_on

LONG = 60


@pytest.fixture
def fleet(sqlite_url: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_on(sqlite_url, tmp_path) as fleet:
        yield fleet


@pytest.fixture
async def queue(sqlite_url: str) -> AsyncIterator[Engine]:
    async with as_default(Engine(Config(database_url=sqlite_url))) as engine:
        yield engine


async def grandchild(fleet: Fleet) -> int:
    await eventually_async(lambda: fleet.starts("grandchild"), LONG)
    return int(fleet.journal[0][-1])


async def test_a_child_that_dies_takes_its_own_children_along(fleet: Fleet, queue: Engine):
    """Its pipes are held open by what it forked; its task fails all the same, and its slot is free again."""
    fleet.start(1)
    handle = await app.has_a_child.submit_async("exits")
    assert "exit code 7" in ((await handle.wait_async(LONG)).error or "")
    pid = await grandchild(fleet)
    await eventually_async(lambda: has_ended(pid))
    assert await (await app.in_child.submit_async(1)).result_async(LONG) == 2


async def test_one_that_left_the_group_holds_up_nobody(fleet: Fleet, queue: Engine):
    fleet.start(1)
    handle = await app.has_a_child.submit_async("exits", escaped=True)
    pid = await grandchild(fleet)
    try:
        assert "exit code 7" in ((await handle.wait_async(LONG)).error or "")
        assert await (await app.in_child.submit_async(1)).result_async(LONG) == 2
    finally:
        os.kill(pid, signal.SIGKILL)


async def test_a_timeout_ends_all_of_it(fleet: Fleet, queue: Engine):
    fleet.start(1)
    handle = await app.has_a_child.options(timeout_seconds=3).submit_async("waits")
    assert "TaskTimedOut" in ((await handle.wait_async(LONG)).error or "")
    pid = await grandchild(fleet)
    await eventually_async(lambda: has_ended(pid))


async def test_a_cancel_ends_all_of_it(fleet: Fleet, queue: Engine):
    fleet.start(1)
    handle = await app.has_a_child.submit_async("waits")
    pid = await grandchild(fleet)
    await handle.cancel_async()
    assert (await handle.wait_async(LONG)).state == TaskState.CANCELLED
    await eventually_async(lambda: has_ended(pid))


def told_to_stop(worker: WorkerProcess) -> None:
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def killed(worker: WorkerProcess) -> None:
    worker.send(signal.SIGKILL)
    worker.wait()


@pytest.mark.parametrize("end", [told_to_stop, killed])
async def test_nothing_outlives_its_worker(fleet: Fleet, queue: Engine, end: Callable[[WorkerProcess], None]):
    await app.has_a_child.submit_async("waits")
    worker = fleet.start(1, shutdown_grace_seconds=0.1)
    pid = await grandchild(fleet)
    family = [process.pid for process in psutil.Process(worker.process.pid).children(recursive=True)]
    assert pid in family
    assert len(family) == 3, "the guardian, the child, and the child's own"
    end(worker)
    eventually(lambda: all(map(has_ended, family)))


async def test_nothing_outlives_a_child_that_was_killed(fleet: Fleet, queue: Engine):
    fleet.start(1)
    handle = await app.has_a_child.submit_async("waits")
    pid = await grandchild(fleet)
    os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
    assert "SIGKILL" in ((await handle.wait_async(LONG)).error or "")
    await eventually_async(lambda: has_ended(pid))


async def test_a_child_that_cannot_be_started_fails_its_task_and_nothing_else(
    queue: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv(JOURNAL, str(tmp_path / "journal"))
    worker = TaskWorker(engine=queue, names=["in_child"], handle_signals=False, poll_interval_seconds=0.1)
    running = asyncio.create_task(worker.run())
    try:
        with monkeypatch.context() as patch:
            await eventually_async(queue.workers)
            patch.setattr(sys, "executable", "/no/such/python")
            handle = await app.in_child.options(max_retries=0).submit_async(1)
            assert "FileNotFoundError" in ((await handle.wait_async(LONG)).error or "")
        assert await (await app.in_child.submit_async(1)).result_async(LONG) == 2
    finally:
        worker.stop()
        await asyncio.wait_for(running, 20)
