"""The JSON of pauses and limits, and of task types."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from tasklib.server.fields import Concurrency, Flag, Rate, Shortest, TypeRate
from tasklib.server.schemas import Counts, RequestModel, ResponseModel


class Paused(ResponseModel):
    paused: bool


class RateLimit(RequestModel):
    tasks_per_second: Rate | None = Field(description="0 is unlimited; null gives the word back to the code.")


class RateLimitSet(ResponseModel):
    tasks_per_second: Shortest | None


class ControlView(ResponseModel):
    paused: bool = False
    rate_limit: Shortest | None = Field(default=None, description="What holds, in starts a second; null: no limit.")
    operator_rate_limit: Shortest | None = Field(default=None, description="Set by an operator; wins. 0 is no limit.")
    default_rate_limit: Shortest | None = Field(default=None, description="Set by the code.")
    concurrency: int | None = Field(default=None, description="Running at once in the whole fleet.")
    paused_by: str | None = Field(default=None, description="Who paused it; null: nobody, or code did.")
    paused_at: datetime | None = None


class ControlsView(ControlView):
    types: dict[str, ControlView]


class TypeView(ControlView):
    type: str
    queue: str | None = Field(description="As the server's own definition or a live worker tells it.")
    oldest_due_seconds: float | None = Field(description="How long its longest-waiting due task has been due.")
    workers: int = Field(description="Live workers that handle it.")
    registered: bool = Field(description="The server knows the type's arguments, and checks them.")
    handled: bool
    counts: Counts
    run_p95_ms: float | None = Field(description="95% of attempts of the last hour took no longer; null: none ran.")
    waited_p95_ms: float | None = Field(
        description="95% of its tasks waited no longer before their first start, in the last hour."
    )


class TypeDetail(TypeView):
    argument_schema: Any = Field(
        description="The JSON Schema of its arguments, by the server's own modules or as a worker published it; "
        "null: nobody has told."
    )


class Types(ResponseModel):
    types: list[TypeView]


class ControlSet(RequestModel):
    """What is left out stays as it is; null clears."""

    paused: Flag = False
    rate_limit: TypeRate | None = Field(
        default=None, description="Starts a second, above 0; null: what the code sets holds again."
    )
    concurrency: Concurrency | None = None
