"""Claims over time: the next one, leases that run out and are extended, and what normal workers make of them."""

import threading
from uuid import UUID

import pytest

from tasklib import (
    ManagedTask,
    TaskAlreadyClaimed,
    TaskFailed,
    TaskManager,
    TaskNotClaimed,
    TaskStatus,
    WrongWorker,
)
from tasklib.api.sync import run_sync
from tests.waiting import eventually


def ids(tasks: list[ManagedTask]) -> list[UUID]:
    return [task.id for task in tasks]


def test_the_next_ones_come_in_order(manager: TaskManager):
    low = manager.submit("low", priority=-1)
    first, second = manager.submit("first"), manager.submit("second")
    high = manager.submit("high", priority=5)
    later = manager.submit("later", delay_seconds=3600)
    assert ids(manager.claim_next("worker-a")) == [high]
    assert ids(manager.claim_next("worker-b", limit=2)) == [first, second]
    assert ids(manager.claim_next("worker-a", limit=10)) == [low]
    assert manager.claim_next("worker-a") == []
    assert manager.get(later).status == TaskStatus.PENDING


def test_the_next_one_is_whole_and_can_be_settled(manager: TaskManager):
    manager.submit({"n": 1}, idempotency_key="key", max_attempts=4)
    (task,) = manager.claim_next("worker-a", ttl=5)
    assert task == manager.get(task.id)
    assert (task.payload, task.idempotency_key, task.max_attempts, task.attempts) == ({"n": 1}, "key", 4, 1)
    assert (task.status, task.claimed_by) == (TaskStatus.CLAIMED, "worker-a")
    assert task.claimed_at is not None
    assert task.claimed_until is not None
    assert (task.claimed_until - task.claimed_at).total_seconds() == pytest.approx(5, abs=0.01)
    manager.complete(task.id, "done", worker_id="worker-a")
    assert manager.get(task.id).result == "done"


def test_only_tasks_of_the_names_are_claimed(manager: TaskManager):
    """None is touched that was meant for others: without names, it is those that were submitted without one."""
    plain, mail, crawl = manager.submit(1), manager.submit(2, name="mail"), manager.submit(3, name="crawl")
    assert ids(manager.claim_next("worker-a", limit=10)) == [plain]
    assert manager.claim_next("worker-a", names=[]) == []
    assert ids(manager.claim_next("worker-a", names=["crawl", "mail"], limit=10)) == [mail, crawl]


def test_claiming_next_again_gives_other_tasks(manager: TaskManager):
    for number in range(3):
        manager.submit(number)
    assert [manager.claim_next("worker-a")[0].payload for _ in range(3)] == [0, 1, 2]


def test_it_waits_until_there_is_something(manager: TaskManager):
    found: list[ManagedTask] = []
    waiting = threading.Thread(target=lambda: found.extend(manager.claim_next("worker-a", wait_seconds=60)))
    waiting.start()
    task_id = manager.submit(1)
    waiting.join(20)
    assert ids(found) == [task_id]


def test_it_waits_no_longer_than_it_is_told(manager: TaskManager):
    manager.submit(1, name="other")
    assert manager.claim_next("worker-a", wait_seconds=0.05) == []


def test_what_becomes_due_while_it_waits_is_claimed(manager: TaskManager):
    task_id = manager.submit(1, delay_seconds=0.2)
    assert ids(manager.claim_next("worker-a", wait_seconds=60)) == [task_id]


# -- leases -----------------------------------------------------------------------------------------------------------


def test_a_claim_that_ran_out_is_taken_over_by_the_next_claim(manager: TaskManager, other: TaskManager):
    """The attempt it was for has failed, and says why."""
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    manager.engine.advance(59)
    with pytest.raises(TaskAlreadyClaimed):
        other.claim(task_id, "worker-b")
    manager.engine.advance(2)
    taken = other.claim(task_id, "worker-b")
    assert (taken.claimed_by, taken.attempts) == ("worker-b", 2)
    assert "worker-a vanished" in (taken.error or "")
    (entry,) = run_sync(manager.engine.get_or_raise(task_id)).history
    assert (entry["attempt"], entry["worker"], entry["lost"]) == (1, "worker-a", True)
    with pytest.raises(WrongWorker):
        manager.complete(task_id, 1, worker_id="worker-a")
    other.complete(task_id, 2, worker_id="worker-b")
    assert manager.get(task_id).result == 2


def test_a_last_attempt_that_ran_out_is_a_failure(manager: TaskManager, other: TaskManager):
    task_id = manager.submit(1, max_attempts=1)
    manager.claim(task_id, "worker-a")
    manager.engine.advance(61)
    with pytest.raises(TaskFailed):
        other.claim(task_id, "worker-b")
    task = manager.get(task_id)
    assert (task.status, task.attempts) == (TaskStatus.FAILED, 1)
    assert "worker-a vanished" in (task.error or "")


