"""TaskQueue: handlers, batches, options."""

import asyncio
import threading
from typing import Any

from pydantic import BaseModel

from tasklib import (
    TaskQueue,
    TaskState,
)
from tasklib.api.sync import run_sync
from tasklib.core.retry import RetryPolicy
from tasklib.engine.engine import Engine
from tasklib.stores.values import ClaimRequest, ControlChange, Controls
from tests.tq.reads import need
from tests.waiting import eventually

LATER = 3600.0


class CrawlPayload(BaseModel):
    url: str
    depth: int = 1


# -- the example test of the specification ----------------------------------------------------------------------------


def test_should_retry_failed_task_with_exponential_backoff(queue: TaskQueue):
    attempts = 0

    async def handler():
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise RuntimeError("Fail")

    queue.registerHandler("test", handler)
    task_id = queue.enqueue("test", {}, {"maxAttempts": 3})

    assert queue.processBatch() == 1  # attempt 1: fail
    assert need(queue, task_id).state == TaskState.FAILED
    assert queue.processBatch() == 0, "its retry is not due yet"

    queue.engine.advance(12.1)  # the longest first delay
    assert queue.processBatch() == 1  # attempt 2: fail
    assert need(queue, task_id).attempts == 2

    queue.engine.advance(48.1)
    assert queue.processBatch() == 1  # attempt 3: success
    assert need(queue, task_id).state == TaskState.COMPLETED
    assert attempts == 3


def test_a_task_without_attempts_left_has_failed_for_good(queue: TaskQueue):
    def broken(payload: object) -> None:
        raise RuntimeError("always")

    queue.register_handler("test", broken)
    once, twice, thrice = (queue.enqueue("test", n, max_attempts=n) for n in (1, 2, 3))
    default, unlimited = queue.enqueue("test", 0), queue.enqueue("test", 0, max_attempts=0)
    for _ in range(5):
        queue.process_batch()
        queue.engine.advance(LATER)
    assert [need(queue, each).attempts for each in (once, twice, thrice, default, unlimited)] == [1, 2, 3, 3, 5]
    assert need(queue, unlimited).completed_at is None
    assert need(queue, default).completed_at is not None
    assert need(queue, default).max_attempts == 3
    assert len(need(queue, default).history) == 3


def test_the_retry_policy_is_kept_in_the_row(queue: TaskQueue):
    task = need(queue, queue.enqueue("test", None))
    assert task.retry_policy is not None
    assert RetryPolicy(**task.retry_policy) == RetryPolicy.QUEUE


# -- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_is_at_most_so_large(engine: Engine):
    queue = TaskQueue(engine=engine, batch_size=4, enable_worker=False)
    done: list[int] = []
    queue.register_handler("count", done.append)
    queue.register_handler("other", done.append)
    for number in range(9):
        queue.enqueue("count" if number % 2 else "other", number, max_attempts=1)
    assert [queue.process_batch() for _ in range(4)] == [4, 4, 1, 0]
    assert sorted(done) == list(range(9))


async def test_batches_run_in_the_callers_loop_too(queue: TaskQueue):
    loops = set()

    async def note(payload: object) -> None:
        loops.add(asyncio.get_running_loop())

    queue.register_handler("note", note)
    await queue.enqueue_async("note", None)
    assert await queue.process_batch_async() == 1
    assert loops == {asyncio.get_running_loop()}
    queue.enqueue("note", None)
    assert queue.process_batch() == 1, "the blocking form, inside a loop"
    assert len(loops) == 2


def test_tasks_of_unknown_types_wait(queue: TaskQueue):
    task_id = queue.enqueue("nobody", {"a": 1})
    assert queue.process_batch() == 0
    queue.register_handler("somebody", print)
    assert queue.process_batch() == 0
    assert need(queue, task_id).state == TaskState.PENDING
    queue.register_handler("nobody", lambda payload: payload["a"])
    assert queue.process_batch() == 1
    assert queue.unregister_handler("nobody")
    assert not queue.unregisterHandler("nobody")
    queue.enqueue("nobody", {"a": 1})
    assert queue.process_batch() == 0


