"""The life of a task in the words of the claim API: each row of its tables of transitions and attempts."""

import pytest

from tasklib import (
    ManagedTask,
    MaxAttemptsReached,
    TaskCancelled,
    TaskCompleted,
    TaskManager,
    TaskNotTerminal,
    TaskStatus,
)
from tasklib.api.sync import run_sync


def brief(task: ManagedTask) -> tuple[str, int, str | None]:
    return (task.status, task.attempts, task.claimed_by)


def test_submit_makes_a_pending_task(manager: TaskManager):
    task = manager.get(manager.submit({"order_id": "123"}, idempotency_key="order-123-process", max_attempts=3))
    assert brief(task) == (TaskStatus.PENDING, 0, None)
    assert (task.payload, task.idempotency_key, task.max_attempts) == ({"order_id": "123"}, "order-123-process", 3)
    assert (task.name, task.claimed_at, task.claimed_until, task.completed_at) == ("default", None, None, None)
    assert (task.result, task.error, task.cancel_requested) == (None, None, False)


def test_a_new_key_is_a_new_task_and_a_known_one_is_not(manager: TaskManager):
    first = manager.submit(1, idempotency_key="a")
    assert manager.submit(1, idempotency_key="b") != first
    assert manager.submit(2, idempotency_key="a") == first
    assert len(manager.list()) == 2


def test_pending_to_claimed_by_claim(manager: TaskManager):
    task_id = manager.submit(1)
    claimed = manager.claim(task_id, "worker-a")
    assert brief(claimed) == (TaskStatus.CLAIMED, 1, "worker-a")
    assert claimed == manager.get(task_id)
    assert claimed.claimed_at is not None
    assert claimed.claimed_until is not None
    assert (claimed.claimed_until - claimed.claimed_at).total_seconds() == pytest.approx(60, abs=1)


def test_claimed_to_completed_by_complete(manager: TaskManager):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    manager.complete(task_id, {"ok": True}, worker_id="worker-a")
    task = manager.get(task_id)
    assert brief(task) == (TaskStatus.COMPLETED, 1, None)
    assert (task.result, task.error) == ({"ok": True}, None)
    assert task.completed_at is not None


def test_claimed_to_failed_by_fail_when_the_attempts_are_used_up(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=1)
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "no luck", worker_id="worker-a")
    task = manager.get(task_id)
    assert brief(task) == (TaskStatus.FAILED, 1, None)
    assert task.error == "no luck"
    assert task.completed_at is not None


def test_claimed_to_pending_by_fail_while_attempts_are_left(manager: TaskManager):
    """And it can be claimed again at once, by whomever."""
    task_id = manager.submit(1, max_attempts=3)
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "no luck", worker_id="worker-a")
    task = manager.get(task_id)
    assert brief(task) == (TaskStatus.PENDING, 1, None)
    assert (task.error, task.completed_at) == ("no luck", None)
    assert brief(manager.claim(task_id, "worker-b")) == (TaskStatus.CLAIMED, 2, "worker-b")
    manager.complete(task_id, "done", worker_id="worker-b")
    assert brief(manager.get(task_id)) == (TaskStatus.COMPLETED, 2, None)


def test_claimed_to_failed_by_a_failure_that_is_not_retryable(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=3)
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "broken", worker_id="worker-a", retryable=False)
    assert brief(manager.get(task_id)) == (TaskStatus.FAILED, 1, None)


def test_claimed_to_pending_by_retry(manager: TaskManager):
    """The attempt counts: it was begun."""
    task_id = manager.submit(1, max_attempts=2)
    manager.claim(task_id, "stuck")
    assert brief(manager.retry(task_id)) == (TaskStatus.PENDING, 1, None)
    assert brief(manager.claim(task_id, "worker-b")) == (TaskStatus.CLAIMED, 2, "worker-b")


def test_failed_to_pending_by_retry_while_attempts_are_left(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=3)
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "broken", worker_id="worker-a", retryable=False)
    task = manager.retry(task_id)
    assert brief(task) == (TaskStatus.PENDING, 1, None)
    assert (task.error, task.completed_at) == ("broken", None), "what happened stays known"
    assert manager.claim(task_id, "worker-a").attempts == 2


def test_retry_is_refused_when_no_attempts_are_left(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=2)
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "one", worker_id="worker-a")
    manager.claim(task_id, "worker-a")
    before = manager.get(task_id)
    with pytest.raises(MaxAttemptsReached):  # claimed, on its last attempt
        manager.retry(task_id)
    assert manager.get(task_id) == before
    manager.fail(task_id, "two", worker_id="worker-a")
    before = manager.get(task_id)
    with pytest.raises(MaxAttemptsReached) as caught:  # failed
        manager.retry(task_id)
    assert caught.value.task_id == task_id
    assert manager.get(task_id) == before
    assert before.status == TaskStatus.FAILED


