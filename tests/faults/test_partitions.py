"""A worker whose line to the database goes silent: nothing is cut, nothing is refused, nothing comes through."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tasklib import Config, TaskState
from tasklib.core.errors import TRANSIENT
from tasklib.engine.engine import Engine
from tasklib.stores.sql.postgres import PostgresStore
from tests.conformance.builders import WORKER_A, claim, completed, lease_of, new_task, submit_several
from tests.queues import as_default
from tests.stores.proxy import WAYS, Proxy, Way
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import Fleet, fleet_on

LONG = 60
LEASE: dict[str, Any] = {"heartbeat_seconds": 0.3, "call_timeout_seconds": 2}


@pytest.fixture
async def queue(postgres_url: str) -> AsyncIterator[Engine]:
    async with as_default(Engine(Config(database_url=postgres_url))) as engine:
        yield engine


@pytest.fixture
async def proxy(postgres_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_url) as proxy:
        yield proxy


@pytest.mark.parametrize("way", WAYS)
async def test_every_call_ends_with_its_deadline_when_one_way_is_silent(proxy: Proxy, way: Way):
    """Fault 12, one way only: questions that do not arrive, or answers that do not, cost no call more than its
    deadline; and with the line back one row is what came of it."""
    store = PostgresStore(proxy.url, call_timeout=1.0)
    await store.open()
    await submit_several(store, 2)
    [claimed] = await claim(store, 1)
    doubtful = new_task("doubt")
    proxy.freeze(way)
    for call in (
        lambda: store.insert([doubtful]),
        lambda: store.settle([completed(claimed)]),
        lambda: store.extend(WORKER_A, [lease_of(claimed)], 60),
    ):
        begun = time.monotonic()
        with pytest.raises(TRANSIENT):
            await call()
        assert time.monotonic() - begun < 2.5
    proxy.thaw()
    proxy.cut()
    await store.insert([doubtful])
    await store.settle([completed(claimed)])
    figures = await store.stats()
    assert (figures["doubt"].pending, figures["work"].completed, figures["work"].pending) == (1, 1, 1)
    await store.close()


async def test_shorter_than_the_lease_it_costs_nothing(proxy: Proxy, queue: Engine, postgres_url: str, tmp_path: Path):
    """Fault 12, shorter: heartbeats are missed, and when the line is back the same attempt goes on to its end."""
    gate = tmp_path / "gate"
    handle = await app.wait_for_file.submit_async(str(gate))
    with fleet_on(proxy.url, tmp_path) as fleet:
        silent = fleet.start(1, dead_after_seconds=20, lock_timeout_seconds=20, **LEASE)
        await eventually_async(lambda: len(fleet.journal) == 1, LONG)
        other = Fleet(postgres_url, tmp_path)
        other.start(1, dead_after_seconds=20)
        try:
            proxy.freeze()
            await eventually_async(lambda: "heartbeat not confirmed" in silent.said, LONG)
            proxy.thaw()
            before = (await queue.get_or_raise(handle.id)).locked_until

            async def extended() -> bool:
                return (await queue.get_or_raise(handle.id)).locked_until != before

            await eventually_async(extended, LONG)
            gate.touch()
            done = await handle.wait_async(LONG)
        finally:
            other.stop()
    assert (done.state, done.attempts, len(fleet.journal)) == (TaskState.COMPLETED, 1, 1)


@pytest.mark.parametrize(
    "ways",
    [
        pytest.param((), id="both ways"),
        pytest.param(("to server",), id="to server", marks=pytest.mark.infrastructure),
        pytest.param(("to client",), id="to client", marks=pytest.mark.infrastructure),
    ],
)
async def test_longer_than_the_lease_the_other_side_completes(
    ways: tuple[Way, ...], proxy: Proxy, queue: Engine, postgres_url: str, tmp_path: Path
):
    """Fault 12, longer: the silent worker gives up by its own clock, the other side completes the task, and when the
    line is back the first one changes nothing."""
    gate = tmp_path / "gate"
    handle = await app.wait_for_file.submit_async(str(gate))
    with fleet_on(proxy.url, tmp_path) as fleet:
        silent = fleet.start(1, dead_after_seconds=3, lock_timeout_seconds=5, **LEASE)
        await eventually_async(lambda: len(fleet.journal) == 1, LONG)
        proxy.freeze(*ways)
        await eventually_async(lambda: "not extended in time" in silent.said, LONG)
        other = Fleet(postgres_url, tmp_path)
        other.start(1, dead_after_seconds=3, **LEASE)
        try:
            await eventually_async(lambda: len(fleet.journal) == 2, LONG)
            gate.touch()
            done = await handle.wait_async(LONG)
            assert (done.state, done.attempts) == (TaskState.COMPLETED, 2)
            proxy.thaw()
            again = await app.work.submit_async(4)
            other.stop()
            assert await again.result_async(LONG) == 8, "with the line back it works on"
        finally:
            other.stop()
        assert await queue.get_or_raise(handle.id) == done
        assert len(silent.said.splitlines()) < 100, "no flood of log lines"


async def test_a_worker_that_gave_up_and_lives_says_so(proxy: Proxy, queue: Engine, tmp_path: Path):
    """Fault 12, just as long as it takes to give up: the worker is back before anyone takes it for dead. It records
    itself that the attempt is lost, so that the task need not wait for the end of its lease."""
    handle = await app.blocks_once.submit_async(str(tmp_path / "again"))
    with fleet_on(proxy.url, tmp_path) as fleet:
        worker = fleet.start(1, dead_after_seconds=3, lock_timeout_seconds=600, **LEASE)
        await eventually_async(lambda: len(fleet.journal) == 1, LONG)
        proxy.freeze()
        await eventually_async(lambda: "not extended in time" in worker.said, LONG)
        proxy.thaw()
        done = await handle.wait_async(LONG)
    assert (done.state, done.attempts, len(fleet.journal)) == (TaskState.COMPLETED, 2, 2)
    assert "WorkerLost" in done.history[0]["error"]
