"""Workers as real processes that die, freeze and are told to stop."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from tasklib import Config, TaskState, is_terminal
from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.outcome import Completed
from tasklib.core.retry import RetryPolicy
from tasklib.engine.engine import Engine
from tasklib.stores.values import ClaimRequest, ControlChange, Filter
from tasklib.worker.signals import ECHO_SECONDS
from tests.processes import has_ended
from tests.queues import as_default
from tests.waiting import eventually, eventually_async
from tests.worker import app
from tests.worker.processes import Fleet, WorkerProcess, fleet_on

LONG = 60


@pytest.fixture
def fleet(shared_url: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_on(shared_url, tmp_path) as fleet:
        yield fleet


@pytest.fixture
async def queue(shared_url: str) -> AsyncIterator[Engine]:
    async with as_default(Engine(Config(database_url=shared_url))) as engine:
        yield engine


async def count(engine: Engine, state: str) -> int:
    return (await engine.count(Filter(states=[state]), 100_000)).value


async def freeze(worker: WorkerProcess, queue: Engine) -> None:
    """Stops a process, but not while it holds SQLite's write lock: then nobody could get on, and nothing be shown."""
    while True:
        worker.send(signal.SIGSTOP)
        try:
            async with asyncio.timeout(2):
                await queue.control(ControlChange(name="nobody", paused=False))
            return
        except TimeoutError:
            worker.send(signal.SIGCONT)


@pytest.mark.timeout(240)
async def test_5000_tasks_drain_although_one_of_two_workers_is_killed_in_mid_batch(fleet: Fleet, queue: Engine):
    """Fault 1: a worker is killed in mid-task. Its silence is noticed, and what it held runs again, the attempt
    counted."""
    ids = await app.work.submit_many_async({"number": number} for number in range(5000))
    victim, survivor = fleet.start(8), fleet.start(8)
    await eventually_async(lambda: len(fleet.journal) > 500, LONG)
    victim.send(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    assert await count(queue, TaskState.COMPLETED) < 5000, "killed too late to prove anything"

    async def all_done() -> bool:
        return await count(queue, TaskState.COMPLETED) == 5000

    await eventually_async(all_done, LONG)
    assert survivor.process.poll() is None
    tasks = await (await queue.store()).get(ids)
    assert [task.result for task in tasks if task] == [{"value": number * 2} for number in range(5000)]
    starts = fleet.starts("work")
    assert set(starts) == {str(task_id) for task_id in ids}
    for task in tasks:
        assert task is not None
        assert starts[str(task.id)] <= task.attempts, "no start without its attempt"


@pytest.mark.timeout(180)
async def test_a_task_that_kills_its_worker_stops_after_its_last_attempt(fleet: Fleet, queue: Engine):
    """Fault 5: a poison pill has exactly its allowed starts in the whole fleet, and then an error that names the
    loss."""
    handle = await app.poison.submit_async()
    bystander = await app.work.submit_async(1)

    async def finished() -> bool:
        if all(worker.process.poll() is not None for worker in fleet.workers):
            fleet.start(1)
        return is_terminal(await queue.get_or_raise(handle.id))

    await eventually_async(finished, LONG, interval=0.05)
    done = await queue.get_or_raise(handle.id)
    assert (done.state, done.attempts, done.retry_count) == (TaskState.FAILED, 3, 2)
    assert "WorkerLost" in (done.error or "")
    assert fleet.starts("poison") == {str(handle.id): 3}, "exactly as many starts as attempts"
    assert (await bystander.wait_async(LONG)).state == TaskState.COMPLETED


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("shared_url", "pills"), [("sqlite", 1), ("sqlite", 2), ("postgres", 2), ("nats", 2)], indirect=["shared_url"]
)
async def test_a_poison_pill_does_not_wear_out_its_neighbours(fleet: Fleet, queue: Engine, pills: int):
    """Fault 5: what is claimed together with it falls due together with it. From the second loss on each starts apart,
    so that the pill dies of its last attempt alone, and its neighbours complete. A supervisor brings the worker back.
    """
    poisons = [(await app.poison.options(max_retries=3).submit_async()).id for _ in range(pills)]
    neighbours = await app.slow.submit_many_async({"number": number} for number in range(30))

    async def finished() -> bool:
        if all(worker.process.poll() is not None for worker in fleet.workers):
            fleet.start(4)
        tasks = await (await queue.store()).get([*poisons, *neighbours])
        return all(task is not None and is_terminal(task) for task in tasks)

    await eventually_async(finished, 2 * LONG, interval=0.05)
    done = [task for task in await (await queue.store()).get(neighbours) if task is not None]
    assert {task.state for task in done} == {TaskState.COMPLETED}
    assert 1 <= max(len(task.history) for task in done) <= 2, "some were lost with it, and none more than twice"
    for poison in poisons:
        assert "WorkerLost" in ((await queue.get_or_raise(poison)).error or "")
        assert fleet.starts("poison")[str(poison)] <= 4


