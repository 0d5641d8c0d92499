"""Events: what has become of a task, told once it is committed, by a thread in which nothing can hurt the task."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tasklib import (
    AsyncTaskManager,
    Config,
    Fail,
    Middleware,
    Retry,
    Snooze,
    TaskEvent,
    TaskManager,
    cancel_task,
    current_task,
    get_task,
    get_task_async,
    task,
)
from tasklib.core.registry import Registry
from tasklib.engine import bulk, listeners
from tasklib.engine.bulk import Action
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter
from tasklib.testing import drain_async
from tasklib.testing.queue import fresh_queue
from tests.queues import as_default
from tests.waiting import eventually_async, turns

Told = tuple[str, TaskEvent]


class Listening(Middleware):
    """Keeps what it is told, and how the task is at that moment."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.states: list[tuple[str, str, bool]] = []
        self.threads: set[str] = set()

    def _note(self, kind: str, event: TaskEvent) -> None:
        found = get_task(event.id)
        assert found is not None
        self.told.append((kind, event))
        self.states.append((kind, found.state, found.completed_at is not None))
        self.threads.add(threading.current_thread().name)

    def on_completed(self, event: TaskEvent) -> None:
        self._note("completed", event)

    def on_failed(self, event: TaskEvent) -> None:
        self._note("failed", event)

    def on_retry(self, event: TaskEvent) -> None:
        self._note("retry", event)

    def on_cancelled(self, event: TaskEvent) -> None:
        self._note("cancelled", event)

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]


@pytest.fixture
def listening() -> Listening:
    return Listening()


@pytest.fixture
async def engine(backend_url: str, listening: Listening) -> AsyncIterator[Engine]:
    async with as_default(Engine(Config(database_url=backend_url, middleware=[listening]))) as engine:
        yield engine


async def test_a_listener_sees_the_task_as_it_was_committed(engine: Engine, listening: Listening):
    registry = Registry()

    @task(registry=registry)
    def good() -> int:
        return 1

    @task(registry=registry, max_retries=1)
    async def fragile(final: bool) -> None:
        raise Fail("for good") if final else Retry("later", delay=60)

    @task(registry=registry)
    def sleepy() -> None:
        raise Snooze(delay=60)

    ids = [(await fragile.submit_async(final=final)).id for final in (True, False)]
    ids.append((await good.submit_async()).id)
    await sleepy.submit_async()
    waiting = await good.options(delay_seconds=60).submit_async()
    await waiting.cancel_async()
    await drain_async(engine, registry=registry)
    assert sorted(listening.states) == [
        ("cancelled", "cancelled", True),
        ("completed", "completed", True),
        ("failed", "failed", True),
        ("retry", "failed", False),
    ]
    assert {event.id for _, event in listening.told} == {*ids, waiting.id}
    assert listening.threads == {"tasklib-events"}


async def test_a_cancel_that_comes_while_it_runs_is_told_as_what_was_written(engine: Engine, listening: Listening):
    """The same write looks whether a cancel was asked for: only the row tells what it came to."""
    registry = Registry()

    @task(registry=registry)
    def asked() -> None:
        cancel_task(current_task().id)
        raise LookupError("before the worker heard of it")

    await asked.submit_async()
    await drain_async(engine, registry=registry)
    assert listening.states == [("cancelled", "cancelled", True)]


async def test_a_worker_that_lost_its_claim_tells_nothing(
    engine: Engine, listening: Listening, caplog: pytest.LogCaptureFixture
):
    registry = Registry()

    @task(registry=registry)
    def taken_back() -> int:
        attempt = current_task().attempt
        if attempt == 1:
            TaskManager().retry(current_task().id)
        return attempt

    handle = await taken_back.submit_async()
    await drain_async(engine, registry=registry)
    assert await handle.result_async(5) == 2
    assert "refused: task" in caplog.text or "is lost: no longer" in caplog.text  # a heartbeat may come before its end
    assert [(kind, event.attempt) for kind, event in listening.told] == [("completed", 2)]


async def test_claims_by_hand_are_told_too(engine: Engine, listening: Listening):
    async with AsyncTaskManager(engine) as manager:
        first, second = await manager.submit({"a": 1}), await manager.submit({"a": 2})
        for task_id in (first, second):
            await manager.claim(task_id, "me")
        await manager.complete(first, worker_id="me")
        await manager.fail(second, "no", worker_id="me", retryable=False)
    await listeners.flush()
    (done, completed), (lost, failed) = listening.told
    assert (done, completed.id, completed.seconds) == ("completed", first, None)
    assert (lost, failed.id, failed.error, failed.exception) == ("failed", second, "no", None)


# -- facts ------------------------------------------------------------------------------------------------------------


def test_the_facts_of_a_failure(listening: Listening):
    registry, raised = Registry(), LookupError("no such thing")

    @task(registry=registry, max_retries=1, tags={"team": "mail"})
    def fragile() -> None:
        raise raised

    with fresh_queue(middleware=[listening], base_retry_delay_seconds=30) as queue:
        handle = fragile.submit()
        queue.drain(registry=registry)
        queue.advance(60)
        queue.drain(registry=registry)
    (first, retry), (second, failed) = listening.told
    assert (first, second) == ("retry", "failed")
    assert retry.exception is raised
    assert (retry.error or "").endswith("LookupError: no such thing")
    assert retry.seconds is not None
    assert (retry.waited is not None and retry.waited < 60, failed.waited) == (True, None)
    facts = replace(retry, error=None, exception=None, seconds=None, waited=None)
    assert facts == TaskEvent(id=handle.id, name="fragile", attempt=1, tags={"team": "mail"}, retry_in=30.0, seen=True)
    assert (failed.attempt, failed.retry_in) == (2, None)


