"""Limits hold for the whole fleet: processes of their own, judged by the times in the table."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tasklib import Task, TaskQueue, TaskState
from tasklib.api.sync import run_sync
from tasklib.stores.values import ControlChange, Filter
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
LONG = 60
RATE = 20
SECONDS = 4

Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def queue(shared_url: str) -> Iterator[TaskQueue]:
    queue = TaskQueue(shared_url, enable_worker=False)
    yield queue
    queue.stop()


@pytest.fixture
def start(shared_url: str, queue: TaskQueue) -> Iterator[Start]:
    """Starts one more process; all are stopped at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def one() -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        started.append(subprocess.Popen([sys.executable, "-m", "tests.tq.program", shared_url], cwd=ROOT, env=env))
        return started[-1]

    yield one
    for process in started:
        process.terminate()
    for process in started:
        process.wait(LONG)


def add(queue: TaskQueue, name: str, count: int) -> None:
    for number in range(count):
        queue.enqueue(name, number)


def ready(queue: TaskQueue, count: int) -> None:
    """All processes have signed on with both handlers."""
    eventually(
        lambda: [set(worker.names) for worker in run_sync(queue.engine.workers())] == [{"limited", "held"}] * count,
        LONG,
    )


def tasks(queue: TaskQueue, name: str) -> list[Task]:
    return run_sync(queue.engine.page(Filter(names=[name]), limit=10_000)).tasks


def test_a_rate_limit_is_shared_by_two_processes(queue: TaskQueue, start: Start):
    start(), start()
    ready(queue, 2)
    queue.set_rate_limit("limited", RATE)
    count = (SECONDS + 2) * RATE  # the first bucket, and more than flows in: there is always something to take
    add(queue, "limited", count)
    eventually(lambda: queue.stats()["byType"]["limited"]["completed"] == count, LONG, interval=0.1)
    done = tasks(queue, "limited")
    starts = sorted(task.started_at for task in done if task.started_at is not None)
    assert len(starts) == count
    begun_in_time = sum(begun < starts[0] + timedelta(seconds=SECONDS) for begun in starts)
    assert begun_in_time == pytest.approx(SECONDS * RATE, abs=RATE + 1), "the rate, give or take the first bucket"
    for first, begun in enumerate(starts):
        for last in range(first, len(starts)):
            # In any stretch of time: what the bucket held, and what flowed in. One for the clock's granularity.
            most = RATE + RATE * (starts[last] - begun).total_seconds() + 1
            assert last - first + 1 <= most, (begun, starts[last])
    assert all(task.attempts == 1 for task in done), "what is deferred uses no attempt"
    assert len({task.result["value"] for task in done if task.result}) == 2, "both processes took part"


def most_at_once(done: list[Task]) -> int:
    """By the times in the table. An end and a start at the same instant do not overlap."""
    moves: list[tuple[datetime, int]] = []
    for task in done:
        assert task.started_at is not None
        assert task.completed_at is not None
        moves += [(task.started_at, 1), (max(task.completed_at, task.started_at + timedelta(microseconds=1)), -1)]
    running = most = 0
    for _, step in sorted(moves):
        running += step
        most = max(most, running)
    return most


def test_a_concurrency_limit_holds_although_a_process_is_killed(queue: TaskQueue, start: Start):
    run_sync(queue.engine.control(ControlChange(name="held", concurrency=3)))
    processes = {process.pid: process for process in (start() for _ in range(4))}
    ready(queue, 4)
    add(queue, "held", 60)
    seen: list[int] = []

    def sampled() -> dict[str, int]:
        counts = queue.stats()["byType"]["held"]
        seen.append(counts["processing"])
        assert seen[-1] <= 3
        return {"completed": counts["completed"], "processing": counts["processing"]}

    eventually(lambda: sampled()["completed"] >= 10, LONG)
    [victim, *_] = eventually(lambda: [each for each in tasks(queue, "held") if each.state == TaskState.RUNNING], LONG)
    holder = next(worker for worker in run_sync(queue.engine.workers()) if worker.id == victim.worker_id)
    processes[holder.pid].send_signal(signal.SIGKILL)
    assert processes[holder.pid].wait(LONG) == -signal.SIGKILL
    eventually(lambda: sampled()["completed"] == 60, LONG)
    assert max(seen) == 3, "and it was made use of"
    done = tasks(queue, "held")
    assert most_at_once(done) <= 3
    assert all(task.attempts <= 2 for task in done)
