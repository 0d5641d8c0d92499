"""Schedules: declared by code, changed by operators, fired by whichever worker comes first.

Nothing here leads. Who fires reads a schedule whose time has come, and writes its next time and its tasks in one
transaction, under the version that was read: of several that try, one finds that version.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tasklib.core.checks import check_whole
from tasklib.core.cron import Timing, check_timing
from tasklib.core.errors import TRANSIENT, InvalidOption, ScheduleConflict, ScheduleNotFound, TaskLibError
from tasklib.core.options import check_name, check_run_at
from tasklib.core.registry import TaskType
from tasklib.core.schedules import Definition, Schedule, ScheduleWrite, fire, task_by_hand, task_of
from tasklib.core.task import TaskState
from tasklib.engine import task_log
from tasklib.engine.collecting import refuse_in_flow
from tasklib.engine.submission import Call, new_ids, template
from tasklib.stores.protocol import ScheduleStore
from tasklib.stores.values import AuditEntry, DueSchedules, Inserted

if TYPE_CHECKING:
    from tasklib.engine.engine import Engine

log = logging.getLogger("tasklib.schedules")

AT_ONCE = 500
"""Schedules that are fired in one transaction."""
LOOK_AGAIN_SECONDS = 1.0
"""After another was first, or something went wrong: what is still due then is nobody else's."""
FAR_AHEAD = timedelta(days=1)
"""What was written so far ahead of now was written by a clock that was wrong."""
MOST_BACKFILLED = 10_000
OPTIONS = frozenset({"max_retries", "timeout_seconds", "priority", "tags", "retry", "unique"})
"""What may be said of all tasks of a schedule."""
MOST_PREVIEWED = 100
_TRIES = 100
_BATCH = 1000
_UNDER_WAY = (TaskState.PENDING, TaskState.RUNNING)


