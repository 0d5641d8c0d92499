"""Claim, settle and look on the caller's own connection, inside the caller's transaction, whose tasks nobody else sees.

For tests that are rolled back. In steps that know nothing of the driver, as a submit on such a connection is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from tasklib.core.decide import Change
from tasklib.core.errors import TaskConflict
from tasklib.core.flows import After, Parent
from tasklib.core.task import Claim, Task
from tasklib.stores.sql import flows, settle
from tasklib.stores.sql.columns import CLAIM, GUARD, TASK
from tasklib.stores.sql.postgres.driver import PostgresDriver
from tasklib.stores.sql.steps import Query, Steps

T = TypeVar("T")


class Inside:
    """One queue as one connection sees it. What an async connection gives is to be awaited."""

    def __init__(self, connection: object, calls: PostgresDriver) -> None:
        self._connection = connection
        self._calls = calls

    def claim_next(
        self, names: Sequence[str], worker_id: str, lease_seconds: float
    ) -> Claim | Awaitable[Claim | None] | None:
        """The first that is due, by priority and age. A pause holds; limits of the fleet have no say in here."""
        return self._play(self._claiming(names, worker_id, lease_seconds))

    def claim(self, task_id: UUID, worker_id: str, lease_seconds: float) -> Claim | Awaitable[Claim | None] | None:
        """A task that was just submitted, if it is due."""
        return self._play(self._taking_newest(task_id, worker_id, lease_seconds))

    def parents(self, ids: Sequence[UUID]) -> list[Parent] | Awaitable[list[Parent]]:
        """What became of tasks that others wait for."""
        return self._play(flows.parents(ids))

    def after_of(self, task_id: UUID) -> After | Awaitable[After | None] | None:
        """All that a task waits for."""
        return self._play(flows.after_of(task_id))

    def settle(self, change: Change) -> Awaitable[None] | None:
        return self._play(self._settling(change))

    def tasks(self, *, name: str | None = None, task_id: UUID | None = None) -> list[Task] | Awaitable[list[Task]]:
        """Oldest first."""
        return self._play(self._looking(name, task_id))

    def _play(self, steps: Steps[T]) -> T | Awaitable[T]:
        return self._calls.play_on(self._connection, lambda: steps)

    def _claiming(self, names: Sequence[str], worker_id: str, lease_seconds: float) -> Steps[Claim | None]:
        for task_id, version in (yield Query("next_inside", GUARD, names=list(names))):
            return (yield from self._taking(task_id, version, worker_id, lease_seconds))
        return None

    def _taking_newest(self, task_id: UUID, worker_id: str, lease_seconds: float) -> Steps[Claim | None]:
        for task in (yield from self._looking(None, task_id)):
            return (yield from self._taking(task_id, task.version, worker_id, lease_seconds))
        return None

    def _taking(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Steps[Claim | None]:
        lease = timedelta(seconds=lease_seconds)
        found: list[Claim] = yield Query(
            "claim_by_id", CLAIM, id=task_id, version=version, worker_id=worker_id, lease=lease, under_limits=True
        )
        # In here nothing is prefetched, and nobody's worker dies.
        return found[0]._replace(no_prefetch=False, isolated=False) if found else None

    def _settling(self, change: Change) -> Steps[None]:
        if (yield from settle.write([change])):
            raise TaskConflict(f"task {change.id} was changed while it ran", task_id=change.id)

    def _looking(self, name: str | None, task_id: UUID | None) -> Steps[list[Task]]:
        found: list[Task] = yield Query("tasks_inside", TASK, name=name, id=task_id)
        return found
