"""/api/failures: the latest failures, by what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from tasklib.core.error_group import ErrorGroup, group_of, last_line
from tasklib.core.redact import mask_text
from tasklib.server.docs import problems
from tasklib.server.fields import Name
from tasklib.server.figure_schemas import FailureGroup, Failures
from tasklib.server.schemas import RequestModel
from tasklib.server.service import Served
from tasklib.stores.values import ERROR_END, Failure

router = APIRouter(prefix="/api", tags=["figures"])

LOOKED_FAILURES = 1000
"""As many as a bulk action takes ids."""
LONGEST_MESSAGE = 300


class FailuresQuery(RequestModel):
    type: Name | None = None


@router.get("/failures", operation_id="list_failures", responses=problems())
async def failures(query: Annotated[FailuresQuery, Query()], service: Served) -> Failures:
    """The latest 1,000 final failures, of one type or of all, grouped by exception and place."""
    found = await service.engine.latest_failures(query.type, LOOKED_FAILURES)
    groups: dict[ErrorGroup, list[Failure]] = {}
    for each in found:
        groups.setdefault(group_of(_whole_lines(each.error)), []).append(each)
    shown = [_shown(group, members) for group, members in groups.items()]
    return Failures(
        looked=len(found),
        capped=len(found) == LOOKED_FAILURES,
        groups=sorted(shown, key=lambda each: (each.count, each.latest_at), reverse=True),
    )


def _shown(group: ErrorGroup, members: Sequence[Failure]) -> FailureGroup:
    return FailureGroup(
        error=mask_text(group.type),
        place=mask_text(group.place) or None,
        message=mask_text(last_line(_whole_lines(members[0].error)))[:LONGEST_MESSAGE],
        count=len(members),
        first_at=members[-1].completed_at,
        latest_at=members[0].completed_at,
        types=sorted({each.name for each in members}),
        ids=[each.id for each in members],
    )


def _whole_lines(error: str) -> str:
    """Without a line that was cut at its begin: half a secret would not be known for one."""
    return error if len(error) < ERROR_END else error.partition("\n")[2]
