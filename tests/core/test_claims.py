"""Claims made by hand: who may take a task, who may settle it, and what the others are told."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasklib.core import claims, decide
from tasklib.core.claims import ClaimAttempt
from tasklib.core.errors import (
    InvalidOption,
    InvalidWorkerId,
    TaskAlreadyClaimed,
    TaskCancelled,
    TaskCompleted,
    TaskConflict,
    TaskFailed,
    TaskNotClaimed,
    WrongWorker,
)
from tasklib.core.ids import uuid7
from tasklib.core.outcome import Completed, Failed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Task

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ID = uuid7(1, 2, 3)


def task(state: str, *, final: bool = False, **fields: Any) -> Task:
    given = {"id": ID, "name": "work", "scheduled_at": NOON, "created_at": NOON, "updated_at": NOON, "version": 7}
    return Task(**{**given, "state": state, "completed_at": NOON if final else None, **fields})


RUNNING = task("running", worker_id="anna", locked_until=NOON, started_at=NOON, retry_count=1)
OVER = [
    (task("completed", final=True), TaskCompleted),
    (task("failed", final=True), TaskFailed),
    (task("cancelled", final=True), TaskCancelled),
    (task("on hold"), TaskConflict),
]


@pytest.mark.parametrize("found", [task("pending"), task("failed")])
def test_what_waits_may_be_taken_and_not_settled(found: Task):
    assert claims.attempt_of(found, "anna") is ClaimAttempt.NEW
    with pytest.raises(TaskNotClaimed):
        claims.holding(found, "anna", None)
    with pytest.raises(TaskNotClaimed):
        claims.holding(found, "anna", found.version)


def test_what_runs_is_its_workers():
    assert claims.attempt_of(RUNNING, "anna") is ClaimAttempt.EXTEND
    assert claims.attempt_of(RUNNING, "bert") is ClaimAttempt.TAKEOVER
    for version in (None, 7):
        claim = claims.holding(RUNNING, "anna", version)
        assert (claim.id, claim.version, claim.worker_id, claim.attempt) == (ID, 7, "anna", 2)


@pytest.mark.parametrize(("worker", "version"), [("bert", None), ("bert", 7), ("anna", 6), ("anna", 8), ("Anna", None)])
def test_others_and_earlier_claims_are_refused(worker: str, version: int | None):
    with pytest.raises(WrongWorker) as caught:
        claims.holding(RUNNING, worker, version)
    error = caught.value
    assert (error.task_id, error.state, error.version, error.worker_id) == (ID, "running", 7, "anna")


@pytest.mark.parametrize(("found", "error"), OVER, ids=lambda value: getattr(value, "state", None))
def test_what_is_over_is_nobodys(found: Task, error: type[TaskConflict]):
    with pytest.raises(error) as caught:
        claims.attempt_of(found, "anna")
    assert type(caught.value) is error
    with pytest.raises(error) as caught:
        claims.holding(found, "anna", None)
    assert (type(caught.value), caught.value.state) == (error, found.state)


def test_only_a_lease_that_ran_out_is_taken_over():
    with pytest.raises(TaskAlreadyClaimed) as caught:
        claims.take_over(RUNNING, NOON - timedelta(seconds=1), "gone")
    assert (caught.value.worker_id, caught.value.version) == ("anna", 7)
    assert claims.take_over(RUNNING, NOON, "gone") == decide.expire(RUNNING, "gone")
    unleased = task("running", worker_id="anna", locked_until=None)
    assert claims.take_over(unleased, NOON, "gone") == decide.expire(unleased, "gone")


def test_the_claim_of_a_running_task_is_settled_like_any_other():
    kept = task("running", worker_id="anna", retry_policy={"base": 100.0, "multiplier": 1.0}, kwargs={"a": "ä"})
    claim = claims.claim_of(kept)
    assert (claim.kwargs, claim.started_at) == ('{"a": "\\u00e4"}', NOON)
    assert decide.settle(claim, Failed("boom"), RetryPolicy()).due_in == 100
    assert decide.settle(claim, Completed('{"value":1}'), RetryPolicy())[:3] == (ID, 7, "anna")


@pytest.mark.parametrize("value", ["", None, 7, b"anna", "x" * 256, "a\0b", "\ud800"], ids=repr)
def test_bad_names(value: object):
    with pytest.raises(InvalidWorkerId) as caught:
        claims.check_worker_id(value)
    assert caught.value.field == "worker_id"


@pytest.mark.parametrize("value", ["w", "x" * 255, "wörker", " "])
def test_good_names(value: str):
    assert claims.check_worker_id(value) == value


@pytest.mark.parametrize("value", [0, -1, 0.0001, 1e10, float("nan"), float("inf"), True, "7", None])
def test_bad_leases(value: object):
    with pytest.raises(InvalidOption):
        claims.check_lease(value)


def test_why_a_task_could_not_be_taken():
    assert "not due before 2026-01-01T12:00:00+00:00" in str(
        claims.held_back(task("pending"), NOON - timedelta(seconds=1))
    )
    assert "pause or a limit of 'work'" in str(claims.held_back(task("pending"), NOON))