def test_the_next_one_may_be_one_that_ran_out(manager: TaskManager, other: TaskManager):
    """Where nobody but such workers is there, nobody else would notice."""
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    assert other.claim_next("worker-b") == []
    manager.engine.advance(61)
    (taken,) = other.claim_next("worker-b")
    assert (taken.id, taken.claimed_by, taken.attempts) == (task_id, "worker-b", 2)


def test_what_ran_out_is_noticed_although_there_is_always_something_to_do(manager: TaskManager, monkeypatch):
    monkeypatch.setattr(type(manager.engine.config), "recovery_seconds", 0.0)
    lost = manager.submit("lost", priority=1)
    for number in range(3):
        manager.submit(number)
    manager.claim(lost, "worker-a")
    assert manager.claim_next("worker-b")[0].payload == 0
    manager.engine.advance(61)
    assert manager.claim_next("worker-b")[0].payload == "lost"


def test_a_claim_that_ran_out_and_was_not_taken_is_still_its_holders(manager: TaskManager):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    manager.engine.advance(3600)
    manager.complete(task_id, "late", worker_id="worker-a")
    assert (manager.get(task_id).result, manager.get(task_id).attempts) == ("late", 1)


def test_its_holder_may_claim_it_again_after_it_ran_out(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=1)
    manager.claim(task_id, "worker-a")
    manager.engine.advance(3600)
    assert manager.claim(task_id, "worker-a").attempts == 1


def test_an_extended_claim_holds(manager: TaskManager, other: TaskManager):
    task_id = manager.submit(1)
    claimed = manager.claim(task_id, "worker-a")
    for _ in range(3):
        manager.engine.advance(50)
        extended = manager.extend(task_id, worker_id="worker-a")
        assert (extended.version, extended.attempts) == (claimed.version, 1)
        with pytest.raises(TaskAlreadyClaimed):
            other.claim(task_id, "worker-b")
    assert other.extend(task_id, worker_id="worker-a", version=claimed.version, ttl=1000) == manager.get(task_id)
    manager.engine.advance(900)
    with pytest.raises(TaskAlreadyClaimed):
        other.claim(task_id, "worker-b")
    manager.complete(task_id, worker_id="worker-a")


def test_each_claim_may_have_a_time_of_its_own(manager: TaskManager, other: TaskManager):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a", ttl=1000)
    manager.engine.advance(900)
    with pytest.raises(TaskAlreadyClaimed):
        other.claim(task_id, "worker-b")


def test_unless_told_a_claim_lasts_as_long_as_the_queues_lease(memory_url: str):
    with TaskManager(memory_url) as manager:
        task = manager.claim(manager.submit(1), "worker-a")
        assert task.claimed_at is not None
        assert task.claimed_until is not None
        assert (task.claimed_until - task.claimed_at).total_seconds() == pytest.approx(600, abs=0.01)


def test_the_janitor_of_other_workers_leaves_claims_alone_until_they_run_out(manager: TaskManager):
    """They were never registered, so that only their lease counts."""
    task_id = manager.submit(1)
    before = manager.claim(task_id, "worker-a")
    manager.engine.advance(45)
    assert manager.engine.config.dead_after_seconds < 45
    assert run_sync(manager.engine.expire()) == 0
    assert manager.get(task_id) == before
    manager.engine.advance(16)
    assert run_sync(manager.engine.expire()) == 1
    with pytest.raises(TaskNotClaimed):
        manager.complete(task_id, worker_id="worker-a")
    assert manager.get(task_id).status == TaskStatus.PENDING


def test_a_manager_forgets_the_oldest_of_very_many_claims(manager: TaskManager, monkeypatch):
    monkeypatch.setattr("tasklib.api.manager._REMEMBERED", 2)
    for number in range(3):
        manager.submit(number)
    first, second, _ = manager.claim_next("worker-a", limit=3)
    assert len(manager._async._versions) == 2
    manager.complete(first.id, worker_id="worker-a")  # by the name alone
    manager.complete(second.id, worker_id="worker-a")
    assert len(manager._async._versions) == 1


def test_one_of_twenty_workers_wins(manager: TaskManager):
    task_id = manager.submit(1)
    start, won, lost = threading.Barrier(20), [], []

    def work(worker: str) -> None:
        start.wait()
        try:
            manager.claim(task_id, worker)
            won.append(worker)
        except TaskAlreadyClaimed:
            lost.append(worker)

    threads = [threading.Thread(target=work, args=(f"worker-{number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(won), len(lost)) == (1, 19)
    assert (manager.get(task_id).claimed_by, manager.get(task_id).attempts) == (won[0], 1)


def test_workers_that_share_a_backlog_do_each_task_once(manager: TaskManager):
    for number in range(40):
        manager.submit(number)
    done: list[int] = []

    def work(worker: str) -> None:
        while tasks := manager.claim_next(worker, limit=3):
            for task in tasks:
                done.append(task.payload)
                manager.complete(task.id, worker_id=worker)

    threads = [threading.Thread(target=work, args=(f"worker-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    eventually(lambda: len(done) >= 40)
    assert sorted(done) == list(range(40))
    assert {task.attempts for task in manager.list(TaskStatus.COMPLETED)} == {1}
