"""Who may do what to a claim: each row of the table of conflicts, and each of the ten errors where it belongs."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from tasklib import (
    InvalidTask,
    InvalidWorkerId,
    StoreClosed,
    TaskAlreadyClaimed,
    TaskCancelled,
    TaskCompleted,
    TaskConflict,
    TaskFailed,
    TaskManager,
    TaskNotClaimed,
    TaskNotDue,
    TaskNotFound,
    TaskStatus,
    WrongWorker,
)
from tasklib.api.sync import run_sync
from tasklib.stores.values import ControlChange

SETTLES: dict[str, Callable[..., Any]] = {
    "complete": lambda manager, task_id, **claim: manager.complete(task_id, 1, **claim),
    "fail": lambda manager, task_id, **claim: manager.fail(task_id, "no luck", **claim),
    "extend": lambda manager, task_id, **claim: manager.extend(task_id, **claim),
    "release": lambda manager, task_id, **claim: manager.release(task_id, **claim),
}
each_settle = pytest.mark.parametrize("settle", SETTLES.values(), ids=SETTLES)


def over(manager: TaskManager, status: TaskStatus) -> UUID:
    task_id = manager.submit(1, max_attempts=1)
    if status == TaskStatus.CANCELLED:
        run_sync(manager.engine.cancel(task_id))
        return task_id
    manager.claim(task_id, "worker-a")
    if status == TaskStatus.COMPLETED:
        manager.complete(task_id, 1, worker_id="worker-a")
    else:
        manager.fail(task_id, "no luck", worker_id="worker-a")
    return task_id


ENDS = [
    (TaskStatus.COMPLETED, TaskCompleted),
    (TaskStatus.FAILED, TaskFailed),
    (TaskStatus.CANCELLED, TaskCancelled),
]


# -- claims -----------------------------------------------------------------------------------------------------------


def test_a_task_of_another_worker_is_already_claimed(manager: TaskManager, other: TaskManager):
    task_id = manager.submit(1)
    claimed = manager.claim(task_id, "worker-a")
    for each in (manager, other):
        with pytest.raises(TaskAlreadyClaimed) as caught:
            each.claim(task_id, "worker-b")
        error = caught.value
        assert (error.task_id, error.state, error.worker_id, error.version) == (task_id, "running", "worker-a", 1)
    assert manager.get(task_id) == claimed


def test_claiming_again_is_the_same_claim(manager: TaskManager, other: TaskManager):
    """No attempt is counted, nothing but the lease changes."""
    task_id = manager.submit(1, max_attempts=1)
    first = manager.claim(task_id, "worker-a")
    manager.engine.advance(30)
    for each in (manager, other):
        again = each.claim(task_id, "worker-a")
        assert (again.attempts, again.version, again.claimed_at) == (1, first.version, first.claimed_at)
        assert again.claimed_until is not None
        assert first.claimed_until is not None
        assert 29 < (again.claimed_until - first.claimed_until).total_seconds() < 40, "the lease begins anew"
    manager.complete(task_id, "once", worker_id="worker-a")
    assert manager.get(task_id).attempts == 1


@pytest.mark.parametrize(("status", "error"), ENDS)
def test_what_is_over_cannot_be_claimed(manager: TaskManager, status: TaskStatus, error: type[TaskConflict]):
    task_id = over(manager, status)
    before = manager.get(task_id)
    assert before.status == status
    for worker in ("worker-a", "worker-b"):
        with pytest.raises(error):
            manager.claim(task_id, worker)
    assert manager.get(task_id) == before


def test_what_is_not_due_cannot_be_claimed(manager: TaskManager):
    task_id = manager.submit(1, delay_seconds=100)
    with pytest.raises(TaskNotDue, match="not due before"):
        manager.claim(task_id, "worker-a")
    manager.engine.advance(101)
    assert manager.claim(task_id, "worker-a").attempts == 1


@pytest.mark.parametrize("control", [{"paused": True}, {"concurrency": 0}, {"operator_rate": 0.001}], ids=str)
@pytest.mark.parametrize("name", ["default", ""])
def test_what_is_paused_or_at_its_limit_cannot_be_claimed(manager: TaskManager, name: str, control: dict[str, Any]):
    first, second = manager.submit(1), manager.submit(2)
    run_sync(manager.engine.control(ControlChange(name=name, **control)))
    if "operator_rate" in control:
        manager.claim(first, "worker-a")
    before = manager.get(second)
    with pytest.raises(TaskNotDue, match="pause or a limit"):
        manager.claim(second, "worker-a")
    assert manager.claim_next("worker-a") == []
    assert manager.get(second) == before
    run_sync(manager.engine.control(ControlChange(name=name, paused=False, concurrency=None, operator_rate=None)))
    assert manager.claim(second, "worker-a").attempts == 1


# -- settles ----------------------------------------------------------------------------------------------------------


@each_settle
def test_only_the_worker_that_has_it(manager: TaskManager, other: TaskManager, settle: Callable[..., Any]):
    task_id = manager.submit(1)
    claimed = manager.claim(task_id, "worker-a")
    for each in (manager, other):
        for version in (None, claimed.version):
            with pytest.raises(WrongWorker) as caught:
                settle(each, task_id, worker_id="worker-b", version=version)
            assert (caught.value.worker_id, caught.value.version) == ("worker-a", claimed.version)
    assert manager.get(task_id) == claimed


@each_settle
def test_a_task_must_be_claimed_first(manager: TaskManager, settle: Callable[..., Any]):
    fresh, tried = manager.submit(1), manager.submit(2)
    manager.claim(tried, "worker-a")
    manager.fail(tried, "no luck", worker_id="worker-a")
    for task_id in (fresh, tried):
        before = manager.get(task_id)
        with pytest.raises(TaskNotClaimed):
            settle(manager, task_id, worker_id="worker-a")
        assert manager.get(task_id) == before


@each_settle
@pytest.mark.parametrize(("status", "error"), ENDS)
def test_what_is_over_stays_as_it_is(
    manager: TaskManager, settle: Callable[..., Any], status: TaskStatus, error: type[TaskConflict]
):
    """Completing twice, for one."""
    task_id = over(manager, status)
    before = manager.get(task_id)
    with pytest.raises(error):
        settle(manager, task_id, worker_id="worker-a")
    assert manager.get(task_id) == before


@each_settle
def test_another_manager_may_settle_by_the_workers_name(
    manager: TaskManager, other: TaskManager, settle: Callable[..., Any]
):
    """As a worker that was restarted: it knows its name and no version."""
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    settle(other, task_id, worker_id="worker-a")


@each_settle
def test_a_claim_of_before_settles_nothing(manager: TaskManager, other: TaskManager, settle: Callable[..., Any]):
    """The same worker's name claimed it anew: the version tells the two claims apart."""
    task_id = manager.submit(1)
    old = manager.claim(task_id, "worker-a")
    other.retry(task_id)
    new = other.claim(task_id, "worker-a")
    with pytest.raises(WrongWorker):  # the manager remembers
        settle(manager, task_id, worker_id="worker-a")
    with pytest.raises(WrongWorker):  # it is said
        settle(other, task_id, worker_id="worker-a", version=old.version)
    assert manager.get(task_id) == new
    settle(other, task_id, worker_id="worker-a", version=new.version)


