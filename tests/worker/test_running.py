"""How tasks run: in threads, in the loop, in processes; in order; stopped in time."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest

from tasklib import Fail, Retry, Snooze, TaskCancelled, TaskState, TaskWorker, current_task, task
from tasklib.core.decide import Change, WriteResult
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.stores.values import Claimed, ClaimRequest, Filter
from tasklib.testing import drain_async
from tasklib.worker import fetcher
from tests.waiting import eventually_async
from tests.worker.conftest import Serve


async def test_def_tasks_run_in_threads_and_async_ones_in_the_loop(engine: Engine, registry: Registry):
    @task(registry=registry)
    def in_thread() -> str:
        return threading.current_thread().name

    @task(registry=registry)
    async def in_loop() -> str:
        await asyncio.get_running_loop().run_in_executor(None, str)
        return threading.current_thread().name

    first, second = await in_thread.submit_async(), await in_loop.submit_async()
    await drain_async(engine, registry=registry)
    assert (await first.result_async(5)).startswith("tasklib-thread")
    assert (await second.result_async(5)) == threading.current_thread().name


async def test_priority_goes_first_then_first_come_first_served(engine: Engine, registry: Registry):
    order: list[int] = []

    @task(registry=registry)
    def note(number: int) -> None:
        order.append(number)

    @task(registry=registry)
    async def note_async(number: int) -> None:
        order.append(number)

    threaded, native = note.options, note_async.options
    await threaded(priority=0).submit_async(0)
    await native(priority=0).submit_async(1)
    await threaded(priority=5).submit_async(2)
    await native(priority=-3).submit_async(3)
    await threaded(priority=0).submit_async(4)
    await native(priority=5).submit_async(5)
    await drain_async(engine, registry=registry)
    assert order == [2, 5, 0, 1, 4, 3]


async def test_no_more_run_at_once_than_the_concurrency(engine: Engine, registry: Registry, serve: Serve):
    gate, lock, running, most = threading.Event(), threading.Lock(), 0, 0

    def enter() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)

    def leave() -> None:
        nonlocal running
        with lock:
            running -= 1

    @task(registry=registry)
    def threaded() -> None:
        enter()
        gate.wait(10)
        leave()

    @task(registry=registry)
    async def native() -> None:
        enter()
        await asyncio.to_thread(gate.wait, 10)
        leave()

    handles = [await (threaded if number % 2 else native).submit_async() for number in range(8)]
    async with serve(concurrency=3):
        await eventually_async(lambda: running == 3)
        gate.set()
        for handle in handles:
            await handle.wait_async(10)
    assert most == 3


async def test_current_task_knows_its_task(engine: Engine, registry: Registry):
    seen = []

    @task(registry=registry, timeout_seconds=60, tags={"team": "blue"})
    def look() -> None:
        me = current_task()
        seen.append((me.id, me.name, me.attempt, me.tags, me.lease_lost, me.cancel_requested))
        assert me.seconds_left is not None
        assert 50 < me.seconds_left <= 60

    handle = await look.submit_async()
    await drain_async(engine, registry=registry)
    assert (await engine.get_or_raise(handle.id)).error is None
    assert seen == [(handle.id, "look", 1, {"team": "blue"}, False, False)]
    with pytest.raises(Exception, match="outside of a running task"):
        current_task()


@pytest.mark.parametrize("native", [False, True])
async def test_the_run_time_is_the_handlers_however_late_its_end_is_written(
    engine: Engine, registry: Registry, serve: Serve, monkeypatch: pytest.MonkeyPatch, native: bool
):
    def threaded() -> None: ...

    async def coroutine() -> None: ...

    instant = task(registry=registry)(coroutine if native else threaded)
    store, gate = await engine.store(), asyncio.Event()
    settle = store.settle

    async def late(changes: Sequence[Change]) -> Sequence[WriteResult]:
        await gate.wait()
        return await settle(changes)

    async def half_a_second_later() -> bool:
        started_at = (await engine.get_or_raise(handle.id)).started_at
        return started_at is not None and await store.now() - started_at > timedelta(seconds=0.5)

    monkeypatch.setattr(store, "settle", late)
    handle = await instant.submit_async()
    async with serve():
        await eventually_async(half_a_second_later)
        gate.set()
        await handle.wait_async(10)
    found = await engine.get_or_raise(handle.id)
    assert found.run_ms is None or found.run_ms < 500


@pytest.mark.parametrize("kind", ["async", "spin", "sleeping thread"])
async def test_a_timeout_ends_the_task_and_the_worker_goes_on(
    engine: Engine, registry: Registry, serve: Serve, kind: str
):
    never = threading.Event()

    @task(registry=registry, timeout_seconds=1, max_retries=0, name="slow")
    async def waits() -> None:
        await asyncio.Event().wait()

    spinner = Registry()

    @task(registry=spinner, timeout_seconds=1, max_retries=0, name="slow")
    def spins() -> None:
        while not never.is_set():
            pass

    sleeper = Registry()

    @task(registry=sleeper, timeout_seconds=1, max_retries=0, name="slow")
    def sleeps() -> None:
        never.wait(60)

    own = {"async": registry, "spin": spinner, "sleeping thread": sleeper}[kind]
    submit = {"async": waits.submit_async, "spin": spins.submit_async, "sleeping thread": sleeps.submit_async}[kind]

    @task(registry=own)
    def quick() -> str:
        return "still here"

    try:
        async with serve(concurrency=1, registry=own):
            handle = await submit()
            done = await handle.wait_async(10)
            assert done.completed_at is not None
            assert done.started_at is not None
            assert 0.9 < (done.completed_at - done.started_at).total_seconds() < 2.5
            assert "TaskTimedOut" in (done.error or "")
            assert await (await quick.submit_async()).result_async(10) == "still here"
    finally:
        never.set()


async def test_an_exception_for_one_task_never_lands_in_the_next(engine: Engine, registry: Registry, serve: Serve):
    """Many tasks that end right around their timeout: each gets its own end, and no other's."""
    bystander_errors = []

    @task(registry=registry, timeout_seconds=1, max_retries=0)
    def borderline(number: int) -> int:
        end = threading.Event()
        end.wait(0.97 + number * 0.004)
        return number

    @task(registry=registry, max_retries=0)
    def bystander(number: int) -> int:
        return sum(range(20_000)) + number

    async with serve(concurrency=8):
        edge = [await borderline.submit_async(number) for number in range(16)]
        near = [await bystander.submit_async(number) for number in range(300)]
        for handle in near:
            done = await handle.wait_async(20)
            if done.state != TaskState.COMPLETED:
                bystander_errors.append(done.error)
        for handle in edge:
            assert (await handle.wait_async(20)).state in (TaskState.COMPLETED, TaskState.FAILED)
    assert bystander_errors == []


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_cancel_stops_a_running_task(engine: Engine, registry: Registry, serve: Serve, kind: str):
    started = threading.Event()

    @task(registry=registry, name="endless")
    async def waits() -> None:
        started.set()
        await asyncio.Event().wait()

    threaded = Registry()

    @task(registry=threaded, name="endless")
    def spins() -> None:
        started.set()
        while True:
            pass

    chosen, own = (waits, registry) if kind == "async" else (spins, threaded)
    async with serve(1, registry=own):
        handle = await chosen.submit_async()
        await eventually_async(started.is_set)
        asked = await handle.cancel_async()
        assert asked.cancel_requested_at is not None or asked.state == TaskState.CANCELLED
        done = await handle.wait_async(10)
        assert (done.state, done.retry_count, done.attempts) == (TaskState.CANCELLED, 1, 1)
        with pytest.raises(TaskCancelled):
            await handle.result_async(1)


