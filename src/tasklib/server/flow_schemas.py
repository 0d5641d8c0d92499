"""The JSON of /api/flows."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from tasklib.server.fields import Key, Name
from tasklib.server.schemas import (
    DEFAULT_PAGE,
    MOST_INPUTS,
    MOST_LINKS,
    ON,
    PAGE_LIMIT,
    VALIDATED,
    On,
    RequestModel,
    ResponseModel,
    SubmitOptions,
)

MOST_TASKS = 10_000
"""In one request."""


class FlowStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FlowTask(RequestModel):
    ref: Key = Field(description="What others of this flow name it by.")
    type: Name
    payload: Any = Field(description="As in a submit; what `inputs` bring may be left out, or be null.")
    options: SubmitOptions | None = None
    after: list[Key] | None = Field(
        default=None,
        max_length=MOST_LINKS,
        description="What it waits for: `ref`s of this flow, or ids of tasks that are there already.",
    )
    on: On | None = ON
    inputs: dict[str, Key] | None = Field(
        default=None,
        max_length=MOST_INPUTS,
        description="Where results go: a JSON pointer into the payload, and the `ref` or id whose result is put there. "
        "It waits for these, too.",
    )


class FlowSubmit(RequestModel):
    name: Name | None = None
    idempotency_key: Key | None = Field(default=None, description="One flow for each key, however often it is sent.")
    tasks: list[FlowTask] = Field(min_length=1, max_length=MOST_TASKS, description="In any order.")


class FlowSubmitted(ResponseModel):
    id: UUID
    created: bool = Field(description="False: its idempotency key was known, and this is the flow that it stands for.")
    tasks: dict[str, UUID] = Field(description="By `ref`; empty where the flow of this key has other tasks.")
    validated: bool = VALIDATED


class FlowCounts(ResponseModel):
    """Each task is in one of them."""

    pending: int = Field(default=0, description="Due, or scheduled.")
    waiting: int = Field(default=0, description="For other tasks.")
    processing: int = 0
    retrying: int = Field(default=0, description="Failed, with a retry to come.")
    completed: int = 0
    failed: int = Field(default=0, description="For good.")
    cancelled: int = 0


class FlowView(ResponseModel):
    id: UUID
    name: str | None
    created_at: datetime
    status: FlowStatus = Field(
        description="running: something of it is still to end. Else failed if a task failed, cancelled if one was."
    )
    counts: FlowCounts
    total: int


class FlowPage(ResponseModel):
    flows: list[FlowView]
    next_cursor: UUID | None = Field(description="Send as `cursor` for the next page; null at the end.")


class FlowNode(ResponseModel):
    """Tasks of one type that wait for the same nodes."""

    key: str
    type: str
    layer: int = Field(description="0: waits for nothing in this flow; else one behind the last of its parents.")
    parents: list[str] = Field(description="Keys of the nodes that it waits for.")
    counts: FlowCounts
    total: int
    task_id: UUID | None = Field(description="Where it is one task.")


class FlowGraph(ResponseModel):
    nodes: list[FlowNode]
    truncated: bool = Field(description="True: the flow has more tasks than are drawn.")


class FlowDetail(FlowView):
    graph: FlowGraph


class FlowsQuery(RequestModel):
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = DEFAULT_PAGE
    cursor: UUID | None = None