def test_retry_of_a_pending_task_changes_nothing(manager: TaskManager):
    fresh = manager.submit(1)
    failed_once = manager.submit(2)
    manager.claim(failed_once, "worker-a")
    manager.fail(failed_once, "no luck", worker_id="worker-a")
    later = manager.submit(3, delay_seconds=3600)
    for task_id in (fresh, failed_once, later):
        before = manager.get(task_id)
        assert manager.retry(task_id) == before
        assert manager.get(task_id) == before


def test_retry_of_what_is_over_is_refused(manager: TaskManager):
    done, stopped = manager.submit(1), manager.submit(2)
    manager.claim(done, "worker-a")
    manager.complete(done, worker_id="worker-a")
    run_sync(manager.engine.cancel(stopped))
    with pytest.raises(TaskCompleted):
        manager.retry(done)
    with pytest.raises(TaskCancelled):
        manager.retry(stopped)


def test_without_a_limit_it_can_fail_for_ever(manager: TaskManager):
    task_id = manager.submit(1)
    assert manager.get(task_id).max_attempts == 0
    for attempt in range(1, 21):
        assert manager.claim(task_id, "worker-a").attempts == attempt
        manager.fail(task_id, f"failure {attempt}", worker_id="worker-a")
        assert manager.get(task_id).status == TaskStatus.PENDING
    manager.claim(task_id, "worker-a")
    assert manager.retry(task_id).attempts == 21


def test_three_attempts_are_three(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=3)
    for status in (TaskStatus.PENDING, TaskStatus.PENDING, TaskStatus.FAILED):
        manager.claim(task_id, "worker-a")
        manager.fail(task_id, "no luck", worker_id="worker-a")
        assert manager.get(task_id).status == status
    assert manager.get(task_id).attempts == 3


def test_a_release_gives_the_attempt_back(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=1)
    manager.claim(task_id, "worker-a")
    manager.release(task_id, worker_id="worker-a")
    assert brief(manager.get(task_id)) == (TaskStatus.PENDING, 0, None)
    assert manager.claim(task_id, "worker-b").attempts == 1


@pytest.mark.parametrize("end", ["fail", "release", "retry"])
def test_what_was_asked_to_stop_and_does_not_complete_is_cancelled(manager: TaskManager, end: str):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    run_sync(manager.engine.cancel(task_id))
    assert manager.extend(task_id, worker_id="worker-a").cancel_requested
    if end == "fail":
        manager.fail(task_id, "stopped", worker_id="worker-a")
    elif end == "release":
        manager.release(task_id, worker_id="worker-a")
    else:
        manager.retry(task_id)
    task = manager.get(task_id)
    assert brief(task) == (TaskStatus.CANCELLED, 1, None)
    assert task.completed_at is not None


def test_finished_tasks_can_be_deleted_and_others_not(manager: TaskManager):
    done = manager.submit(1, idempotency_key="key")
    with pytest.raises(TaskNotTerminal):
        manager.delete(done)
    manager.claim(done, "worker-a")
    with pytest.raises(TaskNotTerminal):
        manager.delete(done)
    manager.complete(done, worker_id="worker-a")
    assert manager.get_by_idempotency_key("key").id == done, "the key answers as long as the task is there"
    manager.delete(done)
    assert manager.list() == []
    assert manager.submit(1, idempotency_key="key") != done


def test_a_failed_task_can_be_deleted_and_one_that_waits_for_its_retry_not(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=2)
    for _ in range(2):
        manager.claim(task_id, "worker-a")
        manager.fail(task_id, "no luck", worker_id="worker-a")
        if manager.get(task_id).status == TaskStatus.PENDING:
            with pytest.raises(TaskNotTerminal):
                manager.delete(task_id)
    manager.delete(task_id)


def test_the_row_says_it_all_to_whoever_settles_it(manager: TaskManager):
    """Back to pending at once, whatever retry policy the other side has."""
    task_id = manager.submit(1)
    row = run_sync(manager.engine.get_or_raise(task_id))
    assert row.retry_policy == {"base": 0.0, "multiplier": 1.0, "cap": 0.0, "jitter": 0.0}
    assert row.max_retries == -1


def test_attempts_that_did_not_complete_are_in_the_history(manager: TaskManager):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "no luck", worker_id="worker-a")
    manager.claim(task_id, "worker-b")
    manager.retry(task_id)
    history = run_sync(manager.engine.get_or_raise(task_id)).history
    assert [(entry["attempt"], entry["worker"]) for entry in history] == [(1, "worker-a"), (2, "worker-b")]
    assert history[0]["error"] == "no luck"
    assert "taken back" in history[1]["error"]
