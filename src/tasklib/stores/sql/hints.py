"""How a request to cancel is told between processes: a mark, and the ids of the tasks with commas between."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tasklib.stores.values import CancelRequested

MOST_NAMED = 10
"""Of more than these no id is told: whoever runs something looks for itself."""
_MARK = "-"


def cancel_message(ids: Sequence[UUID]) -> str:
    return _MARK + ",".join(map(str, ids) if len(ids) <= MOST_NAMED else ())


def cancel_requested(message: str) -> CancelRequested | None:
    """None: it says something else."""
    mark, ids = message[:1], message[1:]
    try:
        return CancelRequested(tuple(map(UUID, ids.split(",") if ids else ()))) if mark == _MARK else None
    except ValueError:  # somebody else's word
        return None