class Schedules:
    """Verbs on the schedules of an engine's queue."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._code_at: datetime | None = None
        self._declared: set[str] = set()
        """Names of the schedules that this process's code has."""
        self._looked_at: datetime | None = None

    # -- look ---------------------------------------------------------------------------------------------------------

    async def all(self) -> list[Schedule]:
        return await (await self._store()).schedules()

    async def failing(self, schedules: Sequence[Schedule]) -> set[str]:
        """Names of those whose latest run has failed; while it is under way, of those whose run before it has."""
        made = {each.name: [run.task_id for run in each.runs if run.created][-2:] for each in schedules}
        ids = [task_id for latest in made.values() for task_id in latest]
        found = await (await self._engine.store()).get(ids) if ids else []
        ended = {task.id: task.state for task in found if task is not None and task.state not in _UNDER_WAY}
        latest_ends = {name: [ended[each] for each in latest if each in ended][-1:] for name, latest in made.items()}
        return {name for name, end in latest_ends.items() if end == [TaskState.FAILED]}

    async def get(self, name: str) -> Schedule:
        found = await (await self._store()).schedules([check_name(name)])
        if not found:
            raise ScheduleNotFound(name)
        return found[0]

    async def next_times(self, name: str, number: int) -> list[datetime]:
        """When it fires next, if nobody pauses it; a time that is due is among them."""
        check_whole("number", number, 1, MOST_PREVIEWED)
        schedule = await self.get(name)
        if schedule.definition is None or schedule.paused:
            return []
        timing = schedule.definition.timing
        first = schedule.next_at or timing.next(await self._now())
        return [first, *times(timing, first, number - 1)]

    async def preview(self, timing: Timing, number: int) -> list[datetime]:
        return times(timing, await self._now(), check_whole("number", number, 1, MOST_PREVIEWED))

    # -- define -------------------------------------------------------------------------------------------------------

    async def define(self, call: Call, timing: Timing) -> Definition:
        """Of a call that was asked for: checked now, so that whoever fires it needs no code."""
        known = None if call.task_type is not None else await self._engine.published(call.name)
        return definition(call, timing, self._engine, known)

    async def retimed(self, name: str, timing: Timing) -> Definition:
        """What it submits, at other times."""
        found = (await self.get(name)).definition
        if found is None:
            raise ScheduleConflict(f"{name}: its definition cannot be read")
        return checked(Definition(timing, found.task))

    async def put(self, name: str, new: Definition, *, operator: bool, audit: Sequence[AuditEntry] = ()) -> Schedule:
        """By code it is written only if it differs. By an operator it wins over what code says, until it is cleared."""
        check_name(name)
        refuse_in_flow("a schedule")
        field = "operator" if operator else "declared"

        def change(found: Schedule | None, now: datetime) -> Schedule | None:
            if found is None:
                return Schedule(name=name, **{field: new}).scheduled(now)  # type: ignore[arg-type]
            return None if same(getattr(found, field), new) else found.defined(now, **{field: new})

        return await self._change(name, change, audit)

    async def clear(self, name: str, *, audit: Sequence[AuditEntry] = ()) -> Schedule:
        """What the code says holds again."""

        def change(found: Schedule | None, now: datetime) -> Schedule | None:
            known = _there(found, name)
            if known.operator is not None and known.declared is None:
                raise ScheduleConflict(f"{name}: there is nothing in the code to go back to; delete it instead")
            return None if known.operator is None else known.defined(now, operator=None)

        return await self._change(name, change, audit)

    async def pause(self, name: str, *, audit: Sequence[AuditEntry] = ()) -> Schedule:
        def change(found: Schedule | None, now: datetime) -> Schedule | None:
            known = _there(found, name)
            return None if known.paused else replace(known, paused=True, next_at=None)

        return await self._change(name, change, audit)

    async def resume(self, name: str, *, audit: Sequence[AuditEntry] = ()) -> Schedule:
        """From now on: times that passed during the pause are not made up for."""

        def change(found: Schedule | None, now: datetime) -> Schedule | None:
            known = _there(found, name)
            return replace(known, paused=False).scheduled(now) if known.paused else None

        return await self._change(name, change, audit)

    async def delete(self, name: str, *, audit: Sequence[AuditEntry] = ()) -> None:
        store = await self._store()
        for _ in range(_TRIES):
            schedule = await self.get(name)
            if schedule.declared_at is not None and not schedule.is_orphaned(await self._now()):
                raise ScheduleConflict(f"{name}: workers have it in their code; take it out there, or pause it")
            if await store.delete_schedule(name, schedule.version, audit=audit):
                return
        raise _too_fast(name)

    # -- tasks --------------------------------------------------------------------------------------------------------

    async def trigger(self, name: str, *, audit: Sequence[AuditEntry] = ()) -> UUID:
        """A task of it now, whatever its times are and whether it is paused. Returns the id."""
        refuse_in_flow("a schedule's task")
        store = await self._store()
        for _ in range(_TRIES):
            schedule, now = await self.get(name), await self._now()
            if schedule.definition is None:
                raise ScheduleConflict(f"{name}: its definition cannot be read")
            task = task_by_hand(schedule, now, new_ids(1)[0])
            [inserted] = await store.write_schedules([ScheduleWrite(schedule, [task], [now], now)], audit=audit)
            if inserted is not None:
                task_log.enqueued([task], inserted)
                return inserted[0].id
        raise _too_fast(name)

    async def backfill(self, name: str, start: datetime, end: datetime) -> list[UUID]:
        """Tasks of all its times from `start` up to `end`, oldest first. Times that were fired already are not fired
        again: the ids of their tasks are among those returned."""
        start, end = check_run_at(start, "start"), check_run_at(end, "end")
        schedule = await self.get(name)
        if end > await self._now():
            raise InvalidOption("end is in the future: those times are fired when they come", field="end")
        if schedule.definition is None:
            raise ScheduleConflict(f"{name}: its definition cannot be read")
        timing = schedule.definition.timing
        if timing.count(start, end, MOST_BACKFILLED + 1) > MOST_BACKFILLED:
            raise InvalidOption(f"start: there are more than {MOST_BACKFILLED:,} times up to end", field="start")
        slots = [slot for slot in timing.latest(start, end, MOST_BACKFILLED) if slot < end]
        ids: list[UUID] = []
        for place in range(0, len(slots), _BATCH):
            part = slots[place : place + _BATCH]
            made = zip(part, new_ids(len(part)), strict=True)
            tasks = [task_of(schedule, *each)._replace(unique_rule=None) for each in made]
            ids += [each.id for each in await self._engine.insert(tasks)]
        return ids

    # -- workers ------------------------------------------------------------------------------------------------------

    async def declare(self, types: Iterable[TaskType]) -> None:
        """What the code of this process says. Of two versions, that of the process which was started later holds: each
        says it once."""
        told = {each.name: each for each in types if each.options.schedule is not None}
        if not told:
            return
        store = await self._store()
        if self._code_at is None:
            self._code_at = await self._now()
        for name, task_type in told.items():
            timing = task_type.options.schedule
            assert timing is not None
            new = definition(Call(name, {}, task_type=task_type, is_json=False), timing, self._engine)
            await self._change(name, lambda found, now, new=new: self._told(found, new, now), ())  # type: ignore[misc]
            self._declared.add(name)
        await store.keep_schedules(list(told))

    def _told(self, found: Schedule | None, new: Definition, now: datetime) -> Schedule | None:
        code = {"declared": new, "declared_at": now, "code_at": self._code_at}
        if found is None:
            return Schedule(name=new.task.name, **code).scheduled(now)  # type: ignore[arg-type]
        newer = found.code_at is None or self._code_at is None or not self._code_at < found.code_at < now + FAR_AHEAD
        if found.declared_at is not None and (same(found.declared, new) or not newer):
            return None
        return found.defined(now, **code)

    async def keep(self) -> None:
        """Tells that this process still has its schedules in its code."""
        if self._declared:
            await (await self._store()).keep_schedules(list(self._declared))

    async def fire(self) -> float | None:
        """Submits what has fallen due. Seconds until the next will have; None: none by itself."""
        store = await self._store()
        while True:
            due = await self._due(store)
            writes = [fire(each, due.now, new_ids) for each in due.schedules]
            next_times = [write.schedule.next_at for write in writes if write.schedule.next_at is not None]
            waits = [due.next_due_in, *((at - due.now).total_seconds() for at in next_times)]
            lost = False
            for write, inserted in zip(writes, await self._write(store, writes), strict=True):
                lost = lost or inserted is None
                if inserted:
                    task_log.enqueued(write.tasks, inserted)
            if due.next_due_in != 0 or lost:
                waits += [LOOK_AGAIN_SECONDS] if lost else []
                return min((wait for wait in waits if wait is not None), default=None)

    async def _due(self, store: ScheduleStore) -> DueSchedules:
        due = await store.due_schedules(AT_ONCE)
        before, self._looked_at = self._looked_at, due.now
        stepped_back = before is None or due.now < before - FAR_AHEAD
        if stepped_back and await self._set_right(store, due.now):
            return await store.due_schedules(AT_ONCE)
        return due

    async def _set_right(self, store: ScheduleStore, now: datetime) -> bool:
        """A clock that was far ahead leaves next times as far ahead behind it. The keys of tasks keep what it fired
        from being fired again. Tells whether there were any."""
        written_ahead = [
            each
            for each in await store.schedules()
            if each.next_at is not None and each.updated_at is not None and each.updated_at > now + FAR_AHEAD
        ]
        if written_ahead:
            log.warning("the clock was ahead: %d schedules go on from now", len(written_ahead))
            await store.write_schedules([ScheduleWrite(each.scheduled(now)) for each in written_ahead], wait=False)
        return bool(written_ahead)

    async def _write(
        self, store: ScheduleStore, writes: Sequence[ScheduleWrite]
    ) -> Sequence[Sequence[Inserted] | None]:
        try:
            return await store.write_schedules(writes, wait=False)
        except TRANSIENT:
            raise
        except TaskLibError:
            if len(writes) == 1:
                log.exception("schedule %s cannot be fired", writes[0].schedule.name)
                return [None]
        return [each for write in writes for each in await self._write(store, [write])]

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _change(
        self,
        name: str,
        change: Callable[[Schedule | None, datetime], Schedule | None],
        audit: Sequence[AuditEntry],
    ) -> Schedule:
        """Reads, changes and writes until nobody came in between. None from `change`: leave it."""
        store = await self._store()
        for _ in range(_TRIES):
            found = next(iter(await store.schedules([check_name(name)])), None)
            new = change(found, await self._now())
            if new is None:
                return _there(found, name)
            if (await store.write_schedules([ScheduleWrite(new)], audit=audit))[0] is not None:
                return await self.get(name)
        raise _too_fast(name)

    async def _store(self) -> ScheduleStore:
        return await self._engine.store()

    async def _now(self) -> datetime:
        return await (await self._engine.store()).now()


