"""Task + fact -> Change, case by case."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tasklib.core import decide
from tasklib.core.codec import ERROR_LIMIT
from tasklib.core.decide import LATENCY_BOUNDS_MS, UNTIMED, Change, WriteResult, bucket_of, explain_miss
from tasklib.core.errors import (
    MaxAttemptsReached,
    TaskCancelled,
    TaskCompleted,
    TaskConflict,
    TaskNotFailed,
    TaskNotTerminal,
)
from tasklib.core.ids import uuid7
from tasklib.core.outcome import Cancelled, Completed, Failed, Released, Snoozed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim, Task, TaskState

NOON = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
ID = uuid7(1, 2, 3)
POLICY = RetryPolicy()


def claim(retry_count: int = 0, max_retries: int = 3, retry_policy: RetryPolicy | None = None) -> Claim:
    text = retry_policy.to_json() if retry_policy else None
    return Claim(ID, "work", 7, "anna", "{}", retry_count, max_retries, None, text, NOON, "{}", None, False)


def task(state: str, *, final: bool = False, **fields) -> Task:
    return Task(
        **{
            "id": ID,
            "name": "work",
            "state": state,
            "scheduled_at": NOON,
            "created_at": NOON,
            "updated_at": NOON,
            "completed_at": NOON if final else None,
            "version": 7,
            **fields,
        }
    )


def running(**fields) -> Task:
    return task("running", **{"worker_id": "anna", "locked_until": NOON, "started_at": NOON, **fields})


def guard(change: Change) -> tuple[object, ...]:
    return change[:4]


def test_success():
    change = decide.settle(claim(2), Completed('{"value":1}', run_ms=30), POLICY)
    assert change == Change(
        id=ID,
        version=7,
        worker_id="anna",
        locked_until=None,
        state=TaskState.COMPLETED,
        retry_count=2,
        terminal=True,
        result='{"value":1}',
        run_ms=30,
        bucket=bucket_of(30),
    )


def test_success_stands_although_somebody_asked_it_to_stop():
    assert decide.settle(claim(), Completed('{"value":1}'), POLICY).if_asked is None


@pytest.mark.parametrize(("retry_count", "delay"), [(0, 5), (1, 10), (2, 20)])
def test_failure_with_attempts_left(retry_count: int, delay: float):
    change = decide.settle(
        claim(retry_count), Failed("boom", run_ms=30, cause=json.JSONDecodeError("x", "", 0)), POLICY
    )
    assert guard(change) == (ID, 7, "anna", None)
    assert (change.state, change.terminal, change.retry_count) == (TaskState.FAILED, False, retry_count + 1)
    assert (change.due_in, change.error, change.result, change.leaves) == (delay, "boom", None, None)
    assert (change.run_ms, change.bucket) == (30, bucket_of(30))
    assert json.loads(change.entry or "") == {
        "attempt": retry_count + 1,
        "worker": "anna",
        "started": "2026-01-01T12:00:00.123456Z",
        "error": "boom",
        "type": "json.decoder.JSONDecodeError",
        "run_ms": 30,
    }


def test_failure_with_none_left():
    change = decide.settle(claim(3), Failed("boom"), POLICY)
    assert (change.state, change.terminal, change.retry_count, change.due_in) == (TaskState.FAILED, True, 3, None)
    assert (change.error, json.loads(change.entry or "")["attempt"]) == ("boom", 4)


def test_no_retries_means_one_attempt():
    assert decide.settle(claim(0, max_retries=0), Failed("boom"), POLICY).terminal


def test_unlimited_retries_never_end():
    change = decide.settle(claim(10**6, max_retries=-1), Failed("boom"), POLICY)
    assert (change.terminal, change.retry_count, change.due_in) == (False, 10**6 + 1, POLICY.cap)


def test_a_final_failure_has_no_retry():
    change = decide.settle(claim(0), Failed("boom", final=True, delay=3), POLICY)
    assert (change.terminal, change.retry_count, change.due_in) == (True, 0, None)


def test_the_handlers_delay_goes_before_the_policys():
    assert decide.settle(claim(), Failed("boom", delay=0.5), POLICY).due_in == 0.5
    assert decide.settle(claim(), Failed("boom", delay=0.0), POLICY).due_in == 0.0


def test_the_rows_policy_goes_before_the_workers():
    kept = claim(1, retry_policy=RetryPolicy(base=100, multiplier=3))
    assert decide.settle(kept, Failed("boom"), POLICY).due_in == 300


def test_the_spread_places_the_delay_within_the_jitter():
    delays = [decide.settle(claim(), Failed("boom"), RetryPolicy.QUEUE, spread).due_in for spread in (-1, 0, 1)]
    assert delays == [8, 10, 12]


def test_a_child_process_that_died_makes_a_suspect():
    change = decide.settle(claim(), Failed("killed", lost=True, run_ms=30), POLICY)
    assert json.loads(change.entry or "")["lost"] is True
    assert change.bucket == UNTIMED


def test_released():
    change = decide.settle(claim(2), Released(), POLICY)
    assert change._replace(if_asked=None) == Change(ID, 7, "anna", None, TaskState.PENDING, 2, False)


def test_snoozed():
    change = decide.settle(claim(2), Snoozed(30), POLICY)
    pending = Change(ID, 7, "anna", None, TaskState.PENDING, 2, False, due_in=30)
    assert change._replace(if_asked=None, entry=None) == pending
    entry = json.loads(change.entry or "")
    assert (entry["attempt"], entry["worker"], entry["snoozed"]) == (3, "anna", 30)
    assert "error" not in entry


def test_stopped_as_asked():
    change = decide.settle(claim(1), Cancelled("stopped", run_ms=3), POLICY)
    assert (change.state, change.terminal, change.retry_count) == (TaskState.CANCELLED, True, 2)
    assert (change.error, change.due_in, change.bucket) == ("stopped", None, bucket_of(3))
    assert json.loads(change.entry or "")["attempt"] == 2


@pytest.mark.parametrize(
    "change",
    [
        *(
            decide.settle(claim(1), outcome, POLICY)
            for outcome in (Failed("boom", run_ms=30), Failed("boom", final=True), Released(), Snoozed(5))
        ),
        decide.expire(running(retry_count=1), "the lease ran out"),
        decide.resume(running(retry_count=1), NOON),
    ],
)
def test_whatever_does_not_complete_after_it_was_asked_to_stop_is_cancelled(change: Change):
    stopped = change.if_asked
    assert stopped is not None
    assert guard(stopped) == guard(change)
    assert (stopped.state, stopped.terminal, stopped.retry_count) == (TaskState.CANCELLED, True, 2)
    assert (stopped.due_in, stopped.result, stopped.leaves, stopped.if_asked) == (None, None, None, None)
    assert stopped.error
    assert json.loads(stopped.entry or "")["attempt"] == 2
    assert (stopped.run_ms, stopped.bucket) == (change.run_ms, change.bucket), "which stores may rely on"


def test_an_attempt_that_nobody_measured():
    change = decide.unmeasured(decide.settle(claim(), Failed("boom", run_ms=30), POLICY))
    assert change.if_asked is not None
    assert {(each.run_ms, each.bucket) for each in (change, change.if_asked)} == {(0, UNTIMED)}


def test_errors_are_cut_in_the_row_and_more_in_the_history():
    change = decide.settle(claim(), Failed("x" * 10**6), POLICY)
    assert len(change.error or "") == ERROR_LIMIT
    assert len(json.loads(change.entry or "")["error"]) == decide.HISTORY_ERROR_LIMIT


def test_an_error_with_unstorable_characters_becomes_storable():
    change = decide.settle(claim(), Failed("a\0b\ud800c"), POLICY)
    assert change.error == "a\\x00b\\ud800c"
    assert json.loads(change.entry or "")["error"] == change.error


def test_an_expired_lease_is_a_failed_attempt_due_now():
    change = decide.expire(running(retry_count=1, max_retries=3), "the lease ran out")
    assert guard(change) == (ID, 7, "anna", NOON), "the lease itself is in the guard"
    assert (change.state, change.terminal, change.retry_count, change.due_in) == (TaskState.FAILED, False, 2, 0)
    assert (change.error, change.bucket) == ("the lease ran out", UNTIMED)
    entry = json.loads(change.entry or "")
    assert (entry["attempt"], entry["worker"], entry["lost"]) == (2, "anna", True)


def test_an_expired_last_attempt_is_final():
    change = decide.expire(running(retry_count=3, max_retries=3), "the lease ran out")
    assert (change.state, change.terminal, change.retry_count, change.due_in) == (TaskState.FAILED, True, 3, None)


def test_an_expired_task_that_was_asked_to_stop_is_cancelled():
    change = decide.expire(running(), "the lease ran out").if_asked
    assert change is not None
    assert (change.state, change.terminal, change.retry_count) == (TaskState.CANCELLED, True, 1)
    assert change.locked_until == NOON
    assert json.loads(change.entry or "")["lost"] is True


@pytest.mark.parametrize("found", [task("pending", retry_count=1), task("failed", retry_count=1)])
def test_cancel_of_what_does_not_run(found: Task):
    assert decide.cancel(found) == Change(ID, 7, None, None, TaskState.CANCELLED, 1, True)


def test_cancel_of_what_runs_can_only_ask():
    assert decide.cancel(running()) is None


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (task("completed", final=True), TaskCompleted),
        (task("cancelled", final=True), TaskCancelled),
        (task("failed", final=True), TaskConflict),
        (task("on hold"), TaskConflict),
    ],
)
def test_cancel_of_what_is_over_is_refused(found: Task, error: type[TaskConflict]):
    with pytest.raises(error) as caught:
        decide.cancel(found)
    assert (caught.value.task_id, caught.value.state) == (ID, found.state)


def test_retry_by_hand_of_a_final_failure():
    change = decide.retry_by_hand(task("failed", final=True, retry_count=3))
    assert change == Change(ID, 7, None, None, TaskState.PENDING, 0, False, due_in=0.0, leaves=TaskState.FAILED)


def test_retry_by_hand_of_a_waiting_failure_leaves_no_terminal_state():
    change = decide.retry_by_hand(task("failed", retry_count=2))
    assert change == Change(ID, 7, None, None, TaskState.PENDING, 0, False, due_in=0.0)


@pytest.mark.parametrize(
    "found",
    [task("pending"), running(), task("completed", final=True), task("cancelled", final=True), task("on hold")],
    ids=lambda found: found.state,
)
def test_retry_by_hand_of_anything_else_is_refused(found: Task):
    with pytest.raises(TaskNotFailed) as caught:
        decide.retry_by_hand(found)
    assert (caught.value.task_id, caught.value.state) == (ID, found.state)


LATER = NOON + timedelta(hours=1)


@pytest.mark.parametrize(
    "found", [task("pending", scheduled_at=LATER), task("failed", next_retry_at=LATER, retry_count=2)]
)
def test_run_now_of_what_waits_keeps_its_attempts(found: Task):
    change = decide.run_now(found, NOON)
    assert change is not None
    assert guard(change) == (ID, 7, None, None)
    assert (change.state, change.terminal, change.due_in) == (TaskState.PENDING, False, 0.0)
    assert (change.retry_count, change.leaves, change.entry) == (found.retry_count, None, None)
    assert decide.run_now(found, LATER) is None, "it is due anyway"


@pytest.mark.parametrize(
    "found", [running(), task("completed", final=True), task("failed", final=True), task("on hold")]
)
def test_run_now_of_anything_else_is_refused(found: Task):
    with pytest.raises(TaskConflict, match="can no longer be run now"):
        decide.run_now(found, NOON)


def test_revive_of_a_cancelled_task_leaves_when_it_is_due():
    change = decide.revive(task("cancelled", final=True, retry_count=3, scheduled_at=LATER))
    assert guard(change) == (ID, 7, None, None)
    assert (change.state, change.terminal, change.retry_count) == (TaskState.PENDING, False, 0)
    assert (change.due_in, change.leaves, change.entry) == (None, TaskState.CANCELLED, None)


@pytest.mark.parametrize("found", [running(), task("pending"), task("failed", final=True), task("on hold")])
def test_revive_of_anything_else_is_refused(found: Task):
    with pytest.raises(TaskConflict, match="only a cancelled task can be revived"):
        decide.revive(found)


def test_resume_of_a_final_failure_keeps_its_attempts():
    change = decide.resume(task("failed", final=True, retry_count=1, max_retries=3), NOON)
    assert change == Change(ID, 7, None, None, TaskState.PENDING, 2, False, due_in=0.0, leaves=TaskState.FAILED)


def test_resume_of_a_failure_that_waits_for_later():
    later = NOON + timedelta(seconds=1)
    change = decide.resume(task("failed", retry_count=2, next_retry_at=later), NOON)
    assert change == Change(ID, 7, None, None, TaskState.PENDING, 2, False, due_in=0.0)


def test_resume_of_what_runs_takes_it_from_its_worker_and_counts_the_attempt():
    change = decide.resume(running(retry_count=1, max_retries=3), NOON)
    assert change is not None
    assert guard(change) == (ID, 7, "anna", None)
    assert (change.state, change.retry_count, change.terminal, change.due_in) == (TaskState.PENDING, 2, False, 0.0)
    assert (change.error, change.leaves) == (None, None)
    entry = json.loads(change.entry or "")
    assert (entry["attempt"], entry["worker"]) == (2, "anna")
    assert "lost" not in entry


def test_resume_of_what_was_asked_to_stop_stops_it():
    change = decide.resume(running(cancel_requested_at=NOON), NOON)
    assert change is not None
    assert (change.state, change.terminal, change.retry_count, change.bucket) == (TaskState.CANCELLED, True, 1, UNTIMED)


@pytest.mark.parametrize(
    "found",
    [
        task("pending"),
        task("pending", scheduled_at=NOON + timedelta(days=1)),
        task("failed", retry_count=1),
        task("failed", retry_count=1, next_retry_at=NOON),
    ],
)
def test_resume_of_what_waits_to_be_claimed_changes_nothing(found: Task):
    assert decide.resume(found, NOON) is None


@pytest.mark.parametrize(
    "make", [lambda **fields: task("failed", final=True, **fields), running], ids=["failed", "running"]
)
def test_resume_is_refused_when_no_attempts_are_left(make):
    for retry_count, max_retries in ((0, 0), (3, 3), (5, 3)):
        with pytest.raises(MaxAttemptsReached) as caught:
            decide.resume(make(retry_count=retry_count, max_retries=max_retries), NOON)
        assert caught.value.task_id == ID
    for retry_count, max_retries in ((2, 3), (10**6, -1)):
        change = decide.resume(make(retry_count=retry_count, max_retries=max_retries), NOON)
        assert change is not None
        assert change.retry_count == retry_count + 1


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (task("completed", final=True), TaskCompleted),
        (task("cancelled", final=True), TaskCancelled),
        (task("on hold"), TaskConflict),
    ],
)
def test_resume_of_what_is_over_is_refused(found: Task, error: type[TaskConflict]):
    with pytest.raises(error):
        decide.resume(found, NOON)


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_finished_tasks_may_be_deleted(state: str):
    decide.check_deletable(task(state, final=True))


@pytest.mark.parametrize("found", [task("pending"), running(), task("failed"), task("on hold")])
def test_unfinished_tasks_may_not_be_deleted(found: Task):
    with pytest.raises(TaskNotTerminal) as caught:
        decide.check_deletable(found)
    assert (caught.value.task_id, caught.value.state) == (ID, found.state)


def test_buckets():
    assert [bucket_of(ms) for ms in (0, 5, 6, 10, 11)] == [0, 0, 1, 1, 2]
    assert bucket_of(86_400_000) == len(LATENCY_BOUNDS_MS) - 1
    assert bucket_of(86_400_001) == len(LATENCY_BOUNDS_MS)


class TestJudge:
    """Why a guarded write matched nothing."""

    changes = (
        decide.settle(claim(), Completed('{"value":1}'), POLICY),
        decide.settle(claim(), Failed("boom"), POLICY),
        decide.settle(claim(), Failed("boom", final=True), POLICY),
        decide.settle(claim(), Released(), POLICY),
        decide.settle(claim(), Cancelled("stopped"), POLICY),
        decide.expire(running(), "lost"),
    )

    @staticmethod
    def written(change: Change) -> Task:
        return task(
            change.state,
            final=change.terminal,
            version=(change.version or 0) + 1,
            retry_count=change.retry_count,
            error=change.error,
        )

    def test_a_row_that_is_gone_is_missing(self):
        assert {explain_miss(change, None) for change in self.changes} == {WriteResult.MISSING}

    def test_a_row_as_this_write_would_have_left_it_is_already(self):
        assert {explain_miss(change, self.written(change)) for change in self.changes} == {WriteResult.DUPLICATE}

    def test_a_row_cancelled_by_this_write_is_already(self):
        asked = [(change, change.if_asked) for change in self.changes if change.if_asked is not None]
        assert {explain_miss(change, self.written(stopped)) for change, stopped in asked} == {WriteResult.DUPLICATE}
        for change, stopped in asked:
            assert decide.written(change, self.written(stopped)) is stopped

    def test_a_row_written_as_it_was_meant_shows_no_cancel(self):
        for change in self.changes:
            assert decide.written(change, self.written(change)) is change
            assert decide.written(change, None) is change

    def test_a_row_that_another_write_changed_is_lost(self):
        forms = [form for change in self.changes for form in (change, change.if_asked) if form is not None]
        for change in self.changes:
            for other in forms:
                same_end = other.error == (change.if_asked and change.if_asked.error) and other.state == "cancelled"
                if other is not change and not same_end:
                    assert explain_miss(change, self.written(other)) is WriteResult.STALE, (change, other)

    def test_a_row_that_has_moved_on_since_is_lost(self):
        for change in self.changes:
            later = replace(self.written(change), version=(change.version or 0) + 2)
            assert explain_miss(change, later) is WriteResult.STALE

    def test_a_row_that_was_never_touched_is_lost(self):
        for change in self.changes:
            assert explain_miss(change, running()) is WriteResult.STALE
            assert explain_miss(change, running(locked_until=NOON + timedelta(hours=1))) is WriteResult.STALE

    def test_a_write_guarded_by_name_alone_cannot_know(self):
        for change in self.changes:
            assert explain_miss(change._replace(version=None), self.written(change)) is WriteResult.STALE
