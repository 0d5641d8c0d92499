"""Schedules as values: what is to be submitted and when, what became of it, and what is due now. No I/O, no clock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from tasklib.core import codec
from tasklib.core.checks import KEY_LIMIT
from tasklib.core.cron import Overlap, Timing, timing_of
from tasklib.core.errors import TaskLibError
from tasklib.core.task import NewTask
from tasklib.core.unique import Conflict, Unique, Until

RUNS_KEPT = 20
"""So many of its latest tasks a schedule remembers."""
MOST_AT_ONCE = 100
"""So many missed times are made up for at most."""
MOST_COUNTED = 10_000
PROMPT_SECONDS = 60.0
"""A time that is longer ago was missed, for a schedule that does not make up for those."""
ORPHANED_AFTER = timedelta(days=1)
"""A schedule of the code that no worker has declared for so long."""
SCHEDULE_TAG, SLOT_TAG = "schedule", "slot"
"""Tags of the tasks that a schedule submits."""

_OPTIONS = ("max_retries", "timeout_seconds", "priority")
_OVERLAP: dict[Overlap, tuple[Until, Conflict]] = {
    "skip": ("finished", "join"),
    "wait": ("started", "join"),
    "replace": ("started", "replace"),
}
"""Until when a task of the schedule is the only one, and what becomes of one that comes before that."""


class Run(NamedTuple):
    """One time that was fired."""

    slot: datetime
    task_id: UUID
    fired_at: datetime
    created: bool = True
    """False: an earlier task was not over, and this time was left out in its favour."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a schedule submits, and when: as the code says it, or as an operator does."""

    timing: Timing
    task: NewTask
    """Checked and complete but for its id, its times and its key, so that whoever fires it needs no code."""

    def as_json(self) -> str:
        task = self.task
        options = {name: getattr(task, name) for name in _OPTIONS}
        options["tags"] = json.loads(task.tags)
        options["retry"] = None if task.retry_policy is None else json.loads(task.retry_policy)
        options["unique"] = None if task.unique_rule is None else asdict(task.unique_rule)
        about = {**self.timing.as_json(), "type": task.name, "payload": json.loads(task.kwargs), "options": options}
        return codec.encode(about, field="schedule")


