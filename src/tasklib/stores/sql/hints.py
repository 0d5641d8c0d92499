"""How a request to stop is told between processes: a mark, and the ids of the tasks with commas between, or the id of
the worker."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tasklib.stores.values import CancelRequested, DrainRequested

MOST_NAMED = 10
"""Of more than these no id is told: whoever runs something looks for itself."""
_CANCEL = "-"
_DRAIN = "~"


def cancel_message(ids: Sequence[UUID]) -> str:
    return _CANCEL + ",".join(map(str, ids) if len(ids) <= MOST_NAMED else ())


def drain_message(worker_id: str) -> str:
    return _DRAIN + worker_id


def request_in(message: str) -> CancelRequested | DrainRequested | None:
    """None: it says something else."""
    mark, rest = message[:1], message[1:]
    if mark == _DRAIN:
        return DrainRequested(rest)
    try:
        return CancelRequested(tuple(map(UUID, rest.split(",") if rest else ()))) if mark == _CANCEL else None
    except ValueError:  # somebody else's word
        return None
