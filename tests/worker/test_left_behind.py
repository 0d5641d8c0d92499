"""Handlers that do not end when they are told to: what they took is given back, and the worker ends in time."""

import asyncio
import threading
import time

import pytest

from tasklib import Config, TaskState, TaskWorker, task
from tasklib.core.errors import WorkerExhausted
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.worker.background import BackgroundWorker
from tasklib.worker.executors import threads
from tests.queues import as_default
from tests.waiting import eventually_async
from tests.worker.conftest import Serve


async def test_a_thread_that_ends_gives_its_place_back(
    engine: Engine, registry: Registry, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(threads, "LEFT_BEHIND_LIMIT", 1)
    never, gate, running = threading.Event(), threading.Event(), set[int]()

    @task(registry=registry, timeout_seconds=1, max_retries=0)
    def hangs() -> None:
        never.wait(60)

    @task(registry=registry)
    def meets(number: int) -> None:
        running.add(number)
        gate.wait(30)

    try:
        async with serve(concurrency=2):
            handle = await hangs.submit_async()
            assert "TaskTimedOut" in ((await handle.wait_async(10)).error or "")
            both = [await meets.submit_async(number) for number in (1, 2)]
            await eventually_async(lambda: running)
            never.set()
            await eventually_async(lambda: running == {1, 2})
            gate.set()
            for each in both:
                await each.wait_async(10)
    finally:
        never.set()
        gate.set()


async def test_a_worker_without_a_slot_says_so_signs_off_and_ends(
    engine: Engine, registry: Registry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(threads, "LEFT_BEHIND_LIMIT", 2)
    never = threading.Event()

    @task(registry=registry, timeout_seconds=1, max_retries=0)
    def hangs() -> None:
        never.wait(60)

    for _ in range(3):
        await hangs.submit_async()
    worker = TaskWorker(concurrency=1, engine=engine, registry=registry, handle_signals=False)
    try:
        with pytest.raises(WorkerExhausted, match="each of its slots"):
            await asyncio.wait_for(worker.run(), 20)
    finally:
        never.set()
    assert [record.levelname for record in caplog.records if "cannot go on" in record.message] == ["ERROR"]
    store = await engine.store()
    assert [info.stopped_at is None for info in await store.workers()] == [False]
    assert (await store.stats())["hangs"].pending == 1, "what it could not run is there for others"


async def test_a_run_ends_after_its_grace_without_a_task_that_swallows_its_cancellation(
    backend_url: str, registry: Registry, caplog: pytest.LogCaptureFixture
):
    gate, started = asyncio.Event(), asyncio.Event()

    @task(registry=registry)
    async def swallows() -> str:
        started.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    async with as_default(Engine(Config(database_url=backend_url, shutdown_grace_seconds=0.2))) as engine:
        handle = await swallows.submit_async()
        worker = TaskWorker(engine=engine, registry=registry, handle_signals=False)
        running = asyncio.create_task(worker.run())
        await asyncio.wait_for(started.wait(), 20)
        coroutine = next(each for each in asyncio.all_tasks() if "_run_one" in repr(each))
        worker.stop()
        await asyncio.wait_for(running, 10)
        assert any(str(handle.id) in r.message and "left behind" in r.message for r in caplog.records)
        before = await engine.get_or_raise(handle.id)
        assert (before.state, before.attempts) == (TaskState.PENDING, 0)
        gate.set()
        await asyncio.wait_for(coroutine, 10)
        assert await engine.get_or_raise(handle.id) == before, "what it does after the end is not recorded"


@pytest.mark.parametrize("kind", ["swallows", "blocks"])
def test_a_background_worker_stops_whatever_its_tasks_do(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, kind: str):
    monkeypatch.setattr("tasklib.worker.background.AFTER_GRACE_SECONDS", 1.0)
    registry, started, end = Registry(), threading.Event(), threading.Event()

    @task(registry=registry)
    async def swallows() -> None:
        started.set()
        while not end.is_set():
            try:
                await asyncio.to_thread(end.wait, 60)
            except asyncio.CancelledError:
                continue

    @task(registry=registry)
    async def blocks() -> None:
        started.set()
        end.wait(60)

    async def submit() -> None:
        async with as_default(Engine(Config(database_url=sqlite_url))):
            await (swallows if kind == "swallows" else blocks).submit_async()

    asyncio.run(submit())
    config = Config(database_url=sqlite_url, shutdown_grace_seconds=0.1)
    background = BackgroundWorker(lambda: TaskWorker(config, registry=registry, handle_signals=False))
    background.start()
    assert started.wait(20)
    begun = time.monotonic()
    try:
        background.stop()
        assert time.monotonic() - begun < 10
    finally:
        end.set()
        background._thread.join(20)
