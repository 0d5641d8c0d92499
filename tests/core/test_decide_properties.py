"""What holds of every decision, whatever the task and whatever happened to it."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tasklib.core import decide
from tasklib.core.decide import Change
from tasklib.core.ids import uuid7
from tasklib.core.lifecycle import Phase, phase_of
from tasklib.core.outcome import Cancelled, Completed, Failed, Outcome, Released, Snoozed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim, Task, TaskState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ID = uuid7(1, 2, 3)

delays = st.floats(0, 1e9)
errors = st.text(max_size=50)
run_times = st.integers(0, 10**9)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Completed, st.integers().map(lambda number: f'{{"value":{number}}}'), run_times),
    st.builds(Failed, errors, st.booleans(), st.none() | delays, st.booleans(), run_times),
    st.builds(Snoozed, delays),
    st.just(Released()),
    st.builds(Cancelled, errors, run_times),
)
policies = st.builds(RetryPolicy, st.floats(0, 1e9), st.floats(0, 1e6), st.floats(0, 1e9), st.floats(0, 1))
spreads = st.floats(-1, 1)
limits = st.integers(-1, 6)


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    max_retries = draw(limits)
    retry_count = draw(st.integers(0, max_retries if max_retries >= 0 else 10**6))
    kept = draw(st.none() | policies)
    text = kept.to_json() if kept else None
    return Claim(ID, "work", 7, "anna", "{}", retry_count, max_retries, None, text, NOON, "{}", None, False)


@given(claims(), outcomes, policies, spreads, st.booleans())
def test_every_decision(claim: Claim, outcome: Outcome, policy: RetryPolicy, spread: float, asked: bool):
    change = as_written(decide.settle(claim, outcome, policy, spread), asked)
    assert change[:4] == (claim.id, claim.version, claim.worker_id, None)
    if change.state is not TaskState.CANCELLED and claim.max_retries >= 0:
        assert change.retry_count <= claim.max_retries
    assert change.terminal == (change.state in (TaskState.COMPLETED, TaskState.CANCELLED) or gives_up(claim, change))
    assert (change.due_in is None) or (not change.terminal and change.due_in >= 0)
    assert (change.state is TaskState.COMPLETED) == isinstance(outcome, Completed)
    assert change.result == (outcome.result if isinstance(outcome, Completed) else None)
    assert change.leaves is None
    snoozed = change.state is TaskState.PENDING and isinstance(outcome, Snoozed)
    assert (change.error is None) == (change.state in (TaskState.COMPLETED, TaskState.PENDING))
    assert (change.entry is None) == (change.error is None and not snoozed)
    if change.entry:
        entry = json.loads(change.entry)
        assert entry["attempt"] == claim.attempt
        assert entry.get("error") == change.error
        assert ("snoozed" in entry) == snoozed


def as_written(change: Change, asked: bool) -> Change:
    return change.if_asked if asked and change.if_asked is not None else change


def gives_up(claim: Claim, change: Change) -> bool:
    return change.state is TaskState.FAILED and change.retry_count == claim.retry_count


def write(task: Task, change: Change) -> Task:
    """What a store makes of a change, as far as it matters here."""
    return Task(
        id=task.id,
        name=task.name,
        state=change.state,
        scheduled_at=NOON,
        created_at=NOON,
        updated_at=NOON,
        completed_at=NOON if change.terminal else None,
        retry_count=change.retry_count,
        max_retries=task.max_retries,
        version=task.version + 1,
    )


@given(st.integers(0, 6), st.lists(st.tuples(outcomes, st.booleans(), st.booleans()), max_size=40))
def test_a_whole_life(max_retries: int, events: list[tuple[Outcome, bool, bool]]):
    """However the attempts end: never more starts than attempts and releases allow, and attempts count the starts."""
    task = Task(
        id=ID,
        name="work",
        state="pending",
        scheduled_at=NOON,
        created_at=NOON,
        updated_at=NOON,
        max_retries=max_retries,
    )
    starts = released = 0
    for outcome, expires, asked in events:
        if phase_of(task) not in (Phase.PENDING, Phase.WAITING):
            break
        starts += 1
        version = task.version + 1
        claim = Claim(
            ID, "work", version, "anna", "{}", task.retry_count, max_retries, None, None, NOON, "{}", None, False
        )
        running = replace(
            task,
            state="running",
            started_at=NOON,
            worker_id="anna",
            locked_until=NOON,
            version=version,
        )
        assert running.attempts == starts - released <= max_retries + 1
        change = decide.expire(running, "lost") if expires else decide.settle(claim, outcome, RetryPolicy())
        change = as_written(change, asked)
        released += change.state is TaskState.PENDING
        task = write(running, change)
        assert task.attempts == starts - released
    assert starts <= max_retries + 1 + released
