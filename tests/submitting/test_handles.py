"""Handles: what they raise says what happened to the task."""

import pytest

from tasklib import RetryPolicy, TaskCancelled, TaskFailed, WaitTimeout, task
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain_async


async def test_a_cancelled_task_without_an_error(memory: Engine, registry: Registry):
    @task(registry=registry)
    def work() -> None: ...

    handle = await work.submit_async()
    await handle.cancel_async()
    with pytest.raises(TaskCancelled) as ended:
        await handle.result_async(5)
    assert str(ended.value) == f"task {handle.id} (work) cancelled"


async def test_a_failure_shows_its_error_without_secrets(memory: Engine, registry: Registry):
    @task(registry=registry, max_retries=0)
    def work() -> None:
        raise ConnectionError("cannot reach postgresql://ada:geheim@db/shop")

    handle = await work.submit_async()
    await drain_async(memory, registry=registry)
    with pytest.raises(TaskFailed, match=r"postgresql://ada:\*\*\*@db/shop") as ended:
        await handle.result_async(5)
    assert "geheim" not in str(ended.value)


async def test_a_wait_that_ends_too_early_tells_how_far_the_task_got(memory: Engine, registry: Registry):
    @task(registry=registry, max_retries=3, retry=RetryPolicy(base=600))
    def work() -> None:
        raise ConnectionError("not now: password=geheim")

    handle = await work.submit_async()
    with pytest.raises(WaitTimeout, match=r"work is pending, 0 of 4 attempts begun$"):
        await handle.result_async(0.05)
    await drain_async(memory, registry=registry)
    with pytest.raises(WaitTimeout) as late:
        await handle.result_async(0.05)
    told = "waiting for a retry, 1 of 4 attempts begun; last error: ConnectionError: not now: password=***"
    assert str(late.value) == f"task {handle.id} was not finished within 0.05 s: work is {told}"
    assert (late.value.task_id, late.value.state) == (handle.id, "failed")