def definition_of(found: Any) -> Definition | None:
    """None: there is none, or somebody edited it into something else."""
    try:
        options = found["options"]
        retry, unique = options.get("retry"), options.get("unique")
        task = NewTask(
            UUID(int=0),
            found["type"],
            codec.encode(found["payload"], field="payload"),
            **{name: options[name] for name in _OPTIONS},
            tags=codec.encode(options["tags"], field="tags"),
            retry_policy=None if retry is None else codec.encode(retry, field="retry"),
            unique_rule=None if unique is None else Unique(**unique),
        )
        return Definition(timing_of(found), task)
    except (TaskLibError, TypeError, KeyError, AttributeError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One row of the table `task_schedules`."""

    name: str
    declared: Definition | None = None
    """By code. None: an operator made it."""
    operator: Definition | None = None
    """By an operator: it holds in place of what the code says, until it is cleared."""
    paused: bool = False
    version: int = 0
    """The guard of every write."""
    next_at: datetime | None = None
    """The next time. None: never, as long as it is paused."""
    declared_at: datetime | None = None
    """When a worker last had it in its code. None: it does not depend on workers' code."""
    code_at: datetime | None = None
    """Since when the process has been running whose code this is."""
    runs: tuple[Run, ...] = ()
    """The latest, newest last."""
    fired: int = 0
    """How many times were fired."""
    missed: int = 0
    """How many times passed and were not made up for."""
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def definition(self) -> Definition | None:
        return self.operator or self.declared

    @property
    def lateness_seconds(self) -> float | None:
        """How long after its time the latest slot was fired."""
        return (self.runs[-1].fired_at - self.runs[-1].slot).total_seconds() if self.runs else None

    def is_orphaned(self, now: datetime) -> bool:
        return self.declared_at is not None and now - self.declared_at >= ORPHANED_AFTER

    def defined(self, now: datetime, **changes: Any) -> Schedule:
        """With other definitions. A time that is due stays due, unless the times themselves are others now."""
        new = replace(self, **changes)
        before, after = self.definition, new.definition
        same = before is not None and after is not None and _times(before) == _times(after)
        return new if same and self.next_at is not None else new.scheduled(now)

    def scheduled(self, now: datetime) -> Schedule:
        """With the next time after this instant."""
        definition = self.definition
        never = self.paused or definition is None
        return replace(self, next_at=None if never or definition is None else definition.timing.next(now))

    def ran(self, runs: Sequence[Run]) -> Schedule:
        return replace(self, runs=(*self.runs, *runs)[-RUNS_KEPT:])


class ScheduleWrite(NamedTuple):
    """A schedule as it is to be from now on, if it still has the version that this was made of (0: if there is none of
    its name), and tasks that are submitted with it or not at all."""

    schedule: Schedule
    tasks: Sequence[NewTask] = ()
    slots: Sequence[datetime] = ()
    """Of the tasks, which become its latest runs."""
    fired_at: datetime | None = None

    def runs(self, inserted: Sequence[tuple[UUID, bool]]) -> list[Run]:
        """`inserted`: the ids of the tasks, and whether they were created."""
        at = self.fired_at
        return [
            Run(slot, task_id, at or slot, created)
            for slot, (task_id, created) in zip(self.slots, inserted, strict=True)
        ]


def fire(schedule: Schedule, now: datetime, new_ids: Callable[[int], Sequence[UUID]]) -> ScheduleWrite:
    """What a schedule submits whose time has come, and when it is due again."""
    definition, due_at = schedule.definition, schedule.next_at
    if definition is None or due_at is None:
        return ScheduleWrite(replace(schedule, next_at=None))
    timing = definition.timing
    next_at, passed, slots = timing.next(due_at), 1, [due_at]
    if next_at <= now:  # else it is the only one, as nearly always
        next_at, passed = timing.next(now), timing.count(due_at, now, MOST_COUNTED)
        slots = timing.latest(due_at, now, MOST_AT_ONCE if timing.missed == "all" else 1)
    longest = PROMPT_SECONDS if timing.missed == "none" and timing.late is None else timing.late
    if longest is not None:
        slots = [slot for slot in slots if now - slot <= timedelta(seconds=longest)]
    tasks = [task_of(schedule, slot, task_id) for slot, task_id in zip(slots, new_ids(len(slots)), strict=True)]
    after = replace(
        schedule,
        next_at=next_at,
        fired=schedule.fired + len(slots),
        missed=schedule.missed + passed - len(slots),
    )
    return ScheduleWrite(after, tasks, slots, now)


def task_of(schedule: Schedule, slot: datetime, task_id: UUID) -> NewTask:
    """The task of one time. The time is in its key: whoever fires it again finds that task."""
    definition = schedule.definition
    assert definition is not None
    task, timing = definition.task, definition.timing
    tags = {**json.loads(task.tags), SCHEDULE_TAG: schedule.name, SLOT_TAG: _written(slot)}
    delay = timedelta(seconds=timing.jitter * _share(schedule.name, slot))
    return task._replace(
        id=task_id,
        delay_seconds=None,
        run_at=slot + delay,
        tags=codec.encode(tags, field="tags"),
        idempotency_key=_key(schedule.name, f":{_written(slot)}"),
        unique_rule=task.unique_rule if timing.overlap == "allow" else _overlap_rule(schedule.name, timing.overlap),
    )


def task_by_hand(schedule: Schedule, slot: datetime, task_id: UUID) -> NewTask:
    """Of a time that is none of the schedule's own, and beside whatever runs."""
    task = task_of(schedule, slot, task_id)
    return task._replace(run_at=None, idempotency_key=None, unique_rule=None)


def _overlap_rule(name: str, overlap: Overlap) -> Unique:
    until, conflict = _OVERLAP[overlap]
    return Unique(_key(name), until=until, conflict=conflict)


def _key(name: str, more: str = "") -> str:
    key = f"schedule:{name}{more}"
    if len(key) <= KEY_LIMIT:
        return key
    return f"schedule:{hashlib.sha256(name.encode()).hexdigest()}{more}"


def slot_of(tags: Mapping[str, Any]) -> datetime | None:
    """The time for which a schedule submitted a task with these tags."""
    text = tags.get(SLOT_TAG) if SCHEDULE_TAG in tags else None
    try:
        return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, TypeError):
        return None


def _times(definition: Definition) -> dict[str, Any]:
    about = definition.timing.as_json()
    return {name: about.get(name) for name in ("cron", "every", "timezone")}


def _written(slot: datetime) -> str:
    return slot.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _share(name: str, slot: datetime) -> float:
    """From 0 to 1, the same for everybody who asks about this time of this schedule."""
    digest = hashlib.sha256(f"{name} {_written(slot)}".encode()).digest()
    return int.from_bytes(digest[:8]) / (1 << 64)
