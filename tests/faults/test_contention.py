"""Somebody else holds what a queue on PostgreSQL needs: its table, a row, all its connections."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from tasklib import Config, StoreBusy, TaskState
from tasklib.engine.engine import Engine
from tests.queues import as_default
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import Fleet, fleet_on

LONG = 60


@pytest.fixture
def somebody(postgres_url: str) -> Iterator[psycopg.Connection]:
    """A session of somebody with psql, in a transaction."""
    server, _, schema = postgres_url.partition("?schema=")
    with psycopg.connect(server, options=f"-c search_path={schema}") as connection:
        yield connection
        connection.rollback()


@pytest.fixture
async def queue(postgres_url: str) -> AsyncIterator[Engine]:
    async with as_default(Engine(Config(database_url=postgres_url, call_timeout_seconds=1.5, pool_size=2))) as engine:
        await engine.store()
        yield engine


@pytest.fixture
def fleet(postgres_url: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_on(postgres_url, tmp_path) as fleet:
        yield fleet


async def beats(queue: Engine, seconds: float) -> None:
    """The worker goes on telling that it lives, for so long."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        [before] = await queue.workers()

        async def again(before: object = before) -> bool:
            return await queue.workers() != [before]

        await eventually_async(again, 10, interval=0.1)


async def test_a_locked_table_costs_no_running_task_its_worker(
    fleet: Fleet, queue: Engine, somebody: psycopg.Connection, tmp_path: Path
):
    """Fault 14, the table locked: submits end at their deadline with an error that says why; the worker goes on to tell
    that it lives, for longer than its silence would be taken for its death; and then all goes on, no attempt lost."""
    gate = tmp_path / "gate"
    handle = await app.wait_for_file.submit_async(str(gate))
    worker = fleet.start(2, heartbeat_seconds=0.3, dead_after_seconds=3.0, lock_timeout_seconds=60)
    await eventually_async(lambda: len(fleet.journal) == 1, LONG)
    somebody.execute("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")
    begun = time.monotonic()
    with pytest.raises(StoreBusy, match="deadline"):
        await app.work.submit_async(1)
    assert time.monotonic() - begun < 4
    await beats(queue, 4.0)
    assert "heartbeat not confirmed" in worker.said, "the lock was in the way"
    somebody.rollback()
    gate.touch()
    done = await handle.wait_async(LONG)
    assert (done.state, done.attempts) == (TaskState.COMPLETED, 1)
    assert "not extended in time" not in worker.said


async def test_a_long_idle_transaction_holds_up_only_the_rows_it_locked(
    fleet: Fleet, queue: Engine, somebody: psycopg.Connection, tmp_path: Path
):
    """Fault 14, a long idle transaction that locked a waiting row: workers pass it over and go on; once it is over, the
    row runs too."""
    held = await app.work.submit_async(1)
    somebody.execute("SELECT FROM tasks WHERE id = %s FOR UPDATE", [held.id])
    others = await app.work.submit_many_async({"number": number} for number in range(20))
    fleet.start(2)

    async def the_others_ran() -> bool:
        return (await queue.stats())["work"].completed == len(others)

    await eventually_async(the_others_ran, LONG)
    with pytest.raises(StoreBusy):
        await queue.cancel(held.id)
    assert (await queue.get_or_raise(held.id)).state == TaskState.PENDING
    somebody.rollback()
    assert await held.result_async(LONG) == 2


@pytest.mark.infrastructure
async def test_a_pool_without_a_free_connection_does_not_touch_the_heartbeat(
    fleet: Fleet, queue: Engine, somebody: psycopg.Connection, tmp_path: Path
):
    """Fault 14, the pool exhausted: what the worker has to write waits behind a lock on all its connections, and the
    heartbeat has one of its own; afterwards everything is written, once."""
    gate = tmp_path / "gate"
    handles = [await app.wait_for_file.submit_async(str(gate)) for _ in range(6)]
    worker = fleet.start(6, heartbeat_seconds=0.3, dead_after_seconds=3.0, call_timeout_seconds=1.0, pool_size=1)
    await eventually_async(lambda: len(fleet.journal) == 6, LONG)
    somebody.execute("LOCK TABLE task_counts IN ACCESS EXCLUSIVE MODE")  # every settle counts; no heartbeat does
    gate.touch()
    await eventually_async(lambda: "cannot settle" in worker.said, LONG)
    await beats(queue, 4.0)
    assert "heartbeat not confirmed" not in worker.said
    somebody.rollback()
    for handle in handles:
        done = await handle.wait_async(LONG)
        assert (done.state, done.attempts) == (TaskState.COMPLETED, 1)
    assert (await queue.stats())["wait_for_file"].completed == 6