async def test_a_frozen_worker_finds_its_task_taken_and_changes_nothing(fleet: Fleet, queue: Engine, tmp_path: Path):
    """Fault 6: frozen for longer than the lease. Another worker's result stands, and the first is told."""
    gate = tmp_path / "gate"
    handle = await app.wait_for_file.submit_async(str(gate))
    frozen = fleet.start(1)
    await eventually_async(lambda: len(fleet.journal) == 1, LONG)
    await freeze(frozen, queue)
    try:
        fleet.start(1)
        await eventually_async(lambda: len(fleet.journal) == 2, LONG)
        gate.touch()
        done = await handle.wait_async(LONG)
    finally:
        frozen.send(signal.SIGCONT)
    assert (done.state, done.attempts) == (TaskState.COMPLETED, 2)
    await eventually_async(lambda: "lost" in frozen.said or "no longer this worker's" in frozen.said, LONG)
    assert await queue.get_or_raise(handle.id) == done, "nothing it does changes the row"
    assert frozen.process.poll() is None


async def test_a_short_freeze_is_survived_without_a_second_start(fleet: Fleet, queue: Engine, tmp_path: Path):
    """Fault 7: frozen for a moment. Nothing starts twice."""
    gate = tmp_path / "gate"
    handle = await app.wait_for_file.submit_async(str(gate))
    first, _ = (fleet.start(1, heartbeat_seconds=0.5, dead_after_seconds=20.0) for _ in range(2))
    await eventually_async(lambda: len(fleet.journal) == 1, LONG)
    holder = next(worker for worker in fleet.workers if str(worker.process.pid) == fleet.journal[0][-1])
    holder.send(signal.SIGSTOP)
    before = (await queue.get_or_raise(handle.id)).locked_until
    holder.send(signal.SIGCONT)

    async def extended() -> bool:
        return (await queue.get_or_raise(handle.id)).locked_until != before

    await eventually_async(extended, LONG)
    gate.touch()
    assert (await handle.wait_async(LONG)).attempts == 1
    assert len(fleet.journal) == 1
    assert first.process.poll() is None


async def test_sigterm_lets_short_tasks_finish_and_gives_long_ones_back(fleet: Fleet, queue: Engine, tmp_path: Path):
    """Fault 9: told to stop. Short tasks finish, long ones go back with their attempt, within the grace period."""
    gate = tmp_path / "gate"
    short = await app.wait_for_file.submit_async(str(gate))
    short_async = await app.wait_for_file_async.submit_async(str(gate))
    long = await app.blocks_forever.submit_async()
    worker = fleet.start(3, shutdown_grace_seconds=1.0)
    await eventually_async(lambda: len(fleet.journal) == 3, LONG)
    worker.send(signal.SIGTERM)
    await eventually_async(lambda: "stops" in worker.said, LONG)
    gate.touch()
    assert worker.wait() == 0
    assert (await queue.get_or_raise(short.id)).state == TaskState.COMPLETED
    assert (await queue.get_or_raise(short_async.id)).state == TaskState.COMPLETED
    given_back = await queue.get_or_raise(long.id)
    assert (given_back.state, given_back.attempts, given_back.worker_id) == (TaskState.PENDING, 0, None)
    fleet.start(1)
    await eventually_async(lambda: fleet.starts("blocks")[str(long.id)] == 2, LONG)
    assert (await queue.get_or_raise(long.id)).attempts == 1, "it started again under the same number"


async def test_a_second_signal_leaves_at_once(fleet: Fleet, queue: Engine):
    """Fault 9, a second signal: gone at once, whatever the grace period is."""
    await app.blocks_forever.submit_async()
    worker = fleet.start(1, shutdown_grace_seconds=3600)
    await eventually_async(lambda: len(fleet.journal) == 1, LONG)
    worker.send(signal.SIGTERM)
    await eventually_async(lambda: "stops" in worker.said, LONG)
    first = time.monotonic()
    await eventually_async(lambda: time.monotonic() > first + ECHO_SECONDS)
    worker.send(signal.SIGTERM)
    assert worker.wait(20) == 0


