"""Every function that the task queue's specification lists has its counterpart: one test for each row of the table in
docs/fluent.md."""

import re
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tasklib import RetryPolicy, TaskCompleted, TaskNotTerminal, TaskQueue, TaskState
from tasklib.api.sync import run_sync
from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.outcome import Completed, Failed
from tasklib.core.registry import define_handler
from tasklib.core.task import Claim
from tasklib.stores.protocol import Store
from tasklib.stores.values import ClaimRequest, ControlChange, Filter
from tasklib.worker import runner
from tests.tq.reads import need
from tests.waiting import eventually

PAGE = Path(__file__).parents[2] / "docs" / "fluent.md"
LISTED = {
    "Task Manager": [
        "createTask",
        "getTaskById",
        "listTasks",
        "updateTaskStatus",
        "deleteTask",
        "incrementAttempts",
        "setTaskResult",
        "setTaskError",
    ],
    "Scheduler": [
        "calculateNextRetry",
        "shouldRunNow",
        "getReadyTasks",
        "canExecuteNow",
        "trackExecution",
        "setRateLimit",
        "getRateLimit",
    ],
    "Executor": ["registerHandler", "unregisterHandler", "executeTask", "recoverStaleTasks"],
    "Worker": ["start", "stop", "pause", "resume", "isRunning", "isPaused", "processBatch"],
}

T = TypeVar("T")


def on_store(queue: TaskQueue, call: Callable[[Store], Awaitable[T]]) -> T:
    async def work() -> T:
        return await call(await queue.engine.store())

    return run_sync(work())


def claim(queue: TaskQueue, slots: int = 1) -> list[Claim]:
    request = ClaimRequest(worker_id="tester", names=["test"], slots=slots, lease_seconds=30)
    return on_store(queue, lambda store: store.claim(request)).claims


def settle(queue: TaskQueue, held: Claim, outcome: Any) -> None:
    change = decide.settle(held, outcome, RetryPolicy.QUEUE)
    assert on_store(queue, lambda store: store.settle([change])) == [WriteResult.APPLIED]


def test_the_table_has_a_row_and_each_row_a_test():
    rows = re.findall(
        r"^\| (Task Manager|Scheduler|Executor|Worker) \| `(\w+)` \| .+ \|$", PAGE.read_text(), re.MULTILINE
    )
    assert rows == [(module, name) for module, names in LISTED.items() for name in names]
    for module, name in rows:
        words = re.sub("([A-Z])", r"_\1", name)
        test = f"test_{module}_{words}".replace(" ", "_").lower()
        assert test in globals(), test


# -- Task Manager -----------------------------------------------------------------------------------------------------


def test_task_manager_create_task(queue: TaskQueue):
    task = need(queue, queue.enqueue("test", {"a": 1}, {"maxAttempts": 4}))
    assert (task.name, task.kwargs, task.state, task.attempts, task.max_attempts) == ("test", {"a": 1}, "pending", 0, 4)


def test_task_manager_get_task_by_id(queue: TaskQueue):
    task_id = queue.enqueue("test", 1)
    assert run_sync(queue.engine.get(task_id)) == queue.get_task(task_id)


def test_task_manager_list_tasks(queue: TaskQueue):
    ids = [queue.enqueue(name, 1) for name in ("test", "test", "other", "test")]
    page = run_sync(queue.engine.page(Filter(names=["test"], states=["pending"]), limit=2))
    assert [task.id for task in page.tasks] == [ids[3], ids[1]]
    page = run_sync(queue.engine.page(Filter(names=["test"]), limit=2, offset=2))
    assert [task.id for task in page.tasks] == [ids[0]]


def test_task_manager_update_task_status(queue: TaskQueue):
    task_id = queue.enqueue("test", 1)
    [held] = claim(queue)
    assert need(queue, task_id).state == TaskState.RUNNING
    settle(queue, held, Completed('{"value":1}'))
    assert need(queue, task_id).state == TaskState.COMPLETED
    with pytest.raises(TaskCompleted):  # a move that is not in the table
        run_sync(queue.engine.cancel(task_id))


def test_task_manager_delete_task(queue: TaskQueue):
    task_id = queue.enqueue("test", 1)
    with pytest.raises(TaskNotTerminal):
        run_sync(queue.engine.delete(task_id))
    settle(queue, claim(queue)[0], Completed('{"value":1}'))
    run_sync(queue.engine.delete(task_id))
    assert queue.get_task(task_id) is None


def test_task_manager_increment_attempts(queue: TaskQueue):
    task_id = queue.enqueue("test", 1)
    claim(queue)
    assert need(queue, task_id).attempts == 1


def test_task_manager_set_task_result(queue: TaskQueue):
    task_id = queue.enqueue("test", 1)
    settle(queue, claim(queue)[0], Completed('{"value":{"messageId":"abc"}}'))
    task = need(queue, task_id)
    assert (task.result, task.error) == ({"value": {"messageId": "abc"}}, None)
    assert task.completed_at is not None


def test_task_manager_set_task_error(queue: TaskQueue):
    task_id = queue.enqueue("test", 1)
    settle(queue, claim(queue)[0], Failed("it broke"))
    task = need(queue, task_id)
    assert (task.state, task.error, task.completed_at) == (TaskState.FAILED, "it broke", None)
    assert task.next_retry_at is not None


# -- Scheduler --------------------------------------------------------------------------------------------------------