# -- errors -----------------------------------------------------------------------------------------------------------


def test_a_task_that_is_not_there(manager: TaskManager):
    nowhere = uuid4()
    calls: list[Callable[[], Any]] = [
        lambda: manager.get(nowhere),
        lambda: manager.get(str(nowhere)),
        lambda: manager.claim(nowhere, "worker-a"),
        lambda: manager.retry(nowhere),
        lambda: manager.delete(nowhere),
        *(lambda settle=settle: settle(manager, nowhere, worker_id="worker-a") for settle in SETTLES.values()),
    ]
    for call in calls:
        with pytest.raises(TaskNotFound) as caught:
            call()
        assert str(caught.value.task_id) == str(nowhere)


def test_a_key_that_nobody_submitted(manager: TaskManager):
    with pytest.raises(TaskNotFound, match="order-123") as caught:
        manager.get_by_idempotency_key("order-123")
    assert caught.value.key == "order-123"


def test_a_task_without_a_payload(manager: TaskManager):
    with pytest.raises(InvalidTask) as caught:
        manager.submit(None)  # type: ignore[arg-type]
    assert caught.value.field == "payload"
    assert manager.list() == []


@pytest.mark.parametrize("worker_id", ["", None, 7, "x" * 256, "nul\0", "\ud800"], ids=repr)
def test_a_worker_without_a_good_name(manager: TaskManager, worker_id: Any):
    task_id = manager.submit(1)
    before = manager.get(task_id)
    calls: list[Callable[[], Any]] = [
        lambda: manager.claim(task_id, worker_id),
        lambda: manager.claim_next(worker_id),
        *(lambda settle=settle: settle(manager, task_id, worker_id=worker_id) for settle in SETTLES.values()),
        *(
            lambda settle=settle: settle(manager, task_id, worker_id=worker_id, version=1)
            for settle in SETTLES.values()
        ),
    ]
    for call in calls:
        with pytest.raises(InvalidWorkerId) as caught:
            call()
        assert caught.value.field == "worker_id"
    assert manager.get(task_id) == before


def test_a_manager_that_was_closed(backend_url: str):
    manager = TaskManager(backend_url)
    task_id = manager.submit(1, idempotency_key="key")
    manager.close()
    manager.close()
    calls: list[Callable[[], Any]] = [
        lambda: manager.submit(1),
        lambda: manager.claim(task_id, "worker-a"),
        lambda: manager.claim_next("worker-a"),
        lambda: manager.retry(task_id),
        lambda: manager.get(task_id),
        lambda: manager.get_by_idempotency_key("key"),
        lambda: manager.list(),
        lambda: manager.delete(task_id),
        *(lambda settle=settle: settle(manager, task_id, worker_id="worker-a") for settle in SETTLES.values()),
    ]
    for call in calls:
        with pytest.raises(StoreClosed):
            call()


def test_a_manager_that_was_given_its_queue_closes_only_itself(manager: TaskManager):
    closed = TaskManager(manager.engine)
    task_id = closed.submit(1)
    closed.close()
    with pytest.raises(StoreClosed):
        closed.get(task_id)
    assert manager.get(task_id).payload == 1