async def test_a_stale_completion_is_refused_and_logged(queue: Engine, caplog: pytest.LogCaptureFixture, fleet: Fleet):
    handle = await app.work.submit_async(3)
    store = await queue.store()
    request = ClaimRequest(worker_id="slow-poke", names=["work"], slots=1, lease_seconds=5)
    [stale] = (await store.claim(request)).claims
    queue.advance(6)
    assert await queue.expire() == 1
    expired = await queue.get_or_raise(handle.id)
    assert (expired.state, expired.retry_count, expired.next_retry_at is not None) == (TaskState.FAILED, 1, True)
    assert "lease" in (expired.error or "")
    change = decide.settle(stale, Completed('{"value":"stale"}'), RetryPolicy())
    assert await store.settle([change]) == [WriteResult.STALE]
    assert await queue.get_or_raise(handle.id) == expired


async def test_a_blocked_loop_does_not_stop_the_heartbeat(fleet: Fleet, queue: Engine):
    """Fault 8: a handler blocks the event loop for three leases, and keeps its lease."""
    handle = await app.blocks_the_loop.submit_async(4.0)
    fleet.start(1, heartbeat_seconds=0.2, dead_after_seconds=1.0, lock_timeout_seconds=1.2)
    fleet.start(1)
    assert (await handle.wait_async(LONG)).attempts == 1
    assert len(fleet.starts("blocks_the_loop")) == 1


async def test_a_call_that_holds_the_interpreter_gives_one_accepted_outcome(fleet: Fleet, queue: Engine):
    """Fault 8, in C: nobody can beat meanwhile, so it may start elsewhere; one outcome is accepted."""
    handle = await app.holds_gil.submit_async(3)
    fleet.start(1, dead_after_seconds=1.0)
    fleet.start(1, dead_after_seconds=1.0)
    done = await handle.wait_async(LONG)
    # Nobody can beat for a process whose interpreter is held: it may be taken for dead, as often as it has attempts.
    assert sum(fleet.starts("holds_gil").values()) <= done.attempts
    unaccepted = done.attempts - (done.state == TaskState.COMPLETED)
    assert [entry["attempt"] for entry in done.history] == list(range(1, unaccepted + 1))
    assert done.result == ({"value": "done"} if done.state == TaskState.COMPLETED else None)


# -- child processes --------------------------------------------------------------------------------------------------


async def test_process_tasks_run_in_children_and_die_alone(fleet: Fleet, queue: Engine, tmp_path: Path):
    """Fault 4: a child crashes, leaves or is killed. Its task fails; its siblings and the worker go on."""
    gate = tmp_path / "gate"
    sibling = await app.child_waits.submit_async(str(gate))
    doomed = [await app.dies.submit_async(how) for how in ("segfault", "exit", "out of memory")]
    fine = [await app.in_child.submit_async(1), await app.in_child_async.submit_async(1)]
    worker = fleet.start(2)
    errors = [(await handle.wait_async(LONG)).error or "" for handle in doomed]
    assert "SIGSEGV" in errors[0]
    assert "exit code 7" in errors[1]
    assert "SIGKILL" in errors[2]
    gate.touch()
    assert await sibling.result_async(LONG) == str(gate)
    assert [await handle.result_async(LONG) for handle in fine] == [2, 3]
    assert all(line[-1] != str(worker.process.pid) for line in fleet.journal), "not in the worker itself"
    assert worker.process.poll() is None


async def test_a_process_task_in_a_c_call_ends_at_its_timeout(fleet: Fleet, queue: Engine):
    fleet.start(1)
    handle = await app.holds_the_interpreter.submit_async()
    done = await handle.wait_async(LONG)
    assert done.completed_at is not None
    assert done.started_at is not None
    assert "TaskTimedOut" in (done.error or "")
    ran = (done.completed_at - done.started_at).total_seconds()
    assert 0.9 < ran < 4, "the start of the child is part of it"
    assert await (await app.in_child.submit_async(4)).result_async(LONG) == 5


async def test_children_are_gone_when_their_parent_is_killed(fleet: Fleet, queue: Engine, tmp_path: Path):
    """Fault 3: the parent of process tasks is killed, and its children do not outlive it."""
    await app.child_waits.submit_async(str(tmp_path / "never"))
    worker = fleet.start(1)
    await eventually_async(lambda: len(fleet.journal) == 1, LONG)
    child = int(fleet.journal[0][-1])
    assert psutil.Process(worker.process.pid) in psutil.Process(child).parents()
    worker.send(signal.SIGKILL)
    worker.wait()
    eventually(lambda: has_ended(child), 10)
