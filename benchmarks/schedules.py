"""Goal 19: how late a thousand schedules fire that fall due at once, and what they cost in between."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import psutil

from benchmarks.cases import Run, Step
from benchmarks.ours.ticking import tick
from benchmarks.turn import TurnFailed
from tasklib import Config, every
from tasklib.core.cron import Timing
from tasklib.core.schedules import Schedule, ScheduleWrite
from tasklib.core.task import Task
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.stores.values import Filter

ENGINES = {"postgres": "PostgreSQL", "sqlite": "SQLite"}
NUMBER = 1000
MINUTE = 60


def name_of(engine: str) -> str:
    return f"{NUMBER:,} schedules that fire each minute, {ENGINES[engine]}"


def schedules(run: Run, number: int) -> Iterator[Step]:
    """Goal 19: how late a thousand schedules fire, and what they cost between their times."""
    for engine in ENGINES:
        yield Step(f"schedules, {engine}", lambda engine=engine: _schedules(run, number, engine, 1 if run.quick else 5))


def _schedules(run: Run, number: int, engine: str, fires: int) -> None:
    with run.stage.store(engine) as url:
        asyncio.run(define(url, every(minutes=1)))
        env = {**os.environ, "TASKLIB_DATABASE_URL": url}
        command = [sys.executable, "-m", "tasklib.cli", "worker", "benchmarks.ours.ticking", "--quiet"]
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
            try:
                _sleep_until(time.time() // MINUTE * MINUTE + MINUTE + 10)  # behind the first time
                shares = []
                for _ in range(fires):
                    shares.append(_share_of_a_core(worker.pid, 40))
                    _sleep_until(time.time() // MINUTE * MINUTE + MINUTE + 10)
                tasks = asyncio.run(_fired(url))
            finally:
                worker.terminate()
    if len(tasks) < fires * NUMBER:
        raise TurnFailed(f"{len(tasks)} tasks were submitted in {fires} minutes")
    # Of the last times: the first comes while the worker starts.
    late = [(each.created_at - _slot(each)).total_seconds() * 1000 for each in tasks[: fires * NUMBER]]
    run.book.note(name_of(engine), "p50", number, statistics.median(late))
    run.book.note(name_of(engine), "p99", number, statistics.quantiles(late, n=100)[98])
    run.book.note(name_of(engine), "cpu", number, sum(shares) / len(shares))


async def define(url: str, timing: Timing) -> None:
    """As many schedules as are measured."""
    engine = Engine(Config(database_url=url))
    store = await engine.store()
    definition = await engine.schedules.define(Call(tick.name, {}, task_type=tick.task_type), timing)
    first = Schedule(name="", declared=definition).scheduled(await store.now())
    await store.write_schedules([ScheduleWrite(replace(first, name=f"tick-{each}")) for each in range(NUMBER)])
    await engine.close()


async def _fired(url: str) -> list[Task]:
    """Newest first."""
    engine = Engine(Config(database_url=url))
    tasks = (await engine.page(Filter(names=[tick.name]), limit=10 * NUMBER)).tasks
    await engine.close()
    return tasks


def _slot(task: Task) -> datetime:
    return datetime.fromisoformat(task.tags["slot"]).astimezone(UTC)


def _share_of_a_core(pid: int, seconds: float) -> float:
    """Of the worker and of the database together, in percent."""
    before, began = _used(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (_used(pid) - before) / (time.monotonic() - began)


def _used(pid: int) -> float:
    processes = [each for each in psutil.process_iter(["name"]) if each.pid == pid or each.info["name"] == "postgres"]
    # With that of children which have ended: the server ends connections that are not used.
    return float(sum(sum(each.cpu_times()[:4]) for each in processes))


def _sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.time()))
