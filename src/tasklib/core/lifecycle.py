"""The table of moves: which event takes a task from where to where. Nothing else decides a target state.

A *phase* is the state as people mean it: `failed` is two phases, one waiting for its retry and one final.
"""

from __future__ import annotations

from enum import StrEnum

from tasklib.core.task import Task, TaskState


class Phase(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    WAITING = "failed, waiting for its retry"
    FAILED = "failed for good"
    CANCELLED = "cancelled"


class Event(StrEnum):
    CLAIM = "claim"
    SUCCEED = "success"
    FAIL = "failure, attempts left"
    GIVE_UP = "failure, none left"
    RELEASE = "worker shuts down, or the handler snoozes"
    STOP = "stopped as asked"
    ASK_TO_STOP = "cancel while running"
    CANCEL = "cancel"
    CUT_OFF = "what it waits for failed"
    RETRY = "retry by hand"
    RESUME = "retry with attempts kept"
    RUN_NOW = "run now"
    REVIVE = "revive"


MOVES: dict[tuple[Phase, Event], Phase] = {
    (Phase.PENDING, Event.CLAIM): Phase.RUNNING,
    (Phase.WAITING, Event.CLAIM): Phase.RUNNING,
    (Phase.RUNNING, Event.SUCCEED): Phase.COMPLETED,
    (Phase.RUNNING, Event.FAIL): Phase.WAITING,
    (Phase.RUNNING, Event.GIVE_UP): Phase.FAILED,
    (Phase.RUNNING, Event.RELEASE): Phase.PENDING,
    (Phase.RUNNING, Event.STOP): Phase.CANCELLED,
    (Phase.RUNNING, Event.ASK_TO_STOP): Phase.RUNNING,
    (Phase.PENDING, Event.CANCEL): Phase.CANCELLED,
    (Phase.WAITING, Event.CANCEL): Phase.CANCELLED,
    (Phase.PENDING, Event.CUT_OFF): Phase.CANCELLED,
    (Phase.WAITING, Event.RETRY): Phase.PENDING,
    (Phase.FAILED, Event.RETRY): Phase.PENDING,
    (Phase.RUNNING, Event.RESUME): Phase.PENDING,
    (Phase.WAITING, Event.RESUME): Phase.PENDING,
    (Phase.FAILED, Event.RESUME): Phase.PENDING,
    (Phase.PENDING, Event.RUN_NOW): Phase.PENDING,
    (Phase.WAITING, Event.RUN_NOW): Phase.PENDING,
    (Phase.CANCELLED, Event.REVIVE): Phase.PENDING,
}

STATE_OF: dict[Phase, TaskState] = {
    Phase.PENDING: TaskState.PENDING,
    Phase.RUNNING: TaskState.RUNNING,
    Phase.COMPLETED: TaskState.COMPLETED,
    Phase.WAITING: TaskState.FAILED,
    Phase.FAILED: TaskState.FAILED,
    Phase.CANCELLED: TaskState.CANCELLED,
}

_ONLY_PHASE_OF: dict[str, Phase] = {state: phase for phase, state in STATE_OF.items() if state != TaskState.FAILED}

TERMINAL = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED})


def phase_of(task: Task) -> Phase | None:
    """None for a state that this version does not know: such a row is shown and left alone."""
    if task.state == TaskState.FAILED:
        return Phase.WAITING if task.completed_at is None else Phase.FAILED
    return _ONLY_PHASE_OF.get(task.state)


def move(phase: Phase | None, event: Event) -> Phase | None:
    """Where the event takes a task, or None where it is not allowed."""
    return MOVES.get((phase, event)) if phase is not None else None


def mermaid() -> str:
    """The table as a state diagram, for the docs."""
    name = {phase: phase.name.lower() for phase in Phase}
    lines = ["stateDiagram-v2", f"    [*] --> {name[Phase.PENDING]}: submit"]
    lines += [f"    {name[start]} --> {name[end]}: {event.value}" for (start, event), end in MOVES.items()]
    lines += [f"    {name[phase]} --> [*]" for phase in Phase if phase in TERMINAL]
    return "\n".join(lines)
