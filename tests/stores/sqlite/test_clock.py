"""The machine's clock is set while tasks run: due times go with it, leases and heartbeats do not."""

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from tasklib import AsyncTaskManager
from tasklib.core.errors import TaskAlreadyClaimed
from tasklib.stores.sql.sqlite import SqliteStore, clock
from tasklib.stores.values import ControlChange
from tests.conformance.builders import WORK, WORKER_A, WORKER_B, claim, claim_one, heartbeat_of, lease_of, submit

HOUR = 3600.0
STEPS = pytest.mark.parametrize("step", [HOUR, -HOUR, 400 * 86400.0], ids=["forward", "back", "a year"])


class Machine:
    """Two stores on one file, whose wall clock can be set and whose steady clock goes on."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = url
        self.stores: list[SqliteStore] = []
        self._wall = self._set_by = 0.0
        right = clock.uptime
        monkeypatch.setattr(clock, "uptime", lambda: right() - self._set_by)

    async def store(self) -> SqliteStore:
        store = SqliteStore(self.url, clock_offset=self._wall)
        await store.open()
        self.stores.append(store)
        return store

    def set_clock(self, step: float) -> None:
        """What the offset adds to both clocks is taken from the steady one."""
        self._set_by += step
        self._move(step)

    def wait(self, seconds: float) -> None:
        self._move(seconds)

    def _move(self, seconds: float) -> None:
        self._wall += seconds
        for store in self.stores:
            store.clock_offset = self._wall


@pytest.fixture
async def machine(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Machine]:
    machine = Machine(sqlite_url, monkeypatch)
    yield machine
    for store in machine.stores:
        await store.close()


@STEPS
async def test_a_worker_that_lives_is_not_lost(machine: Machine, step: float):
    one, other = await machine.store(), await machine.store()
    await one.heartbeat(heartbeat_of(WORKER_A))
    await submit(one)
    running = await claim_one(one, lease=60)
    machine.set_clock(step)
    late = await machine.store()
    for store in (one, other, late):
        assert await store.lost_leases(30, 10) == []
        [worker] = await store.workers()
        assert worker.seconds_since_seen < 20
        assert abs((await store.now() - worker.seen_at).total_seconds() - worker.seconds_since_seen) < 1
    machine.wait(20)
    await one.heartbeat(heartbeat_of(WORKER_A))
    assert [extension.held for extension in await one.extend(WORKER_A, [lease_of(running)], 60)] == [True]
    machine.wait(25)
    for store in (one, other, late):
        assert await store.lost_leases(30, 10) == []


@STEPS
async def test_a_worker_that_died_is_lost_in_time(machine: Machine, step: float):
    one, other = await machine.store(), await machine.store()
    await one.heartbeat(heartbeat_of(WORKER_A))
    await submit(one)
    running = await claim_one(one, lease=600)
    machine.set_clock(step)
    machine.wait(31)
    assert [task.id for task in await other.lost_leases(30, 10)] == [running.id]
    assert [task.id for task in await (await machine.store()).lost_leases(30, 10)] == [running.id]


@STEPS
async def test_a_lease_ends_in_time(machine: Machine, step: float):
    one, other = await machine.store(), await machine.store()
    await submit(one)
    running = await claim_one(one, lease=60)
    machine.set_clock(step)
    machine.wait(50)
    assert await other.lost_leases(30, 10) == []
    machine.wait(11)
    assert [task.id for task in await other.lost_leases(30, 10)] == [running.id]


async def test_due_times_go_with_the_wall_clock(machine: Machine):
    store = await machine.store()
    await submit(store, delay_seconds=HOUR)
    assert await claim(store) == []
    machine.set_clock(HOUR + 1)
    started = await claim_one(store)
    assert abs((started.started_at - await store.now()).total_seconds()) < 20


@STEPS
async def test_a_claim_by_hand_is_not_taken_over(machine: Machine, step: float):
    store = await machine.store()
    manager = AsyncTaskManager(store)
    task_id = await submit(store)
    await manager.claim(task_id, WORKER_A, ttl=60)
    machine.set_clock(step)
    with pytest.raises(TaskAlreadyClaimed):
        await manager.claim(task_id, WORKER_B)
    machine.wait(61)
    assert (await manager.claim(task_id, WORKER_B)).claimed_by == WORKER_B


async def test_a_rate_goes_on_when_the_clock_is_set_back(machine: Machine):
    store = await machine.store()
    await store.control(ControlChange(name=WORK, operator_rate=1.0))
    await submit(store)
    await claim_one(store)
    machine.set_clock(-HOUR)
    await submit(store)
    assert await claim(store) == []
    machine.wait(1.1)
    await claim_one(store)


async def test_another_start_of_the_machine_begins_with_the_wall_clock(
    machine: Machine, path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = await machine.store()
    machine.set_clock(HOUR)
    assert abs((await store.now() - await store.lease_now()).total_seconds() - HOUR) < 20
    await store.close()
    monkeypatch.setattr(clock, "boot_id", lambda: "f" * 36)
    store = await machine.store()
    assert abs((await store.now() - await store.lease_now()).total_seconds()) < 20
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT boot FROM task_clocks").fetchall() == [("f" * 36,)]
    connection.close()
    assert await store.stats() == {}


async def test_a_system_that_tells_no_start_goes_by_the_wall_clock(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clock, "boot_id", lambda: None)
    store = await machine.store()
    machine.set_clock(HOUR)
    assert abs((await store.now() - await store.lease_now()).total_seconds()) < 20


async def test_the_check_up_sees_no_lease_that_ended(machine: Machine):
    store = await machine.store()
    await submit(store)
    await claim_one(store, lease=300)
    machine.set_clock(HOUR)
    fresh = SqliteStore(machine.url, clock_offset=store.clock_offset)
    found = {finding.subject: finding for finding in await fresh.check_up()}
    assert found["leases"].level == "ok", found["leases"]
    await fresh.close()
