"""Concurrency limits of the fleet, exact: the control rows are locked first, and what runs is counted after that, in a
snapshot that holds what the holder of the lock before us claimed. (Rates need no count: the claim sees to them.)"""

from __future__ import annotations

from collections.abc import Sequence

from tasklib.core.task import Claim
from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.connect import Connection

ALL = ""
"""The control row that is for all types together."""


class Room:
    """How many more of each limited name may run, within one transaction."""

    def __init__(self, free: dict[str, int]) -> None:
        self._free = free
        self._left = dict(free)

    @classmethod
    async def lock(cls, calls: Calls, connection: Connection, names: Sequence[str]) -> Room:
        limits = dict(map(tuple, await connection.fetch(calls.sql["lock_concurrency"], names)))
        running = dict(map(tuple, await connection.fetch(calls.sql["count_running"], list(limits))))
        if ALL in limits:
            running[ALL] = await connection.fetchval(calls.sql["count_all_running"])
        return cls({name: max(0, limit - running.get(name, 0)) for name, limit in limits.items()})

    @property
    def names(self) -> list[str]:
        return list(self._free)

    def cap(self, name: str) -> int | None:
        return self._free.get(name)

    def fill(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            for name in (claim.name, ALL):
                if name in self._left:
                    self._left[name] -= 1

    @property
    def used(self) -> bool:
        return self._left != self._free

    @property
    def full(self) -> bool:
        """Something has to end before more of a name can start."""
        return any(left <= 0 for left in self._left.values())
