"""Schedules of the default queue: `report.schedule("weekly", cron(...))(42)`, `schedules["weekly"].pause()`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, ParamSpec
from uuid import UUID

from tasklib.api.sync import run_sync
from tasklib.core.cron import Timing
from tasklib.core.options import SubmitOptions, check_name
from tasklib.core.registry import TaskType
from tasklib.core.schedules import Schedule
from tasklib.engine.default import default_engine
from tasklib.engine.engine import Engine
from tasklib.engine.schedules import definition
from tasklib.engine.submission import Call

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class ScheduleHandle:
    """A schedule by its name. Each method has an `_async` twin. Raises ScheduleNotFound if there is none."""

    name: str
    _engine: Engine = field(repr=False)

    async def get_async(self) -> Schedule:
        return await self._engine.schedules.get(self.name)

    def get(self) -> Schedule:
        """The schedule as it is now."""
        return run_sync(self.get_async())

    async def pause_async(self) -> Schedule:
        return await self._engine.schedules.pause(self.name)

    def pause(self) -> Schedule:
        """It does not fire until `resume`."""
        return run_sync(self.pause_async())

    async def resume_async(self) -> Schedule:
        return await self._engine.schedules.resume(self.name)

    def resume(self) -> Schedule:
        """It fires again from now on. Times that passed meanwhile are not made up for."""
        return run_sync(self.resume_async())

    async def trigger_async(self) -> UUID:
        return await self._engine.schedules.trigger(self.name)

    def trigger(self) -> UUID:
        """Submits a task of it now, also while it is paused, and returns the task's id."""
        return run_sync(self.trigger_async())

    async def next_async(self, number: int = 1) -> list[datetime]:
        return await self._engine.schedules.next_times(self.name, number)

    def next(self, number: int = 1) -> list[datetime]:
        """Its next times. None while it is paused."""
        return run_sync(self.next_async(number))

    async def backfill_async(self, start: datetime, end: datetime) -> list[UUID]:
        return await self._engine.schedules.backfill(self.name, start, end)

    def backfill(self, start: datetime, end: datetime) -> list[UUID]:
        """Submits tasks for its times from `start` up to `end`, which must have passed, and returns their ids. Times
        that were fired before are not fired again."""
        return run_sync(self.backfill_async(start, end))

    async def delete_async(self) -> None:
        await self._engine.schedules.delete(self.name)

    def delete(self) -> None:
        """Its tasks stay. Refused while workers have it in their code."""
        run_sync(self.delete_async())


class ScheduleList:
    """What `schedules` is: the schedules of the default queue."""

    def __getitem__(self, name: str) -> ScheduleHandle:
        return ScheduleHandle(check_name(name), default_engine())

    async def all_async(self) -> list[Schedule]:
        return await default_engine().schedules.all()

    def all(self) -> list[Schedule]:
        """All, by name."""
        return run_sync(self.all_async())


schedules = ScheduleList()


class _Scheduler(Generic[P]):
    """A task type, a name and times: what is left to say are the arguments."""

    def __init__(self, task_type: TaskType, options: SubmitOptions, name: str, timing: Timing) -> None:
        self._task_type = task_type
        self._options = options
        self._name = check_name(name)
        self._timing = timing

    async def _put(self, call: Call, engine: Engine) -> ScheduleHandle:
        new = await engine.schedules.define(call, self._timing)
        await engine.schedules.put(self._name, new, operator=False)
        return ScheduleHandle(self._name, engine)

    def _call(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Call, Engine]:
        """Checked in the thread of the caller, whose code the checks may run."""
        engine = default_engine()
        arguments = self._task_type.bind(args, kwargs)
        call = Call(self._task_type.name, arguments, self._options, self._task_type, is_json=False)
        definition(call, self._timing, engine)
        return call, engine


class Scheduling(_Scheduler[P]):
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ScheduleHandle:
        """Validates the arguments and stores the schedule; returns once it is committed."""
        return run_sync(self._put(*self._call(*args, **kwargs)))


class AsyncScheduling(_Scheduler[P]):
    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ScheduleHandle:
        return await self._put(*self._call(*args, **kwargs))
