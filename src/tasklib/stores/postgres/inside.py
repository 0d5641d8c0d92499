"""Claim, settle and look on the caller's own connection, inside the caller's transaction, whose tasks nobody else sees.

For tests that are rolled back. In steps that know nothing of the driver, as a submit on such a connection is.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from tasklib.core.decide import HISTORY_LIMIT, Change
from tasklib.core.errors import TaskConflict
from tasklib.core.task import Claim, Task
from tasklib.stores.postgres.callers import Steps, play
from tasklib.stores.postgres.settles import columns_of
from tasklib.stores.postgres.submits import Query

T = TypeVar("T")

_FIELDS = frozenset(field.name for field in fields(Task))
_INSTANTS = frozenset(name for name in _FIELDS if name.endswith("_at") or name == "locked_until")


class Inside:
    """One queue as one connection sees it. What an async connection gives is to be awaited."""

    def __init__(self, connection: object, sql: dict[str, str], clock_offset: float) -> None:
        self._connection = connection
        self._sql = sql
        self._offset = clock_offset

    def claim_next(
        self, names: Sequence[str], worker_id: str, lease_seconds: float
    ) -> Claim | Awaitable[Claim | None] | None:
        """The first that is due, by priority and age. Limits on what runs at once have no say in here."""
        return self._play(self._claiming(names, worker_id, lease_seconds))

    def claim(
        self, task_id: UUID, name: str, worker_id: str, lease_seconds: float
    ) -> Claim | Awaitable[Claim | None] | None:
        """A task that was just submitted, if it is due."""
        return self._play(self._taking(str(task_id), 0, [name], worker_id, lease_seconds))

    def settle(self, change: Change) -> Awaitable[None] | None:
        return self._play(self._settling(change))

    def tasks(self, *, name: str | None = None, task_id: UUID | None = None) -> list[Task] | Awaitable[list[Task]]:
        """Oldest first."""
        return self._play(self._looking(name, task_id))

    def _play(self, steps: Steps[T]) -> T | Awaitable[T]:
        return play(self._connection, steps, self._sql)

    def _claiming(self, names: Sequence[str], worker_id: str, lease_seconds: float) -> Steps[Claim | None]:
        rows = yield Query("next_inside", (json.dumps(list(names)), self._offset))
        if not rows:
            return None
        return (yield from self._taking(rows[0][0], rows[0][1], names, worker_id, lease_seconds))

    def _taking(
        self, task_id: str, version: int, names: Sequence[str], worker_id: str, lease_seconds: float
    ) -> Steps[Claim | None]:
        lease, offset = timedelta(seconds=lease_seconds), timedelta(seconds=self._offset)
        taken = yield Query("take", (UUID(task_id), version, worker_id, lease, offset, ["", *names]))
        if not taken:
            return None
        rows = yield Query("claim_inside", (task_id, worker_id))
        found = Claim._make((*rows[0], False, False))  # in here nothing is prefetched, and nobody's worker dies
        return found._replace(id=UUID(task_id), started_at=found.started_at.astimezone(UTC))

    def _settling(self, change: Change) -> Steps[None]:
        offset = timedelta(seconds=self._offset)
        rows = yield Query("settle", (*columns_of([change]), offset, HISTORY_LIMIT))
        if not rows:
            raise TaskConflict(f"task {change.id} was changed while it ran", task_id=change.id)

    def _looking(self, name: str | None, task_id: UUID | None) -> Steps[list[Task]]:
        rows = yield Query("tasks_inside", (name, None if task_id is None else str(task_id)))
        return [_task(json.loads(row[0])) for row in rows]


def _task(record: dict[str, Any]) -> Task:
    values = {name: value for name, value in record.items() if name in _FIELDS}
    for name in _INSTANTS & values.keys():
        if values[name] is not None:
            values[name] = datetime.fromisoformat(values[name]).astimezone(UTC)
    return Task(**{**values, "id": UUID(values["id"])})
