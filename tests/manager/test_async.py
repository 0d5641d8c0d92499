"""The async form has the same verbs, and one manager serves one event loop after the other."""

import asyncio
import inspect
from collections import Counter

import pytest

from tasklib import AsyncTaskManager, StoreClosed, StoreError, TaskAlreadyClaimed, TaskManager, TaskStatus
from tasklib.stores.sql.sqlite import SqliteStore


def verbs(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(found)
        for name, found in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_both_forms_have_the_same_verbs():
    assert verbs(TaskManager) == verbs(AsyncTaskManager)
    assert {
        "submit", "claim", "complete", "fail", "retry", "get", "get_by_idempotency_key", "list", "delete", "extend",
        "claim_next", "close",
    } <= set(verbs(TaskManager))  # fmt: skip
    assert all(map(inspect.iscoroutinefunction, [getattr(AsyncTaskManager, name) for name in verbs(TaskManager)]))
    for name in verbs(TaskManager):
        assert getattr(TaskManager, name).__doc__ == getattr(AsyncTaskManager, name).__doc__


async def test_a_whole_life(backend_url: str):
    async with AsyncTaskManager(backend_url) as manager:
        task_id = await manager.submit({"n": 1}, idempotency_key="key", max_attempts=2)
        claims = await asyncio.gather(*(manager.claim(task_id, f"w{n}") for n in range(20)), return_exceptions=True)
        assert Counter(type(claim).__name__ for claim in claims) == {"ManagedTask": 1, "TaskAlreadyClaimed": 19}
        assert all(isinstance(claim, TaskAlreadyClaimed) or claim.attempts == 1 for claim in claims)  # type: ignore[union-attr]
        winner = (await manager.get(task_id)).claimed_by or ""
        await manager.extend(task_id, worker_id=winner)
        await manager.fail(task_id, RuntimeError("no luck"), worker_id=winner)
        (again,) = await manager.claim_next("worker-b", wait_seconds=10)
        assert (again.id, again.attempts) == (task_id, 2)
        await manager.release(task_id, worker_id="worker-b")
        await manager.claim(task_id, "worker-b")
        await manager.complete(task_id, b"done", worker_id="worker-b")
        assert (await manager.get_by_idempotency_key("key")).result == b"done"
        assert [task.id for task in await manager.list(TaskStatus.COMPLETED)] == [task_id]
        await manager.delete(task_id)
    with pytest.raises(StoreClosed):
        await manager.list()


def test_loops_may_come_and_go(sqlite_url: str):
    manager = AsyncTaskManager(sqlite_url)
    task_id = asyncio.run(manager.submit(1))
    assert asyncio.run(manager.claim(task_id, "worker-a")).attempts == 1
    asyncio.run(manager.complete(task_id, worker_id="worker-a"))
    asyncio.run(manager.close())


async def test_an_open_store_can_be_given(sqlite_url: str):
    store = SqliteStore(sqlite_url)
    await store.open()
    async with AsyncTaskManager(store) as manager:
        task_id = await manager.submit(1)
        # One store, one loop: said, not suffered.
        with pytest.raises(StoreError, match="one event loop"):
            await asyncio.to_thread(asyncio.run, manager.get(task_id))
    assert (await store.get([task_id]))[0] is not None
    await store.close()


async def test_a_blocking_manager_works_inside_a_running_loop(memory_url: str):
    with TaskManager(memory_url) as manager:
        assert manager.get(manager.submit(1)).payload == 1
