"""A handler that waits for a task of its own queue is warned: with no slot free, both would wait for ever."""

import pytest

from tasklib import Config, TaskHandle, WaitTimeout, task, wait_for, wait_for_async
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tests.worker.conftest import Serve


@pytest.mark.parametrize("way", ["result", "result_async", "wait_for", "wait_for_async"])
async def test_who_waits_inside_a_handler_is_warned_at_once(
    engine: Engine, registry: Registry, serve: Serve, caplog: pytest.LogCaptureFixture, way: str
):
    @task(registry=registry)
    def inner() -> int:
        return 1

    @task(registry=registry, max_retries=0, name="outer")
    def outer() -> str:
        handle = inner.submit()
        with pytest.raises(WaitTimeout):
            handle.result(0.2) if way == "result" else wait_for(handle.id, 0.2)
        return str(handle.id)

    @task(registry=registry, max_retries=0, name="outer_async")
    async def outer_async() -> str:
        handle = await inner.submit_async()
        with pytest.raises(WaitTimeout):
            await (handle.result_async(0.2) if way == "result_async" else wait_for_async(handle.id, 0.2))
        return str(handle.id)

    async with serve(concurrency=1):
        waiting = await (outer_async if way.endswith("async") else outer).submit_async()
        awaited = await waiting.result_async(20)
    said = [r for r in caplog.records if "inside its handler" in r.message]
    assert [record.levelname for record in said] == ["WARNING"]
    assert f"task {waiting.id} (outer" in said[0].message
    assert f"waits for task {awaited}" in said[0].message
    assert "raise Snooze" in said[0].message


async def test_who_waits_outside_or_for_another_queue_is_not(
    engine: Engine, registry: Registry, serve: Serve, caplog: pytest.LogCaptureFixture
):
    elsewhere = Engine(Config(database_url="memory://elsewhere"))

    @task(registry=registry)
    def inner() -> int:
        return 1

    @task(registry=registry)
    async def outer() -> None:
        handle: TaskHandle[int] = TaskHandle((await inner.submit_async()).id, True, inner.task_type, elsewhere)
        with pytest.raises(LookupError):
            await handle.result_async(0.2)

    async with serve(concurrency=2):
        await (await outer.submit_async()).result_async(20)
    await elsewhere.close()
    assert "inside its handler" not in caplog.text