@pytest.mark.parametrize("ending", [ValueError("boom"), Retry(delay=0), Fail("boom"), Snooze(delay=0)], ids=repr)
async def test_an_accepted_cancel_is_not_forgotten_when_the_attempt_ends_first(
    engine: Engine, registry: Registry, ending: Exception
):
    """It ends in the same moment, before its worker can have heard of the request."""
    starts = []

    @task(registry=registry)
    async def ends() -> None:
        starts.append(current_task().attempt)
        assert (await engine.cancel(current_task().id)).cancel_requested_at is not None
        raise ending

    handle = await ends.submit_async()
    await drain_async(engine, registry=registry)
    done = await engine.get_or_raise(handle.id)
    assert (done.state, done.attempts, starts) == (TaskState.CANCELLED, 1, [1])


async def test_cancel_of_a_waiting_task_means_it_never_runs(engine: Engine, registry: Registry):
    ran = []

    @task(registry=registry)
    def never() -> None:
        ran.append(1)

    handle = await never.submit_async()
    assert (await handle.cancel_async()).state == TaskState.CANCELLED
    await drain_async(engine, registry=registry)
    assert ran == []


async def test_a_delayed_task_waits_for_its_time(engine: Engine, registry: Registry):
    @task(registry=registry)
    def later() -> str:
        return "now"

    handle = await later.options(delay_seconds=3600).submit_async()
    await drain_async(engine, registry=registry)
    assert (await engine.get_or_raise(handle.id)).state == TaskState.PENDING
    engine.advance(3601)
    await drain_async(engine, registry=registry)
    assert await handle.result_async(5) == "now"


