"""The JSON of charts and of grouped failures."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from tasklib.server.schemas import ResponseModel


class SeriesPoint(ResponseModel):
    at: datetime = Field(description="When the step began.")
    completed: int = 0
    failed: int = Field(default=0, description="For good.")
    cancelled: int = 0
    retried: int = Field(default=0, description="Attempts that failed and are tried again.")
    run_ms: int = Field(default=0, description="Time that handlers took, summed.")
    p50_ms: float | None = Field(default=None, description="Half of the attempts took no longer; null: none ran.")
    p95_ms: float | None = None
    p99_ms: float | None = None
    waited_p50_ms: float | None = Field(
        default=None,
        description="Half of the tasks whose first attempt ended waited no longer from when they were due to their "
        "first start; null: none ended.",
    )
    waited_p95_ms: float | None = None
    waited_p99_ms: float | None = None
    backlog_seconds: float | None = Field(
        default=None, description="How long the oldest due task had waited at most; null: no worker was there to look."
    )
    depth: int | None = Field(
        default=None, description="How many tasks were due and waited, at most; null: no worker was there to look."
    )
    arrived: int | None = Field(
        default=None,
        description="How many tasks came, also those for later, and by a retry by hand: what ended, and by how much "
        "more were unfinished than before. Null: not known, or not yet.",
    )


class Bucket(ResponseModel):
    up_to_ms: int | None = Field(description="Its upper bound; null: all that is longer.")
    count: int


class Distribution(ResponseModel):
    """Of lengths of time."""

    count: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    buckets: list[Bucket] = Field(description="Each from the bound before; all of them, the last without a bound.")


class VersionMark(ResponseModel):
    version: str = Field(description="Of the workers' application.")
    at: datetime = Field(description="When its first worker started.")


class Series(ResponseModel):
    minutes: int
    step_minutes: int
    until: datetime = Field(description="The end of the last step.")
    points: list[SeriesPoint] = Field(description="Every step, oldest first; one that has not passed is still growing.")
    run_time: Distribution = Field(description="How long attempts took, in the whole time.")
    waited: Distribution = Field(description="How long tasks waited from when they were due to their first start.")
    versions: list[VersionMark] = Field(description="Versions that were first started in this time.")


class FailureGroup(ResponseModel):
    """Failures with the same exception, raised at the same place."""

    error: str = Field(description="The class of the exception; empty: none is named.")
    place: str | None = Field(description="The file and the function that raised it; null: there is no traceback.")
    message: str = Field(description="The last line of the latest one.")
    count: int
    first_at: datetime
    latest_at: datetime
    types: list[str]
    ids: list[UUID] = Field(description="All of them, latest first.")


class Failures(ResponseModel):
    looked: int = Field(description="How many final failures were looked at, latest first.")
    capped: bool = Field(description="True: there may be older ones.")
    groups: list[FailureGroup] = Field(description="Largest first.")
