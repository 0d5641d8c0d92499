"""A handler that waits for a task of its own queue is warned. With every slot taken so, all would wait for ever: the
last of them is refused."""

import asyncio
import threading
from uuid import UUID

import pytest

from tasklib import Config, TaskHandle, WaitTimeout, task, wait_for, wait_for_async
from tasklib.api import waiting as api_waiting
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.engine.waits import Waits
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

    async with serve(concurrency=2, parallelism={"inner": 0}):
        waiting = await (outer_async if way.endswith("async") else outer).submit_async()
        awaited = await waiting.result_async(20)
    said = [r for r in caplog.records if "inside its handler" in r.message]
    assert [record.levelname for record in said] == ["WARNING"]
    assert f"task {waiting.id} (outer" in said[0].message
    assert f"waits for task {awaited}" in said[0].message
    assert all(cure in said[0].message for cure in (".output", "after=[...]", "raise Snooze"))


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


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_the_last_slot_that_would_wait_is_refused_and_the_others_get_on(
    engine: Engine, registry: Registry, serve: Serve, kind: str
):
    @task(registry=registry)
    def inner(number: int) -> int:
        return number

    @task(registry=registry, max_retries=0)
    def outer(number: int) -> int:
        return inner.submit(number).result()

    @task(registry=registry, max_retries=0)
    async def outer_async(number: int) -> int:
        both = await inner.submit_async(number), await inner.submit_async(number)
        # Two at once are one slot all the same.
        return sum(await asyncio.gather(*(handle.result_async() for handle in both))) // 2

    chosen = outer if kind == "def" else outer_async
    async with serve(concurrency=3):
        handles = [await chosen.submit_async(number) for number in range(3)]
        ended = [await handle.wait_async(20) for handle in handles]
    assert sorted(task.state for task in ended) == ["completed", "completed", "failed"]
    (refused,) = (task for task in ended if task.state == "failed")
    assert "WouldDeadlock: task " in (refused.error or "")
    assert all(cure in (refused.error or "") for cure in (".output", "after=[...]"))


async def test_waiting_for_what_is_over_or_is_run_elsewhere_is_no_deadlock(
    engine: Engine, registry: Registry, serve: Serve
):
    begun, go_on = threading.Event(), threading.Event()

    @task(registry=registry)
    def inner() -> str:
        begun.set()
        assert go_on.wait(20)
        return "done"

    @task(registry=registry, max_retries=0)
    def outer(awaited: str) -> str:
        go_on.set()
        return str((wait_for(awaited).result or {})["value"])

    @task(registry=registry)
    def elsewhere() -> None: ...

    async with serve(concurrency=1, names=["inner"]):
        handle = await inner.submit_async()
        assert await asyncio.to_thread(begun.wait, 20)
        # Its only slot waits: for one that another worker runs, then for one that is over.
        async with serve(concurrency=1, names=["outer", "inner"]):
            first = await outer.submit_async(str(handle.id))
            assert await first.result_async(20) == "done"
            second = await outer.submit_async(str(handle.id))
            assert await second.result_async(20) == "done"
    async with serve(concurrency=1, names=["outer"]):  # what it does not serve needs none of its slots
        unserved = await elsewhere.submit_async()
        third = await outer.submit_async(str(unserved.id))
        async with serve(concurrency=1, names=["elsewhere"]):
            assert await third.result_async(20) == "None"


async def test_a_slot_is_looked_at_again_while_it_waits(
    engine: Engine, registry: Registry, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(api_waiting, "LOOK_AGAIN_SECONDS", 0.05)

    @task(registry=registry)
    def inner() -> None: ...

    @task(registry=registry, max_retries=0)
    async def outer() -> None:
        handle = await inner.options(delay_seconds=3600).submit_async()
        worker.adjust(1)
        await handle.wait_async(5)

    async with serve(concurrency=2) as worker:
        ended = await (await outer.submit_async()).wait_async(20)
    assert "WouldDeadlock" in (ended.error or "")


def test_a_slot_that_began_earlier_does_not_give_way():
    waits = Waits("w", lambda: 2, lambda: ["inner"])
    first, second, awaited = (UUID(int=1), 1), (UUID(int=2), 1), UUID(int=3)
    waits.begin(first, awaited)
    assert waits.awaited_by_all(first) == []
    waits.begin(second, awaited)
    assert waits.awaited_by_all(first) == []
    assert waits.awaited_by_all(second) == [awaited, awaited]
    waits.forget(first)  # its thread was left behind, still waiting, and its slot runs another task
    assert waits.awaited_by_all(second) == []
