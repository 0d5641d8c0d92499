"""Workers whose clocks are wrong: the database's clock decides, nothing changes. And a machine whose clock is set."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tasklib import Config, TaskState
from tasklib.engine.engine import Engine
from tests.faults import clock
from tests.queues import as_default
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import fleet_on

HOUR, YEAR = 3600.0, 365 * 86400.0
LONG = 60

Env = Callable[[Path, float], dict[str, str]]


def by_faketime(_: Path, seconds: float) -> dict[str, str]:
    return clock.faketime_env(seconds)


@pytest.mark.parametrize(
    "env",
    [
        pytest.param(clock.env, id="in Python"),
        pytest.param(by_faketime, id="libfaketime", marks=pytest.mark.infrastructure),
    ],
)
@pytest.mark.parametrize(
    "off_by", [pytest.param(HOUR, id="hour", marks=pytest.mark.infrastructure), pytest.param(YEAR, id="year")]
)
@pytest.mark.parametrize("backend", ["postgres", "nats"])
async def test_nothing_changes(request: pytest.FixtureRequest, backend: str, off_by: float, env: Env, tmp_path: Path):
    """Fault 18: of two workers one is as far ahead as the other is behind. Each keeps the lease of its own task, takes
    nothing from the other, starts nothing before its time, and all times in the rows are the database's."""
    url: str = request.getfixturevalue(f"{backend}_url")
    gate = tmp_path / "gate"
    async with as_default(Engine(Config(database_url=url))) as engine:
        with fleet_on(url, tmp_path) as fleet:
            settings: dict[str, Any] = {
                "heartbeat_seconds": 0.3,
                "dead_after_seconds": 6.0,
                "lock_timeout_seconds": 6.0,
            }
            workers = [fleet.start(2, env=env(tmp_path, shift), **settings) for shift in (off_by, -off_by)]
            long = [await app.tells_the_time.submit_async(str(gate)) for _ in range(4)]  # as many as both have slots
            await eventually_async(lambda: len({line[-1] for line in fleet.journal}) == 2, LONG)
            waits = await app.work.options(delay_seconds=off_by / 2).submit_async(1)
            leases = [(await engine.get_or_raise(handle.id)).locked_until for handle in long]

            async def all_extended() -> bool:
                return all(
                    [
                        (await engine.get_or_raise(each.id)).locked_until != was
                        for each, was in zip(long, leases, strict=True)
                    ]
                )

            await eventually_async(all_extended, LONG)
            gate.touch()
            told = [await handle.result_async(LONG) for handle in long]
            now = time.time()
            assert {round((float(each) - now) / off_by) for each in told} == {-1, 1}, "their clocks really are wrong"
            for handle in long:
                done = await engine.get_or_raise(handle.id)
                assert (done.state, done.attempts) == (TaskState.COMPLETED, 1), "no lease was taken for expired"
                for moment in (done.started_at, done.completed_at):
                    assert moment is not None
                    assert abs(moment.timestamp() - now) < LONG, "the database's clock is in the row"
            assert (await engine.get_or_raise(waits.id)).state == TaskState.PENDING
            assert sum(fleet.starts("tells_the_time").values()) == 4
            assert all(worker.process.poll() is None for worker in workers)


@pytest.mark.infrastructure
@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
async def test_a_clock_that_is_set_takes_no_task_from_its_worker(sqlite_url: str, step: float, tmp_path: Path):
    """Fault 18 on one machine: its clock is set by an hour while tasks run."""
    gate, file = tmp_path / "gate", tmp_path / "clock"
    dead_after = 3.0
    async with as_default(Engine(Config(database_url=sqlite_url))) as engine:
        with fleet_on(sqlite_url, tmp_path) as fleet:
            settings: dict[str, Any] = {"heartbeat_seconds": 0.3, "dead_after_seconds": dead_after}
            env = clock.settable_env(file)
            for _ in range(2):
                fleet.start(2, env=env, lock_timeout_seconds=dead_after, **settings)
            running = [await app.tells_the_time.submit_async(str(gate)) for _ in range(4)]
            await eventually_async(lambda: len({line[-1] for line in fleet.journal}) == 2, LONG)
            clock.set_clock(file, step)
            leases = [(await engine.get_or_raise(handle.id)).locked_until for handle in running]

            async def all_extended() -> bool:
                """For longer than a dead worker is waited for."""
                found = [(await engine.get_or_raise(handle.id)).locked_until for handle in running]
                enough = timedelta(seconds=2 * dead_after)
                return all(now and was and now - was > enough for now, was in zip(found, leases, strict=True))

            await eventually_async(all_extended, LONG)
            gate.touch()
            told = [float(await handle.result_async(LONG)) for handle in running]
            assert {round((each - time.time()) / HOUR) for each in told} == {step / HOUR}, "it really was set"
            for handle in running:
                done = await engine.get_or_raise(handle.id)
                assert (done.state, done.attempts) == (TaskState.COMPLETED, 1)