async def test_a_worker_claims_only_the_names_it_has(engine: Engine, registry: Registry):
    @task(registry=registry)
    def known() -> None: ...

    other = Registry()

    @task(registry=other)
    def unknown() -> None: ...

    first, second = await known.submit_async(), await unknown.submit_async()
    await drain_async(engine, registry=registry)
    assert (await engine.get_or_raise(first.id)).state == TaskState.COMPLETED
    assert (await engine.get_or_raise(second.id)).state == TaskState.PENDING


async def test_wait_is_woken_by_a_worker_elsewhere(engine: Engine, registry: Registry, serve: Serve):
    @task(registry=registry)
    def add(a: int, b: int) -> int:
        return a + b

    async with serve(2):
        for number in range(20):
            handle = await add.submit_async(number, 1)
            assert await handle.result_async(10) == number + 1


async def test_a_stop_in_the_middle_of_a_claim_gives_back_what_it_brings(
    engine: Engine, registry: Registry, monkeypatch: pytest.MonkeyPatch
):
    @task(registry=registry)
    def known() -> None: ...

    await known.submit_many_async({} for _ in range(20))
    worker = TaskWorker(concurrency=5, engine=engine, registry=registry, handle_signals=False)
    store = await engine.store()
    claim = store.claim
    told: list[None] = []

    async def claim_while_stopping(request: ClaimRequest) -> Claimed:
        claimed = await claim(request)
        if not told:
            told.append(None)
            worker.stop()
        await asyncio.to_thread(str)  # the stop is noticed before this claim's answer is
        return claimed

    monkeypatch.setattr(store, "claim", claim_while_stopping)
    await worker.run()
    tasks = (await engine.page(Filter(), limit=100)).tasks
    assert {found.state for found in tasks} <= {TaskState.PENDING, TaskState.COMPLETED}
    assert all(found.attempts == 0 for found in tasks if found.state == TaskState.PENDING)


async def test_a_worker_that_stops_says_that_it_takes_no_more(engine: Engine, registry: Registry):
    gate = threading.Event()

    @task(registry=registry)
    def slow() -> None:
        gate.wait(30)

    handle = await slow.submit_async()
    worker = TaskWorker(concurrency=5, engine=engine, registry=registry, handle_signals=False)
    running = asyncio.create_task(worker.run())

    async def told() -> tuple[int, int]:
        [info] = await engine.workers()
        return info.concurrency, info.running

    async def in_phase() -> bool:
        return (await engine.get_or_raise(handle.id)).state == TaskState.RUNNING

    try:
        await eventually_async(in_phase)
        worker.stop()

        async def stopping() -> bool:
            return await told() == (0, 1)

        await eventually_async(stopping, timeout=4)
    finally:
        gate.set()
        await running
    assert (await engine.workers())[0].stopped_at is not None


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_long_task_does_not_hold_up_short_ones_behind_it(
    engine: Engine, registry: Registry, serve: Serve, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """Few are woken for tasks that have been short so far; when one is not, the others come."""
    monkeypatch.setattr(
        fetcher, "PREFETCHED_SECONDS", 60.0
    )  # otherwise what waits would be given back, and claimed anew
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
    async with serve(concurrency=4, poll_interval_seconds=60):  # nor does the next claim come to their help
        await chosen.submit_many_async([{"number": number} for number in range(60)])
        await eventually_async(lambda: len(ran) == 60)
        await chosen.submit_many_async([{"number": number} for number in (-1, *range(100, 120))])
        try:
            await eventually_async(lambda: len(ran) == 80)
            assert -1 not in ran
        finally:
            gate.set()
        await eventually_async(lambda: -1 in ran)
