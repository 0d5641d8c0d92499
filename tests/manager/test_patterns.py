"""The patterns of use, and the same tasks seen through the other APIs."""

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tasklib import (
    TaskManager,
    TaskNotFailed,
    TaskNotFound,
    TaskQueue,
    TaskStatus,
    TaskWorker,
)
from tasklib.api.decorator import task as task_decorator
from tasklib.api.manager import managed
from tasklib.api.sync import run_in_new_thread, run_sync
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.stores.sql.sqlite import SqliteStore
from tasklib.stores.values import Filter


def process(payload: Any) -> bytes:
    if payload["order_id"] == "bad":
        raise ValueError("no such order")
    return f"processed {payload['order_id']}".encode()


def test_basic_task_processing(manager: TaskManager):
    good = manager.submit({"order_id": "123"}, idempotency_key="order-123-process", max_attempts=3)
    bad = manager.submit({"order_id": "bad"}, max_attempts=3)
    taken = manager.submit({"order_id": "taken"})
    manager.claim(taken, "another-worker")
    for _ in range(3):  # the worker's loop
        for task in manager.list(TaskStatus.PENDING):
            manager.claim(task.id, "worker-1")
            try:
                result = process(task.payload)
            except ValueError as error:
                manager.fail(task.id, error, worker_id="worker-1")
            else:
                manager.complete(task.id, result, worker_id="worker-1")
    assert manager.get(good).result == b"processed 123"
    failed = manager.get(bad)
    assert (failed.status, failed.attempts) == (TaskStatus.FAILED, 3)
    assert (failed.error or "").endswith("ValueError: no such order")
    assert manager.get(taken).claimed_by == "another-worker"


def test_idempotent_submission(manager: TaskManager):
    first = manager.submit(b"email data", idempotency_key="email-456-send")
    assert manager.submit(b"email data", idempotency_key="email-456-send") == first
    manager.claim(first, "worker-a")
    assert manager.submit(b"other data", idempotency_key="email-456-send", max_attempts=9) == first
    manager.complete(first, worker_id="worker-a")
    assert manager.submit(b"email data", idempotency_key="email-456-send") == first
    (task,) = manager.list()
    assert (task.payload, task.max_attempts) == (b"email data", 0)


def test_without_a_key_every_submit_is_a_task(manager: TaskManager):
    assert manager.submit(b"same") != manager.submit(b"same")


def test_checking_task_status(manager: TaskManager):
    task_id = manager.submit({"n": 1}, idempotency_key="order-123-process")
    manager.claim(task_id, "worker-a")
    manager.complete(task_id, b"result", worker_id="worker-a")
    task = manager.get(str(task_id))
    assert (task.status, str(task.status)) == (TaskStatus.COMPLETED, "completed")
    assert task.result == b"result"
    assert manager.get_by_idempotency_key("order-123-process") == task
    with pytest.raises(TaskNotFound):
        manager.get_by_idempotency_key("order-124-process")


def test_cleanup_of_old_tasks(manager: TaskManager):
    def finish(task_id: Any) -> None:
        manager.claim(task_id, "worker-a")
        manager.complete(task_id, worker_id="worker-a")

    old, waiting = manager.submit("old", idempotency_key="old"), manager.submit("waiting")
    finish(old)
    manager.engine.advance(48 * 3600)
    new = manager.submit("new")
    finish(new)
    now = run_sync(_now(manager.engine))
    for task in manager.list(TaskStatus.COMPLETED):
        assert task.completed_at is not None
        if now - task.completed_at > timedelta(hours=24):
            manager.delete(task.id)
    assert [task.id for task in manager.list()] == [waiting, new]
    with pytest.raises(TaskNotFound):
        manager.get_by_idempotency_key("old")


async def _now(engine: Engine) -> Any:
    return await (await engine.store()).now()


def test_lists_by_status(manager: TaskManager):
    tasks = {status: manager.submit(status.value, max_attempts=1) for status in TaskStatus}
    waiting = manager.submit("waiting for its retry")
    for task_id in (tasks[TaskStatus.CLAIMED], tasks[TaskStatus.COMPLETED], tasks[TaskStatus.FAILED], waiting):
        manager.claim(task_id, "worker-a")
    manager.complete(tasks[TaskStatus.COMPLETED], worker_id="worker-a")
    manager.fail(tasks[TaskStatus.FAILED], "no luck", worker_id="worker-a")
    manager.fail(waiting, "no luck", worker_id="worker-a")
    run_sync(manager.engine.cancel(tasks[TaskStatus.CANCELLED]))
    for status, task_id in tasks.items():
        expected = [task_id, waiting] if status == TaskStatus.PENDING else [task_id]
        assert [task.id for task in manager.list(status)] == expected
        assert {task.status for task in manager.list(status.value)} == {status}
    assert [task.id for task in manager.list()] == [*tasks.values(), waiting]
    assert [task.id for task in manager.list(limit=2)] == list(tasks.values())[:2]


