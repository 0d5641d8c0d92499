"""The JSON of claims, in camelCase."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from tasklib.core.checks import INT32
from tasklib.core.claims import LONGEST_LEASE, SHORTEST_LEASE, WORKER_ID_LIMIT
from tasklib.server.fields import Flag, Name, Number, Whole
from tasklib.server.schemas import PAGE_LIMIT, Problem, RequestModel, ResponseModel

LONGEST_WAIT = 25
"""Seconds; less than a request may take."""
DEFAULT_TYPE = "default"

assert WORKER_ID_LIMIT == 255, "a worker id is checked like a name"
WorkerId = Name
Lease = Annotated[Number, Field(ge=SHORTEST_LEASE, le=LONGEST_LEASE)]
Version = Annotated[Whole, Field(ge=0, le=INT32)]

_LEASE = "How long the claim lasts unless it is extended; the queue's own lease unless given."


class ClaimNext(RequestModel):
    worker_id: WorkerId = Field(description="A name of the worker's own; only under it can the claim be settled.")
    types: Annotated[list[Name], Field(min_length=1, max_length=1000)] = Field(
        default=[DEFAULT_TYPE], description="Only tasks of these types."
    )
    limit: Annotated[Whole, Field(ge=1, le=PAGE_LIMIT)] = 1
    lease_seconds: Lease | None = Field(default=None, description=_LEASE)
    wait_seconds: Annotated[Number, Field(ge=0, le=LONGEST_WAIT)] = Field(
        default=0, description="With nothing due: answer when there is something, or after so long."
    )


class ClaimOne(RequestModel):
    worker_id: WorkerId
    lease_seconds: Lease | None = Field(default=None, description=_LEASE)


class Held(RequestModel):
    """Whose claim it is, and which."""

    worker_id: WorkerId
    version: Version | None = Field(
        default=None, description="As the claim had it: then a later claim under the same name is not touched."
    )


class Complete(Held):
    result: Any = Field(default=None, description="Any JSON value.")


class Fail(Held):
    error: str
    retryable: Flag = Field(default=True, description="False: failed for good, whatever attempts are left.")


class Extend(Held):
    lease_seconds: Lease | None = Field(default=None, description=_LEASE)


class ClaimView(ResponseModel):
    """A task that is this worker's until `lockedUntil`. Nothing in it is masked."""

    id: UUID
    type: str
    payload: Any
    worker_id: str
    version: int = Field(description="What the claim is known by.")
    attempts: int = Field(description="1 for the first attempt.")
    max_attempts: int = Field(description="0 is unlimited.")
    claimed_at: datetime | None
    locked_until: datetime | None
    created_at: datetime
    priority: int
    tags: dict[str, Any]
    timeout_seconds: int | None = Field(description="What whoever submitted it allows; the worker sees to it.")
    idempotency_key: str | None
    error: str | None = Field(description="Of the attempt before, if that failed.")
    cancel_requested: bool = Field(description="True: stop. What does not complete now ends cancelled.")


class Claims(ResponseModel):
    claims: list[ClaimView]


class Settled(ResponseModel):
    id: UUID
    status: str = Field(description="pending, completed, failed or cancelled.")
    attempts: int
    will_retry: bool = Field(description="True: the task will be claimable again.")


class ClaimConflict(Problem):
    """The claim is not, or no longer, this worker's."""

    version: int | None = Field(default=None, description="The task's version now.")
    worker_id: str | None = Field(default=None, description="The worker that has it now.")