def test_a_batch_recovers_what_dead_workers_hold(queue: TaskQueue):
    task_id = queue.enqueue("test", 5)

    async def claim_and_vanish() -> None:
        store = await queue.engine.store()
        await store.claim(ClaimRequest(worker_id="gone", names=["test"], slots=1, lease_seconds=30))

    run_sync(claim_and_vanish())
    queue.register_handler("test", lambda payload: payload + 1)
    assert queue.process_batch() == 0
    queue.engine.advance(31)
    assert queue.process_batch() == 1
    task = need(queue, task_id)
    assert (task.state, task.attempts, task.result) == (TaskState.COMPLETED, 2, {"value": 6})


def test_timeouts_are_enforced_in_a_batch(queue: TaskQueue):
    queue.register_handler("hangs", lambda payload: threading.Event().wait())
    queue.set_timeout("hangs", 1)
    task_id = queue.enqueue("hangs", None, max_attempts=1)
    assert need(queue, task_id).timeout_seconds == 1
    later = queue.enqueue("hangs", None, timeout_seconds=7, run_after="2100-01-01T00:00Z")
    assert need(queue, later).timeout_seconds == 7
    assert queue.process_batch() == 1
    assert "TaskTimedOut" in (need(queue, task_id).error or "")


def test_nothing_runs_while_all_is_paused(queue: TaskQueue):
    queue.register_handler("test", print)
    queue.enqueue("test", None)
    queue.pause()
    assert queue.is_paused()
    assert queue.process_batch() == 0
    queue.resume()
    assert not queue.isPaused()
    assert queue.process_batch() == 1


def test_a_batch_keeps_to_the_worker_count(queue: TaskQueue):
    lock, running, most = threading.Lock(), 0, 0
    both = threading.Barrier(2, timeout=20)

    def work(payload: object) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait()
        with lock:
            running -= 1

    queue.register_handler("work", work)
    queue.set_worker_count("work", 2)
    for _ in range(6):
        queue.enqueue("work", None, max_attempts=1)
    assert queue.process_batch() == 6
    assert most == 2


def test_a_rate_limit_holds_in_batches_and_its_bucket_refills(queue: TaskQueue):
    queue.register_handler("limited", lambda payload: None)
    queue.set_rate_limit("limited", 0.001)  # so slow that the test's own time brings no permit
    for _ in range(8):
        queue.enqueue("limited", None)
    assert queue.process_batch() == 1, "the bucket holds one permit at least"
    assert queue.process_batch() == 0
    assert queue.stats()["byType"]["limited"]["pending"] == 7, "a deferred task uses no attempt"
    queue.engine.advance(LATER)
    assert queue.process_batch() == 1, "and never more than it holds"


def test_an_operators_rate_wins_until_it_is_cleared(queue: TaskQueue):
    def rate() -> float | None:
        return run_sync(queue.engine.controls()).get("limited", Controls()).rate

    queue.set_rate_limit("limited", 5)
    assert rate() == 5
    run_sync(queue.engine.control(ControlChange(name="limited", operator_rate=1)))
    assert rate() == 1
    queue.set_rate_limit("limited", 7)
    assert rate() == 1
    run_sync(queue.engine.control(ControlChange(name="limited", operator_rate=0)))
    assert not rate(), "no limit, whatever the code says"
    run_sync(queue.engine.control(ControlChange(name="limited", operator_rate=None)))
    assert rate() == 7
    queue.set_rate_limit("limited", None)
    assert rate() is None


def test_a_task_whose_type_is_unregistered_during_the_claim_goes_back(queue: TaskQueue):
    """The answer of a claim comes when its handler is gone."""
    task_id = queue.enqueue("test", 1)
    queue.register_handler("test", abs)
    queue.register_handler("other", abs)

    async def batch() -> None:
        store = await queue.engine.store()
        real = store.claim

        async def claim(request: ClaimRequest) -> Any:
            claimed = await real(request)
            queue.unregister_handler("test")
            return claimed

        store.claim = claim  # type: ignore[method-assign]
        assert await queue.process_batch_async() == 0

    asyncio.run(batch())
    task = need(queue, task_id)
    assert (task.state, task.attempts, task.worker_id) == (TaskState.PENDING, 0, None)


def test_the_worker_starts_and_stops_on_demand(queue: TaskQueue):
    queue.register_handler("test", abs)
    assert not queue.is_running()
    task_id = queue.enqueue("test", 1)
    queue.start()
    queue.start()
    assert queue.isRunning()
    eventually(lambda: need(queue, task_id).state == TaskState.COMPLETED)
    queue.stop()
    assert not queue.is_running()
    queue.stop()
