"""Seconds may be given as a timedelta, through every API."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import tasklib
from tasklib import AsyncTaskManager, Config, InvalidConfig, InvalidOption, Retry, RetryPolicy, Snooze, TaskHandle, task
from tasklib.api.decorator import TaskFunction
from tasklib.api.queue import TaskQueue
from tasklib.core.durations import in_seconds
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain_async
from tasklib.worker.worker import TaskWorker

MINUTE = timedelta(minutes=1)
Twice = TaskFunction[[int], int, int]


@pytest.fixture
def twice(memory: Engine, registry: Registry) -> Twice:
    @task(registry=registry, timeout_seconds=timedelta(hours=1))
    def twice(number: int) -> int:
        return number * 2

    return twice


def test_a_timedelta_in_seconds():
    assert [in_seconds(each) for each in (MINUTE, timedelta(milliseconds=1500), 7, "x", None)] == [
        60,
        1.5,
        7,
        "x",
        None,
    ]
    assert type(in_seconds(MINUTE)) is int


async def test_submits(memory: Engine, twice: Twice):
    options: dict[str, Any] = {"delay_seconds": MINUTE, "timeout_seconds": MINUTE}
    queue = TaskQueue(engine=memory, poll_interval=timedelta(milliseconds=500))
    queue.set_timeout("other", timedelta(hours=2))
    manager = AsyncTaskManager(memory, claim_ttl=MINUTE)
    ids = [
        twice.options(**options).submit(1).id,
        await tasklib.submit_task(twice, number=1, **options),
        tasklib.submit_task_sync(twice, number=1, **options),
        *await tasklib.submit_many(twice, [{"number": 1}], **options),
        await manager.submit("x", **options),
    ]
    for task_id in ids:
        found = await memory.get_or_raise(task_id)
        assert found.scheduled_at - found.created_at == MINUTE
        assert found.timeout_seconds == 60
    assert (await memory.get_or_raise(twice.submit(1).id)).timeout_seconds == 3600
    assert queue.poll_interval == 0.5
    assert (await memory.get_or_raise(await queue.enqueue_async("other", 1))).timeout_seconds == 7200
    assert (
        await memory.get_or_raise(await queue.enqueue_async("x", 1, {"timeout_seconds": MINUTE}))
    ).timeout_seconds == 60


async def test_claims(memory: Engine):
    manager = AsyncTaskManager(memory, claim_ttl=MINUTE)
    task_id = await manager.submit("x")
    (claimed,) = await manager.claim_next("w", ttl=timedelta(hours=1), wait_seconds=timedelta(seconds=1))
    before = (await memory.get_or_raise(claimed.id)).locked_until
    await manager.extend(task_id, worker_id="w", ttl=timedelta(hours=2))
    after = (await memory.get_or_raise(claimed.id)).locked_until
    assert before is not None
    assert after is not None
    assert after - before > timedelta(minutes=50)


async def test_waits_and_the_clock(memory: Engine, registry: Registry, twice: Twice):
    handle = twice.options(delay_seconds=MINUTE).submit(2)
    with pytest.raises(tasklib.WaitTimeout, match=r"within 0.01 s"):
        await handle.result_async(timedelta(milliseconds=10))
    memory.advance(MINUTE)
    await drain_async(memory, registry=registry)
    assert await handle.result_async(MINUTE) == 4
    assert (await tasklib.wait_for_async(handle.id, MINUTE)).state == "completed"


def test_retries():
    assert RetryPolicy(base=MINUTE, cap=timedelta(hours=1)) == RetryPolicy(base=60, cap=3600)
    assert RetryPolicy(MINUTE).to_json() == RetryPolicy(60).to_json()
    assert (Retry(delay=MINUTE).delay, Snooze(delay=MINUTE).delay) == (60, 60)
    assert str(Snooze(delay=MINUTE)) == "snoozed for 60 s"


def test_settings():
    given: dict[str, Any] = {"lock_timeout_seconds": MINUTE, "default_task_timeout_seconds": MINUTE}
    config = Config(database_url="memory://", **given)
    assert (config.lock_timeout_seconds, config.default_task_timeout_seconds) == (60.0, 60)
    for wrong in ("max_retries", "retry_jitter"):
        given = {wrong: timedelta(0)}
        with pytest.raises(InvalidConfig, match=wrong):
            Config(database_url="memory://", **given)
    TaskWorker(config, poll_interval_seconds=timedelta(seconds=1))


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: RetryPolicy(base=-MINUTE), "base"),
    (lambda: Retry(delay=-MINUTE), "delay"),
    (lambda: AsyncTaskManager("memory://", claim_ttl=timedelta(0)), "claim_ttl"),
    (lambda: task(timeout_seconds=timedelta(milliseconds=1500)), "timeout_seconds"),
]


@pytest.mark.parametrize(("call", "field"), REFUSED)
def test_the_limits_are_the_same(call: Callable[[], Any], field: str):
    with pytest.raises(InvalidOption, match=field):
        call()


async def test_many_with_handles(memory: Engine, registry: Registry, twice: Twice):
    handles: list[TaskHandle[int]] = twice.submit_many([{"number": 1}, {"number": 2}], handles=True)
    handles += await twice.options(priority=1).submit_many_async([{"number": 3}], handles=True)
    await drain_async(memory, registry=registry)
    assert [await handle.result_async(5) for handle in handles] == [2, 4, 6]
    (plain,) = twice.submit_many([{"number": 4}])
    assert (await memory.get_or_raise(plain)).kwargs == {"number": 4}