def test_scheduler_calculate_next_retry(queue: TaskQueue):
    policy = RetryPolicy.QUEUE
    assert [policy.delay(retry) for retry in (1, 2, 3, 4, 5)] == [10, 40, 160, 640, 2560]
    assert (policy.delay(1, -1), policy.delay(1, 1)) == (8, 12)
    assert policy.delay(7) == 6 * 3600
    task_id = queue.enqueue("test", 1)
    settle(queue, claim(queue)[0], Failed("it broke"))
    task = need(queue, task_id)
    assert task.next_retry_at is not None
    assert timedelta(seconds=7.9) < task.next_retry_at - task.updated_at < timedelta(seconds=12.1)


def test_scheduler_should_run_now(queue: TaskQueue):
    now = on_store(queue, lambda store: store.now())
    task_id = queue.enqueue("test", 1, run_after=now + timedelta(seconds=100))
    assert need(queue, task_id).due_at > now
    assert claim(queue) == []
    queue.engine.advance(101)
    assert [held.id for held in claim(queue)] == [task_id]


def test_scheduler_get_ready_tasks(queue: TaskQueue):
    ids = [queue.enqueue("test", number) for number in range(5)]
    assert [held.id for held in claim(queue, slots=3)] == ids[:3], "oldest first"
    assert [held.id for held in claim(queue, slots=3)] == ids[3:]


def test_scheduler_can_execute_now(queue: TaskQueue):
    queue.set_rate_limit("test", 1)
    ids = [queue.enqueue("test", number) for number in range(2)]
    assert [held.id for held in claim(queue, slots=2)] == ids[:1]
    assert claim(queue) == []
    run_sync(queue.engine.control(ControlChange(name="test", operator_rate=0)))
    assert [held.id for held in claim(queue)] == ids[1:]


def test_scheduler_track_execution(queue: TaskQueue):
    queue.set_rate_limit("test", 3)
    for number in range(9):
        queue.enqueue("test", number)
    assert len(claim(queue, slots=2)) == 2
    assert len(claim(queue, slots=2)) == 1, "one token was left"
    queue.engine.advance(100)
    assert len(claim(queue, slots=9)) == 3, "no more than the bucket holds"


def test_scheduler_set_rate_limit(queue: TaskQueue):
    queue.set_rate_limit("test", 5)
    assert run_sync(queue.engine.controls())["test"].default_rate == 5


def test_scheduler_get_rate_limit(queue: TaskQueue):
    run_sync(queue.engine.control(ControlChange(operator_rate=7)))
    assert run_sync(queue.engine.controls())[""].rate == 7, "for all types together"


# -- Executor ---------------------------------------------------------------------------------------------------------


def test_executor_register_handler(queue: TaskQueue):
    queue.register_handler("test", lambda payload: payload)
    assert queue.registry.names() == ("test",)


def test_executor_unregister_handler(queue: TaskQueue):
    queue.register_handler("test", lambda payload: payload)
    assert queue.unregister_handler("test")
    assert queue.registry.names() == ()


async def test_executor_execute_task(queue: TaskQueue):
    async def native(payload: int) -> int:
        return payload * 2

    outcome = runner.call(define_handler("test", lambda payload: payload * 2), "21", 100)
    assert isinstance(outcome, Completed)
    assert outcome.result == '{"value":42}'
    assert await runner.call_async(define_handler("test", native), "21", 100) == outcome
    broken = runner.call(define_handler("test", lambda payload: 1 / payload), "0", 100)
    assert isinstance(broken, Failed)
    assert "ZeroDivisionError" in broken.error


def test_executor_recover_stale_tasks(queue: TaskQueue):
    task_id = queue.enqueue("test", 1)
    claim(queue)
    assert run_sync(queue.engine.expire()) == 0
    queue.engine.advance(31)
    assert run_sync(queue.engine.expire()) == 1
    task = need(queue, task_id)
    assert (task.state, task.attempts) == (TaskState.FAILED, 1)
    assert [held.id for held in claim(queue)] == [task_id], "due again at once"


# -- Worker -----------------------------------------------------------------------------------------------------------


def test_worker_start(queue: TaskQueue):
    done = threading.Event()
    queue.register_handler("test", lambda payload: done.set())
    queue.enqueue("test", 1)
    queue.start()
    assert done.wait(20)


def test_worker_stop(queue: TaskQueue):
    started, gate = threading.Event(), threading.Event()

    def slow(payload: object) -> str:
        started.set()
        gate.wait()
        return "finished"

    queue.register_handler("test", slow)
    task_id = queue.enqueue("test", 1)
    queue.start()
    assert started.wait(20)
    threading.Timer(0.05, gate.set).start()
    queue.stop()
    assert need(queue, task_id).result == {"value": "finished"}


def test_worker_pause(queue: TaskQueue):
    queue.enqueue("test", 1)
    queue.pause()
    assert claim(queue) == []


def test_worker_resume(queue: TaskQueue):
    done = threading.Event()
    queue.register_handler("test", lambda payload: done.set())
    queue.pause()
    queue.start()
    queue.enqueue("test", 1)
    eventually(lambda: run_sync(queue.engine.workers()) != [])
    assert not done.is_set()
    queue.resume()
    assert done.wait(20)


def test_worker_is_running(queue: TaskQueue):
    assert not queue.is_running()
    queue.start()
    assert queue.is_running()
    queue.stop()
    assert not queue.is_running()


def test_worker_is_paused(queue: TaskQueue):
    assert not queue.is_paused()
    queue.pause()
    assert queue.is_paused()
    queue.resume()
    assert not queue.is_paused()


def test_worker_process_batch(queue: TaskQueue):
    queue.register_handler("test", lambda payload: payload)
    for number in range(12):
        queue.enqueue("test", number)
    assert [queue.process_batch(), queue.process_batch(), queue.process_batch()] == [10, 2, 0]
