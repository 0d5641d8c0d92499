"""What is said to running workers reaches them by the wake-up that they wait for anyway: cancel, pause, limits.

The heartbeat and the poll are so far apart here that no test would live to see the next one.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tasklib import Config, Retry, TaskState, current_task, task
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.stores.values import (
    CancelRequested,
    Claimed,
    ClaimRequest,
    ControlChange,
    DrainRequested,
    Extension,
    Filter,
    Held,
    Hint,
)
from tasklib.worker import fetcher
from tests.queues import as_default
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.conftest import Serve
from tests.worker.processes import fleet_on

FAR = 3600
SETTINGS: dict[str, Any] = {"heartbeat_seconds": FAR, "dead_after_seconds": 3 * FAR, "lock_timeout_seconds": 3 * FAR}


@pytest.fixture
async def engine(backend_url: str) -> AsyncIterator[Engine]:
    async with as_default(Engine(Config(database_url=backend_url, **SETTINGS))) as engine:
        yield engine


@pytest.fixture
def endless(registry: Registry) -> Any:
    """Ends when it is stopped, or when `gate` of this function is set."""
    gate = asyncio.Event()

    @task(registry=registry)
    async def endless() -> str:
        await gate.wait()
        return "done"

    endless.gate = gate  # type: ignore[attr-defined]
    return endless


async def running(engine: Engine, number: int) -> bool:
    return (await engine.count(Filter(states=[TaskState.RUNNING]), 1000)).value == number


Before = Callable[[], Awaitable[object]]


def extensions(engine: Engine, monkeypatch: pytest.MonkeyPatch, before: Before | None = None) -> list[tuple[str, UUID]]:
    """Who asks for which lease from now on, in stores that heartbeats open; `before` is awaited first."""
    seen: list[tuple[str, UUID]] = []
    new_store = engine.new_store

    def watched() -> Any:
        store = new_store()
        extend = store.extend

        async def noted(worker_id: str, leases: list[Held], lease_seconds: float) -> list[Extension]:
            if before is not None:
                await before()
            answers = await extend(worker_id, leases, lease_seconds)
            seen.extend((worker_id, lease.id) for lease in leases)
            return answers

        monkeypatch.setattr(store, "extend", noted)
        return store

    monkeypatch.setattr(engine, "new_store", watched)
    return seen


async def overheard(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[Hint], None]]:
    """How to say something to those who listen from now on."""
    wakes: list[Callable[[Hint], None]] = []
    store = await engine.store()
    listen = store.listen

    def noted(wake: Callable[[Hint], None]) -> Callable[[], None]:
        wakes.append(wake)
        return listen(wake)

    monkeypatch.setattr(store, "listen", noted)
    return wakes


# -- cancel -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["coroutine", "thread", "process"])
@pytest.mark.parametrize("engine_name", ["sqlite", "postgres", "nats"])
async def test_a_cancel_reaches_a_worker_in_another_process(
    engine_name: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
):
    url = request.getfixturevalue(f"{engine_name}_url")
    chosen: Any = {"coroutine": app.wait_for_file_async, "thread": app.wait_for_file, "process": app.child_waits}[kind]
    async with as_default(Engine(Config(database_url=url, **SETTINGS))):
        with fleet_on(url, tmp_path) as fleet:
            fleet.start(2, **SETTINGS)
            handle = await chosen.submit_async(str(tmp_path / "never"))
            await eventually_async(lambda: fleet.journal, 30)
            await handle.cancel_async()
            done = await handle.wait_async(30)
    assert (done.state, done.attempts) == (TaskState.CANCELLED, 1)


async def test_a_cancel_of_many_reaches_all_of_them(engine: Engine, endless: Any, serve: Serve):
    """More than are named one by one."""
    async with serve(concurrency=40, poll_interval_seconds=FAR):
        ids = await endless.submit_many_async([{} for _ in range(40)])
        await eventually_async(lambda: running(engine, 40))
        assert len(await (await engine.store()).request_cancel(ids)) == 40
        await eventually_async(lambda: running(engine, 0))
    tasks = (await engine.page(Filter(), limit=100)).tasks
    assert {found.state for found in tasks} == {TaskState.CANCELLED}


async def test_a_cancel_that_comes_before_the_claim_is_known_is_not_missed(
    engine: Engine, endless: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    store = await engine.store()
    claim = store.claim

    async def cancelled_on_the_way(request: ClaimRequest) -> Claimed:
        claimed = await claim(request)
        if claimed.claims:
            heard = asyncio.Event()
            stop = store.listen(lambda hint: heard.set() if isinstance(hint, CancelRequested) else None)
            await store.request_cancel([each.id for each in claimed.claims])
            await asyncio.wait_for(heard.wait(), 20)
            stop()
        return claimed

    monkeypatch.setattr(store, "claim", cancelled_on_the_way)
    async with serve(concurrency=1, poll_interval_seconds=FAR):
        handle = await endless.submit_async()
        assert (await handle.wait_async(20)).state == TaskState.CANCELLED


async def test_without_the_wake_up_the_heartbeat_does_it(
    backend_url: str, endless: Any, serve: Serve, registry: Registry, monkeypatch: pytest.MonkeyPatch
):
    config = Config(database_url=backend_url, heartbeat_seconds=0.1, dead_after_seconds=30, lock_timeout_seconds=60)
    async with as_default(Engine(config)) as engine:
        store = await engine.store()
        monkeypatch.setattr(store, "listen", lambda wake: lambda: None)  # every wake-up gets lost
        async with serve(1, engine=engine):
            handle = await endless.submit_async()
            await eventually_async(lambda: running(engine, 1))
            await handle.cancel_async()
            assert (await handle.wait_async(20)).state == TaskState.CANCELLED


async def test_what_was_heard_is_not_believed(
    engine: Engine, endless: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    """A wake-up may be old, or anybody's: the store is asked, and only those who run the task ask."""
    wakes = await overheard(engine, monkeypatch)
    asked = extensions(engine, monkeypatch)
    async with serve(1, poll_interval_seconds=FAR) as first, serve(1, poll_interval_seconds=FAR) as second:
        handles = [await endless.submit_async(), await endless.submit_async()]
        await eventually_async(lambda: running(engine, 2))
        tasks = [await handle.get_async() for handle in handles]
        assert {found.worker_id for found in tasks} == {first.worker_id, second.worker_id}
        asked.clear()
        for wake in wakes:
            wake(CancelRequested([tasks[0].id]))
        await eventually_async(lambda: asked)
        await handles[1].cancel_async()
        assert (await handles[1].wait_async(20)).state == TaskState.CANCELLED
        assert set(asked) == {(found.worker_id, found.id) for found in tasks}, "each asked for its own task alone"
        endless.gate.set()
        assert await handles[0].result_async(20) == "done"


