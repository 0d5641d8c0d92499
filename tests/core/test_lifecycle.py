"""Every phase with every event."""

import itertools
from datetime import UTC, datetime

import pytest

from tasklib.core.ids import uuid7
from tasklib.core.lifecycle import MOVES, STATE_OF, TERMINAL, Event, Phase, mermaid, move, phase_of
from tasklib.core.task import (
    Task,
    TaskState,
    has_error,
    has_result,
    is_completed,
    is_failed,
    is_pending,
    is_running,
    is_terminal,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

# Written out once more, from the specification, so that a change of the table is a decision.
ALLOWED = {
    Phase.PENDING: {
        Event.CLAIM: Phase.RUNNING,
        Event.CANCEL: Phase.CANCELLED,
        Event.CUT_OFF: Phase.CANCELLED,
        Event.RUN_NOW: Phase.PENDING,
    },
    Phase.RUNNING: {
        Event.SUCCEED: Phase.COMPLETED,
        Event.FAIL: Phase.WAITING,
        Event.GIVE_UP: Phase.FAILED,
        Event.RELEASE: Phase.PENDING,
        Event.STOP: Phase.CANCELLED,
        Event.ASK_TO_STOP: Phase.RUNNING,
        Event.RESUME: Phase.PENDING,
    },
    Phase.WAITING: {
        Event.CLAIM: Phase.RUNNING,
        Event.CANCEL: Phase.CANCELLED,
        Event.RETRY: Phase.PENDING,
        Event.RESUME: Phase.PENDING,
        Event.RUN_NOW: Phase.PENDING,
    },
    Phase.FAILED: {Event.RETRY: Phase.PENDING, Event.RESUME: Phase.PENDING},
    Phase.COMPLETED: {},
    Phase.CANCELLED: {Event.REVIVE: Phase.PENDING},
}


def task(state: str, *, final: bool = False, retry_count: int = 0) -> Task:
    return Task(
        id=uuid7(0, 0, 0),
        name="work",
        state=state,
        scheduled_at=NOON,
        created_at=NOON,
        updated_at=NOON,
        completed_at=NOON if final else None,
        retry_count=retry_count,
    )


@pytest.mark.parametrize(("phase", "event"), list(itertools.product(Phase, Event)))
def test_every_phase_with_every_event(phase: Phase, event: Event):
    assert move(phase, event) == ALLOWED[phase].get(event)


def test_an_unknown_phase_goes_nowhere():
    assert [move(None, event) for event in Event] == [None] * len(Event)


def test_nothing_but_an_operator_leaves_a_terminal_phase():
    assert {(start, event) for start, event in MOVES if start in TERMINAL} == {
        (Phase.FAILED, Event.RETRY),
        (Phase.FAILED, Event.RESUME),
        (Phase.CANCELLED, Event.REVIVE),
    }


def test_every_phase_can_be_reached_and_every_event_does_something():
    assert {Phase.PENDING, *MOVES.values()} == set(Phase)
    assert {event for _, event in MOVES} == set(Event)


@pytest.mark.parametrize(
    ("state", "final", "phase"),
    [
        ("pending", False, Phase.PENDING),
        ("running", False, Phase.RUNNING),
        ("completed", True, Phase.COMPLETED),
        ("failed", False, Phase.WAITING),
        ("failed", True, Phase.FAILED),
        ("cancelled", True, Phase.CANCELLED),
        ("on hold", False, None),
        ("", False, None),
        ("PENDING", False, None),
        (Phase.WAITING.value, False, None),
        (Phase.FAILED.value, True, None),
    ],
)
def test_the_phase_of_a_row(state: str, final: bool, phase: Phase | None):
    assert phase_of(task(state, final=final)) is phase
    if phase is not None:
        assert STATE_OF[phase] == state
        assert (phase in TERMINAL) == final


@pytest.mark.parametrize(
    ("state", "final", "attempts"),
    [
        ("pending", False, 2),
        ("running", False, 3),
        ("completed", True, 3),
        ("failed", False, 2),
        ("failed", True, 3),
        ("cancelled", True, 2),
        ("on hold", False, 2),
    ],
)
def test_attempts_are_derived_from_the_retry_count_and_the_state(state: str, final: bool, attempts: int):
    assert task(state, final=final, retry_count=2).attempts == attempts


def test_the_questions_people_ask():
    questions = (is_pending, is_running, is_completed, is_failed, is_terminal, has_result, has_error)
    answers = {
        ("pending", False): [is_pending],
        ("running", False): [is_running],
        ("completed", True): [is_completed, is_terminal],
        ("failed", False): [is_failed],
        ("failed", True): [is_failed, is_terminal],
        ("cancelled", True): [is_terminal],
        ("on hold", False): [],
    }
    for (state, final), expected in answers.items():
        found = task(state, final=final)
        assert [question for question in questions if question(found)] == expected


def test_a_state_compares_and_prints_as_its_text():
    assert task("pending").state == TaskState.PENDING
    assert f"{TaskState.PENDING}" == "pending"


def test_max_attempts_and_waiting():
    assert task("pending").max_attempts == 4
    assert [task("failed").waiting, task("failed", final=True).waiting, task("pending").waiting] == [True, False, False]


def test_the_diagram_holds_every_move():
    lines = [line.strip() for line in mermaid().splitlines()]
    assert lines[0] == "stateDiagram-v2"
    assert "[*] --> pending: submit" in lines
    for (start, event), end in MOVES.items():
        assert f"{start.name.lower()} --> {end.name.lower()}: {event.value}" in lines
    for phase in Phase:
        assert (f"{phase.name.lower()} --> [*]" in lines) == (phase in TERMINAL)
    assert len(lines) == 2 + len(MOVES) + len(TERMINAL)