def test_lists_are_whole_however_long(manager: TaskManager, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasklib.api.manager._PAGE", 3)
    submitted = [manager.submit(number) for number in range(8)]
    named = manager.submit("x", name="mail")
    assert [task.id for task in manager.list()] == [*submitted, named]
    assert [task.id for task in manager.list(limit=7)] == submitted[:7]
    assert [task.id for task in manager.list(name="mail")] == [named]


# -- other APIs ------------------------------------------------------------------------------------------------------


def test_it_shows_in_the_other_apis(manager: TaskManager):
    task_id = manager.submit({"n": 1}, idempotency_key="key", max_attempts=5)
    (row,) = run_sync(manager.engine.page(Filter(names=["default"]), limit=10)).tasks
    assert (row.id, row.state, row.kwargs, row.max_attempts) == (task_id, "pending", {"n": 1}, 5)
    manager.claim(task_id, "worker-a")
    assert run_sync(manager.engine.stats())["default"].running == 1
    manager.complete(task_id, [1], worker_id="worker-a")
    assert run_sync(manager.engine.get_or_raise(task_id)).result == {"value": [1]}
    stats = run_sync(manager.engine.stats())["default"]
    assert (stats.completed, stats.running) == (1, 0)


def test_a_handler_can_run_it(manager: TaskManager):
    """Bytes reach a handler in the form in which they are stored."""
    seen: list[Any] = []
    queue = TaskQueue(engine=manager.engine, enable_worker=False)
    queue.register_handler("echo", lambda payload: seen.append(payload) or payload)  # type: ignore[func-returns-value]
    plain, packed = manager.submit({"n": 1}, name="echo"), manager.submit(b"hello", name="echo")
    assert queue.process_batch() == 2
    assert seen == [{"n": 1}, {"$bytes": "aGVsbG8="}]
    assert base64.b64decode(seen[1]["$bytes"]) == b"hello"
    assert manager.get(plain).result == {"n": 1}
    assert manager.get(packed).result == b"hello"
    assert {task.status for task in manager.list()} == {TaskStatus.COMPLETED}


def test_a_task_function_can_run_it(manager: TaskManager):
    registry = Registry()

    @task_decorator(name="add", registry=registry)
    def add(a: int, b: int) -> int:
        return a + b

    good, bad = manager.submit({"a": 1, "b": 2}, name="add"), manager.submit([1, 2], name="add")
    run_in_new_thread(TaskWorker(registry=registry, engine=manager.engine, burst=True, handle_signals=False).run())
    assert manager.get(good).result == 3
    refused = manager.get(bad)
    assert (refused.status, refused.attempts) == (TaskStatus.FAILED, 1)


def test_a_handlers_failure_is_pending_again_at_once(manager: TaskManager):
    queue = TaskQueue(engine=manager.engine, enable_worker=False)
    queue.register_handler("fragile", lambda payload: 1 // payload)
    task_id = manager.submit(0, name="fragile", max_attempts=2)
    assert queue.process_batch() == 2, "both attempts, one after the other"
    assert (manager.get(task_id).status, manager.get(task_id).attempts) == (TaskStatus.FAILED, 2)


def test_a_task_of_another_api_can_be_claimed(manager: TaskManager):
    """And what becomes of it follows that API's own rules: here, a retry after some seconds."""
    queue = TaskQueue(engine=manager.engine, enable_worker=False)
    task_id = queue.enqueue("crawl", {"url": "https://example.com"})
    (task,) = manager.claim_next("worker-a", names=["crawl"])
    assert (task.id, task.payload, task.max_attempts) == (task_id, {"url": "https://example.com"}, 3)
    manager.fail(task_id, "no luck", worker_id="worker-a")
    assert manager.get(task_id).status == TaskStatus.PENDING
    assert manager.claim_next("worker-a", names=["crawl"]) == []
    row = run_sync(manager.engine.get_or_raise(task_id))
    assert row.next_retry_at is not None
    assert 7 < (row.next_retry_at - row.updated_at).total_seconds() < 13
    before = manager.retry(task_id)
    assert (before.status, before.attempts) == (TaskStatus.PENDING, 1), "at once, with the attempts it has had"
    manager.claim(task_id, "worker-a")
    manager.complete(task_id, {"links": 7}, worker_id="worker-a")
    found = queue.get_task(task_id)
    assert found is not None
    assert (found.state, found.result, found.attempts) == ("completed", {"value": {"links": 7}}, 2)


def test_an_operators_retry_gives_all_attempts_anew(manager: TaskManager):
    """Unlike the manager's own."""
    task_id = manager.submit(1, max_attempts=1)
    with pytest.raises(TaskNotFailed):
        run_sync(manager.engine.retry(task_id))
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "no luck", worker_id="worker-a")
    run_sync(manager.engine.retry(task_id))
    assert manager.get(task_id).attempts == 0
    stats = run_sync(manager.engine.stats())["default"]
    assert (stats.failed, stats.pending) == (0, 1)


def test_a_retry_takes_a_failure_out_of_the_figures(manager: TaskManager):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "broken", worker_id="worker-a", retryable=False)
    assert run_sync(manager.engine.stats())["default"].failed == 1
    manager.retry(task_id)
    stats = run_sync(manager.engine.stats())["default"]
    assert (stats.failed, stats.pending) == (0, 1)


def test_somebody_who_waits_is_told(manager: TaskManager):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    manager.complete(task_id, 7, worker_id="worker-a")
    assert run_sync(manager.engine.wait(task_id, 10)).result == {"value": 7}


def test_a_row_in_an_unknown_state_is_shown_as_it_is(manager: TaskManager):
    task = run_sync(manager.engine.get_or_raise(manager.submit(1)))
    assert managed(replace(task, state="on hold")).status == "on hold"


# -- what it is made of -----------------------------------------------------------------------------------------------


def test_a_store_can_be_given(sqlite_url: str):
    """It stays its owner's: closing the manager does not close it."""
    store = SqliteStore(sqlite_url)
    with TaskManager(store) as manager:
        task_id = manager.submit(1)
    with TaskManager(store) as again:
        assert again.get(task_id).payload == 1
    run_sync(store.close())


def test_without_a_queue_it_is_the_librarys_own(tasklib_queue: Any):
    with TaskManager() as manager:
        task_id = manager.submit(1)
    with TaskManager() as again:
        assert again.get(task_id).payload == 1
