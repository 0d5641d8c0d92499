"""Goal 20: a hop of a chain beside a submit on an idle queue; a fan-in and chains beside a plain drain."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from uuid import UUID

from benchmarks.cases import Run, Step
from benchmarks.ours.flowing import hop, step
from benchmarks.turn import TurnFailed
from tasklib import Config
from tasklib.core.flows import After
from tasklib.core.task import NewTask
from tasklib.engine.engine import Engine
from tasklib.engine.submission import new_ids
from tasklib.stores.protocol import Store

ENGINES = {"postgres": "PostgreSQL", "sqlite": "SQLite"}
BATCH = 10_000
PATIENCE = 300.0


def name_of(engine: str) -> str:
    return f"flows, {ENGINES[engine]}"


def flows(run: Run, number: int) -> Iterator[Step]:
    """Goal 20: hops of a chain, many tasks into one, and many chains of three."""
    size = 5 if run.quick else 1
    for engine in ENGINES:
        yield Step(f"hops, {engine}", lambda engine=engine: _hops(run, number, engine, 100 // size))
        yield Step(f"fan-in, {engine}", lambda engine=engine: _fan_in(run, number, engine, 100_000 // size))
        yield Step(f"chains, {engine}", lambda engine=engine: _chains(run, number, engine, 10_000 // size))


def _hops(run: Run, number: int, engine: str, length: int) -> None:
    """In turns: a lone task on an idle queue, from the call to its first line, and a chain, from first line to first
    line."""
    with run.stage.store(engine) as url, _worker(url):
        idle, hops = asyncio.run(_begun(url, length))
    run.book.note(name_of(engine), "idle p50", number, statistics.median(idle))
    run.book.note(name_of(engine), "hop p50", number, statistics.median(hops))
    run.book.note(name_of(engine), "hop : idle", number, statistics.median(hops) / statistics.median(idle))


async def _begun(url: str, length: int) -> tuple[list[float], list[float]]:
    engine = Engine(Config(database_url=url))
    store = await engine.store()
    idle: list[float] = []
    hops: list[float] = []
    for turn in range(7):
        lone: list[float] = []
        for _ in range(length // 5):
            [task] = _tasks(hop.name, 1)
            began = time.time()
            await store.insert([task])
            [first] = await _values(store, [task.id])
            lone.append(1000 * (first - began))
        chain = _tasks(hop.name, length)
        links = [task._replace(after=After((before.id,))) for before, task in pairwise(chain)]
        await store.insert([chain[0], *links])
        begun = await _values(store, [task.id for task in chain])
        if turn:  # the first warms up
            idle += lone
            hops += [1000 * (later - earlier) for earlier, later in pairwise(begun)]
    await engine.close()
    return idle, hops


async def _values(store: Store, ids: Sequence[UUID]) -> list[float]:
    """Of tasks that end in this order."""
    async for task in store.watch(ids[-1]):
        if task is not None and task.completed_at is not None:
            break
    found = await store.get(ids)
    return [task.result["value"] for task in found if task is not None and task.result is not None]


def _fan_in(run: Run, number: int, engine: str, width: int) -> None:
    plain = _drain(run, engine, [_tasks(step.name, width)])
    parents = _tasks(step.name, width)
    child = _tasks(step.name, 1)[0]._replace(after=After(tuple(parent.id for parent in parents)))
    fed = _drain(run, engine, [parents, [child]])
    run.book.note(name_of(engine), "plain", number, plain)
    run.book.note(name_of(engine), "fan-in : plain", number, fed / plain)


def _chains(run: Run, number: int, engine: str, chains: int) -> None:
    plain = _drain(run, engine, [_tasks(step.name, 3 * chains)])
    linked: list[list[NewTask]] = []
    for start in range(0, chains, BATCH // 3):
        batch: list[NewTask] = []
        for _ in range(min(BATCH // 3, chains - start)):
            one, two, three = _tasks(step.name, 3)
            batch += [one, two._replace(after=After((one.id,))), three._replace(after=After((two.id,)))]
        linked.append(batch)
    run.book.note(name_of(engine), "chains : plain", number, _drain(run, engine, linked) / plain)


def _drain(run: Run, engine: str, batches: Sequence[Sequence[NewTask]]) -> float:
    """Tasks a second."""
    with run.stage.store(engine) as url:
        number = sum(map(len, batches))
        asyncio.run(_submit(url, batches))
        run.stage.settle_down(engine)
        with _worker(url):
            return number / asyncio.run(_seconds(url, number))


async def _submit(url: str, batches: Sequence[Sequence[NewTask]]) -> None:
    engine = Engine(Config(database_url=url, call_timeout_seconds=120))
    store = await engine.store()
    for batch in batches:
        for start in range(0, len(batch), BATCH):
            await store.insert(batch[start : start + BATCH])
    await engine.close()


async def _seconds(url: str, number: int) -> float:
    """From the first end to the last."""
    engine = Engine(Config(database_url=url))
    began, give_up = 0.0, time.monotonic() + PATIENCE
    while True:
        figures = (await engine.stats()).get(step.name)
        done = 0 if figures is None else figures.completed
        if done and not began:
            began = time.monotonic()
        if done >= number:
            break
        if time.monotonic() > give_up:
            raise TurnFailed(f"{done:,} of {number:,} after {PATIENCE:.0f} s")
        await asyncio.sleep(0.02)
    await engine.close()
    return time.monotonic() - began


@contextmanager
def _worker(url: str) -> Iterator[None]:
    env = {**os.environ, "TASKLIB_DATABASE_URL": url}
    command = [sys.executable, "-m", "tasklib.cli", "worker", "benchmarks.ours.flowing", "--quiet"]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        try:
            yield
        finally:
            worker.terminate()


def _tasks(name: str, number: int) -> list[NewTask]:
    return [NewTask(task_id, name, "{}") for task_id in new_ids(number)]