def test_what_no_handler_raised_says_so(listening: Listening):
    registry = Registry()

    @task(registry=registry, max_retries=0)
    def misfit() -> int:
        return "seven"  # type: ignore[return-value]

    with fresh_queue(middleware=[listening]) as queue:
        misfit.submit()
        queue.drain(registry=registry)
    ((kind, event),) = listening.told
    assert (kind, event.seen) == ("failed", False)
    assert "result" in str(event.exception)


@pytest.mark.parametrize(("retries", "kind"), [(1, "retry"), (0, "failed")])
async def test_a_worker_that_vanished_is_told_by_whoever_takes_its_tasks_back(
    listening: Listening, retries: int, kind: str
):
    """Found by a janitor, told in the listeners' thread: user code never runs inside the janitor."""
    with fresh_queue(middleware=[listening]) as queue:
        async with AsyncTaskManager(queue.engine) as manager:
            task_id = await manager.submit({}, max_attempts=retries + 1)
            await manager.claim(task_id, "gone", ttl=5)
        queue.advance(60)
        assert await queue.engine.expire() == 1
        await listeners.flush()
    ((told, event),) = listening.told
    assert (told, event.id, event.attempt, event.seconds) == (kind, task_id, 1, None)
    assert "WorkerLost" in (event.error or "")
    assert listening.threads == {"tasklib-events"}


async def test_each_of_many_that_are_cancelled_is_told(listening: Listening):
    with fresh_queue(middleware=[listening]) as queue:
        async with AsyncTaskManager(queue.engine) as manager:
            ids = {await manager.submit({"number": number}) for number in range(3)}
        async for _ in bulk.perform(queue.engine, Action.CANCEL, Filter()):
            pass
        await listeners.flush()
    assert listening.kinds() == ["cancelled"] * 3
    assert {event.id for _, event in listening.told} == ids
    assert {event.attempt for _, event in listening.told} == {0}


# -- listeners --------------------------------------------------------------------------------------------------------


class Failing(Middleware):
    def on_completed(self, event: TaskEvent) -> None:
        raise SystemExit("a listener must not end anything")


class Awaiting(Middleware):
    """Its listener can await, and has its own loop to do so."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    async def on_completed(self, event: TaskEvent) -> None:
        await turns(2)
        found = await get_task_async(event.id)
        assert found is not None
        assert threading.current_thread().name == "tasklib-events"
        self.seen.append((asyncio.get_running_loop().__class__.__name__, found.state))


def test_a_listener_that_fails_is_logged_and_changes_nothing(listening: Listening, caplog: pytest.LogCaptureFixture):
    registry, awaiting = Registry(), Awaiting()

    @task(registry=registry)
    def good() -> int:
        return 7

    with fresh_queue(middleware=[Failing(), awaiting, listening]) as queue:
        handle = good.submit()
        queue.drain(registry=registry)
        assert (handle.get().state, handle.result()) == ("completed", 7)
    assert listening.kinds() == ["completed"]
    assert [state for _, state in awaiting.seen] == ["completed"]
    (line,) = [record for record in caplog.records if record.name == "tasklib.middleware"]
    assert f"the listener Failing.on_completed failed; task {handle.id} (good) is not concerned" == line.getMessage()
    assert line.exc_info is not None


async def test_a_slow_listener_delays_no_task_and_keeps_few_events(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(listeners, "WAITING_LIMIT", 2)
    registry, entered, freed = Registry(), threading.Event(), threading.Event()
    heard: list[TaskEvent] = []

    class Slow(Middleware):
        def on_completed(self, event: TaskEvent) -> None:
            entered.set()
            heard.append(event)
            freed.wait(30)

    @task(registry=registry)
    def good() -> int:
        return 7

    with fresh_queue(middleware=[Slow()]) as queue:
        first = await good.submit_async()
        draining = asyncio.create_task(queue.drain_async(registry=registry))
        assert await first.result_async(10) == 7
        assert await asyncio.to_thread(entered.wait, 10)
        others = [await good.submit_async() for _ in range(9)]
        more = asyncio.create_task(queue.drain_async(registry=registry))
        assert [await other.result_async(20) for other in others] == [7] * 9
        line = (await eventually_async(lambda: [each for each in caplog.records if "too slow" in each.getMessage()]))[0]
        freed.set()
        await asyncio.gather(draining, more)
    assert line.levelno == logging.ERROR
    assert 1 <= len(heard) < 10


def test_listeners_hear_of_tasks_that_run_where_they_are_submitted(listening: Listening):
    registry = Registry()

    @task(registry=registry)
    def good() -> int:
        return 7

    with fresh_queue(middleware=[listening]) as queue, queue.inline(registry=registry):
        good.submit()
        assert listening.states == [("completed", "completed", True)]
