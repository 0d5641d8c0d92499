"""The JSON of /api/schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from tasklib.core.cron import LONGEST_EXPRESSION, Missed, Overlap
from tasklib.core.schedules import RUNS_KEPT
from tasklib.server.fields import Name, Number, SearchText, Shortest
from tasklib.server.schemas import PAGE_LIMIT, CommonOptions, RequestModel, ResponseModel

Expression = Annotated[str, Field(min_length=1, max_length=LONGEST_EXPRESSION)]
TIMES = "minute, hour, day of month, month, day of week; or @daily and the like."
LATE = "Seconds after its time for which a slot is still worth firing; null: always."


class TimingFields(RequestModel):
    cron: Expression | None = Field(default=None, description=f"Either this or `every`: {TIMES}")
    every: Number | None = Field(default=None, description="Seconds, from 1.")
    timezone: SearchText | None = Field(default=None, description="Of `cron`, such as Europe/Berlin; UTC unless given.")


class ScheduleSet(TimingFields):
    type: Name | None = Field(default=None, description="Left out with `payload`: only the times are changed.")
    payload: Any = Field(
        default=None, description="Any JSON value; for a type that is known or published, its arguments."
    )
    missed: Missed | None = Field(default=None, description="Times that nobody was up for; latest unless given.")
    late: Number | None = Field(default=None, description=LATE)
    overlap: Overlap | None = Field(default=None, description="With an earlier task that is not over; else allow.")
    jitter: Number | None = Field(default=None, description="Seconds over which starts are spread; 0 unless given.")
    options: CommonOptions | None = None


class RunView(ResponseModel):
    slot: datetime = Field(description="The time that was fired.")
    fired_at: datetime
    task_id: UUID
    created: bool = Field(description="False: left out, because this earlier task was not over.")
    status: str | None = Field(description="What became of the task; null: it was deleted.")


class ShownOptions(ResponseModel):
    max_attempts: int
    priority: int
    tags: dict[str, Any]
    timeout_seconds: int | None


class ScheduleView(ResponseModel):
    name: str
    type: str | None = Field(description="Null, with all up to `options`: its definition cannot be read.")
    payload: Any
    cron: str | None
    every: Shortest | None
    timezone: str | None
    words: str | None = Field(description="Its times for people: at 03:30 on weekdays, Europe/Berlin.")
    missed: str | None
    late: Shortest | None
    overlap: str | None
    jitter: Shortest | None
    options: ShownOptions | None
    paused: bool
    orphaned: bool = Field(description="No worker has had it in its code for a day: it does not fire.")
    declared: bool = Field(description="The code says it, too.")
    declared_at: datetime | None = Field(
        description="When a worker last had it in its code; null: it does not depend on workers' code."
    )
    edited: bool = Field(description="An operator said what is shown; what the code says waits until that is cleared.")
    next_at: datetime | None = Field(description="Null while it is paused.")
    runs: list[RunView] = Field(description="The latest, newest last.")
    fired_total: int
    missed_total: int = Field(description="Times that passed and were not made up for.")
    lateness_seconds: float | None = Field(description="How long after its time the latest was fired.")
    created_at: datetime | None
    updated_at: datetime | None


class ScheduleDetail(ScheduleView):
    next_times: list[datetime] = Field(description="When it fires next; empty while it is paused.")


class SchedulesQuery(RequestModel):
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = 50
    cursor: Name | None = Field(default=None, description="The name to continue behind.")
    runs: Annotated[int, Field(ge=0, le=RUNS_KEPT, description="How many of the latest runs to tell of.")] = 1


class SchedulePage(ResponseModel):
    schedules: list[ScheduleView]
    total: int
    next_cursor: str | None = Field(description="Send as `cursor` for the next page; null at the end.")


class TimesQuery(RequestModel):
    times: Annotated[int, Field(ge=1, le=100, description="How many of the next times to tell.")] = 5


class PreviewQuery(TimingFields):
    every: Annotated[float | None, Field(description="Seconds, from 1.", allow_inf_nan=False)] = None
    times: Annotated[int, Field(ge=1, le=100)] = 10


class Preview(ResponseModel):
    words: str
    times: list[datetime] = Field(description="In the time zone, with its offset.")


class Triggered(ResponseModel):
    id: UUID = Field(description="Of the task.")
