"""What the demo submits, and how each task must end."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tasklib.core.options import SubmitOptions
from tasklib.core.registry import default_registry
from tasklib.core.task import NewTask, Task, TaskState, is_terminal
from tasklib.engine.config import Config
from tasklib.engine.submission import prepare_call


@dataclass(frozen=True)
class Scene:
    """One task of the demo."""

    name: str
    shows: str
    """What there is to see, in a few words."""
    kwargs: Mapping[str, Any]
    ends: TaskState = TaskState.COMPLETED
    attempts: int = 1
    options: SubmitOptions = field(default_factory=SubmitOptions)
    cancel_when: TaskState | None = None
    """To be cancelled when it is seen in this state."""

    def submission(self, config: Config) -> NewTask:
        task_type = default_registry.get(self.name)
        assert task_type is not None, f"{self.name} is not among the demo's tasks"
        return prepare_call(task_type, (), dict(self.kwargs), self.options, config)

    def went_well(self, task: Task) -> bool:
        return is_terminal(task) and task.state == self.ends and task.attempts == self.attempts


OPENING: Sequence[Scene] = (
    Scene("send_welcome_email", "runs at once", {"to": "ada@example.com"}),
    Scene("send_welcome_email", "runs at once", {"to": "grace@example.com"}),
    Scene("resize_photo", "runs in a thread", {"photo": "beach.jpg", "width": 1200}),
    Scene("resize_photo", "runs in a thread", {"photo": "city.jpg", "width": 900}),
    Scene("charge_card", "fails twice, is retried", {"order": 1017, "amount": 49.9}, attempts=3),
    Scene("import_feed", "fails for good", {"url": "https://feeds.example.com/old"}, TaskState.FAILED, attempts=3),
    Scene("crunch_numbers", "runs into its timeout", {"rows": 10_000}, TaskState.FAILED),
    Scene("send_reminder", "waits 3 seconds", {"to": "alan@example.com"}, options=SubmitOptions(delay_seconds=3.0)),
    Scene(
        "rebuild_search_index",
        "is cancelled as it runs",
        {"shards": 12},
        TaskState.CANCELLED,
        cancel_when=TaskState.RUNNING,
    ),
    Scene(
        "send_newsletter",
        "is cancelled in time",
        {"issue": 42},
        TaskState.CANCELLED,
        attempts=0,
        options=SubmitOptions(delay_seconds=3600.0),
        cancel_when=TaskState.PENDING,
    ),
    Scene("page_on_call", "comes last, jumps the queue", {"reason": "disk almost full"}),
)
"""Submitted before the worker starts: so the last one can be seen to overtake the others."""

JUMPER = len(OPENING) - 1


_ONE_CLAIM = timedelta(seconds=0.1)
"""Tasks of one claim start at slightly different times; those of the next claim wait for a free slot."""


def jumped(tasks: Sequence[Task]) -> bool:
    """Whether no claim took others before the one with the highest priority."""
    first = tasks[JUMPER].started_at
    return first is not None and all(not task.started_at or first - task.started_at < _ONE_CLAIM for task in tasks)


def everyday(chance: random.Random) -> Scene:
    """Something new for a demo that goes on."""
    number = chance.randrange(1000, 9999)
    return chance.choice(
        (
            Scene("send_welcome_email", "runs at once", {"to": f"user{number}@example.com"}),
            Scene("resize_photo", "runs in a thread", {"photo": f"photo-{number}.jpg", "width": 1200}),
            Scene("charge_card", "fails twice, is retried", {"order": number, "amount": number / 100}, attempts=3),
            Scene(
                "send_reminder",
                "waits 5 seconds",
                {"to": f"user{number}@example.com"},
                options=SubmitOptions(delay_seconds=5.0),
            ),
            Scene("import_feed", "fails for good", {"url": f"https://feeds.example.com/{number}"}, TaskState.FAILED, 3),
            Scene("page_on_call", "jumps the queue", {"reason": f"alert {number}"}),
        )
    )