async def test_an_answer_about_an_attempt_that_is_over_does_not_stop_the_next(
    engine: Engine, registry: Registry, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    over, begun_anew, gate = threading.Event(), threading.Event(), threading.Event()

    @task(registry=registry)
    def twice() -> str:
        if current_task().attempt == 1:
            over.wait(30)
            raise Retry(delay=0)
        begun_anew.set()
        gate.wait(30)
        return "done"

    async def between() -> None:
        over.set()
        await asyncio.to_thread(begun_anew.wait, 30)

    wakes = await overheard(engine, monkeypatch)
    asked = extensions(engine, monkeypatch, between)
    async with serve(1, poll_interval_seconds=FAR):
        handle = await twice.submit_async()
        await eventually_async(lambda: running(engine, 1))
        for _ in range(2):  # with the second, the answer to the first was acted on
            before = len(asked)  # a listener that has connected asks by itself, too
            wakes[0](CancelRequested([handle.id]))
            await eventually_async(lambda before=before: len(asked) > before, 30)  # type: ignore[misc]
        gate.set()
        assert await handle.result_async(20) == "done"


# -- pause and limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["", "step"], ids=["all types", "its type"])
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_pause_gives_back_what_waits_in_a_worker(
    engine: Engine, registry: Registry, serve: Serve, monkeypatch: pytest.MonkeyPatch, scope: str, kind: str
):
    monkeypatch.setattr(fetcher, "PREFETCHED_SECONDS", float(FAR))  # it would give them back too
    gate, ran = threading.Event(), set[int]()

    def step(number: int) -> None:
        if number < 0:
            gate.wait(30)
        ran.add(number)

    async def step_in_loop(number: int) -> None:
        if number < 0:
            await eventually_async(gate.is_set, timeout=30)
        ran.add(number)

    chosen = task(name="step", registry=registry)(step if kind == "def" else step_in_loop)

    async def states() -> set[tuple[str, int]]:
        found = (await engine.page(Filter(states=[TaskState.PENDING, TaskState.RUNNING]), limit=100)).tasks
        return {(each.state, each.attempts) for each in found}

    try:
        async with serve(concurrency=1, poll_interval_seconds=FAR):
            await chosen.submit_many_async([{"number": number} for number in range(60)])
            await eventually_async(lambda: len(ran) == 60)
            await chosen.submit_many_async([{"number": number} for number in (-1, *range(100, 110))])
            await eventually_async(lambda: running(engine, 11))
            await engine.control(ControlChange(name=scope, paused=True))
            await eventually_async(lambda: running(engine, 1))
            assert await states() == {(TaskState.RUNNING, 1), (TaskState.PENDING, 0)}
            gate.set()
            await eventually_async(lambda: running(engine, 0))
            assert ran == {*range(60), -1}
            await engine.control(ControlChange(name=scope, paused=False))
            await eventually_async(lambda: len(ran) == 71)
    finally:
        gate.set()


async def test_a_raised_limit_and_the_end_of_a_pause_are_acted_on_at_once(
    engine: Engine, registry: Registry, serve: Serve
):
    gate, ran = asyncio.Event(), set[UUID]()

    @task(registry=registry)
    async def narrow() -> None:
        ran.add(current_task().id)
        await gate.wait()

    await engine.control(ControlChange(name="narrow", concurrency=1))
    async with serve(concurrency=4, poll_interval_seconds=FAR):
        await narrow.submit_many_async([{} for _ in range(3)])
        await eventually_async(lambda: len(ran) == 1)
        await engine.control(ControlChange(name="narrow", concurrency=2))
        await eventually_async(lambda: len(ran) == 2)
        await engine.control(ControlChange(name="narrow", paused=True, concurrency=None))
        await engine.control(ControlChange(name="narrow", paused=False))
        await eventually_async(lambda: len(ran) == 3)
        gate.set()


# -- drain ------------------------------------------------------------------------------------------------------------


async def test_an_operators_drain_lets_it_finish_and_end(
    engine: Engine, endless: Any, serve: Serve, caplog: pytest.LogCaptureFixture
):
    """At once, by the wake-up; and the worker that nobody named goes on."""
    caplog.set_level(logging.INFO, "tasklib.worker")
    async with serve(concurrency=2, poll_interval_seconds=FAR) as drained:
        handle = await endless.submit_async()
        await eventually_async(lambda: running(engine, 1))
        async with serve(concurrency=1, poll_interval_seconds=FAR) as other:

            async def have_beaten() -> bool:
                return all(each.seen_at > each.started_at for each in await engine.workers())

            await eventually_async(have_beaten)  # the next heartbeat is far off
            await engine.drain(drained.worker_id, "ann")

            async def stopping() -> bool:
                return {each.id: each.concurrency for each in await engine.workers()} == {
                    drained.worker_id: 0,
                    other.worker_id: 1,
                }

            await eventually_async(stopping)
            await eventually_async(lambda: f"worker {drained.worker_id} drains: ann asked for it" in caplog.text)
            assert await running(engine, 1), "it finishes what it runs"
            endless.gate.set()
            assert (await handle.wait_async(30)).state == TaskState.COMPLETED

            async def ended() -> bool:
                return {each.id for each in await engine.workers() if each.stopped_at} == {drained.worker_id}

            await eventually_async(ended)
            again = await endless.submit_async()
            assert (await again.wait_async(30)).last_worker_id == other.worker_id


@pytest.mark.parametrize("engine_name", ["sqlite"])
async def test_a_drain_that_was_only_heard_of_ends_nobody(
    engine: Engine, engine_name: str, endless: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    wakes = await overheard(engine, monkeypatch)
    async with serve(concurrency=1, poll_interval_seconds=FAR) as worker:
        await eventually_async(lambda: wakes)
        [before] = await engine.workers()
        for wake in wakes:
            wake(DrainRequested(worker.worker_id))

        async def looked() -> bool:
            [now] = await engine.workers()
            return now.seen_at > before.seen_at

        await eventually_async(looked)
        endless.gate.set()
        assert (await (await endless.submit_async()).wait_async(30)).state == TaskState.COMPLETED