def definition(call: Call, timing: Timing, engine: Engine, published: Any = None) -> Definition:
    for name in call.options:
        if name not in OPTIONS:
            raise InvalidOption(f"{name}: the times and keys of a schedule's tasks are its own", field=name)
    check_timing(timing)
    task = template(call, published, engine.config)._replace(id=UUID(int=0))
    if task.after is not None:
        raise InvalidOption(
            "output: a schedule's tasks wait for no others: their arguments are known", field="schedule"
        )
    return checked(Definition(timing, task))


def checked(new: Definition) -> Definition:
    if new.timing.overlap != "allow" and new.task.unique_rule is not None:
        raise InvalidOption("overlap: the task is unique by a rule of its own; give one of the two", field="overlap")
    return new


def same(one: Definition | None, other: Definition | None) -> bool:
    """Whether they say the same, however a database writes it."""
    return (None if one is None else json.loads(one.as_json())) == (
        None if other is None else json.loads(other.as_json())
    )


def times(timing: Timing, after: datetime, number: int) -> list[datetime]:
    found: list[datetime] = []
    for _ in range(number):
        after = timing.next(after)
        found.append(after)
    return found


def _there(found: Schedule | None, name: str) -> Schedule:
    if found is None:
        raise ScheduleNotFound(name)
    return found


def _too_fast(name: str) -> ScheduleConflict:
    return ScheduleConflict(f"schedule {name} changes too fast for this")
