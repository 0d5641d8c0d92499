"""Fleet-wide limits, inside the claim: permits are counted under the locks of the control rows, so they are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasklib.core.task import Claim
from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.connect import Connection

ALL = ""
"""The control row that is for all types together."""

_NO_LIMIT = 2**31 - 1


@dataclass(slots=True)
class _Bucket:
    """One limited name: the tokens of its rate, the free places of its concurrency."""

    rate: float | None
    concurrency: int | None
    tokens: float
    free: int = _NO_LIMIT
    taken: int = 0

    @property
    def permits(self) -> int:
        # A billionth off: the last bit of a fraction must not cost a round.
        by_rate = _NO_LIMIT if self.rate is None else math.floor(self.tokens + 1e-9)
        return max(0, min(by_rate, self.free))

    @property
    def next_in(self) -> float | None:
        if self.rate is None or self.tokens >= 1 or self.free <= 0:
            return None
        return (1 - self.tokens) / self.rate

    def take(self, count: int) -> None:
        self.taken += count
        self.tokens -= count
        self.free -= count


class Permits:
    """What the locked control rows allow, within one transaction."""

    def __init__(self, buckets: dict[str, _Bucket]) -> None:
        self._buckets = buckets

    @classmethod
    async def lock(cls, calls: Calls, connection: Connection, names: Sequence[str]) -> Permits:
        rows = await connection.fetch(calls.sql["lock_limits"], names, calls.offset)
        buckets = {name: _refilled(*values) for name, *values in rows}
        # After the lock, in a new snapshot: what the holder before us claimed must be in the count.
        counted = [name for name, bucket in buckets.items() if name != ALL and bucket.concurrency is not None]
        if counted:
            rows = await connection.fetch(calls.sql["count_running"], counted)
            running = dict(map(tuple, rows))
            for name in counted:
                buckets[name].free = (buckets[name].concurrency or 0) - running.get(name, 0)
        whole = buckets.get(ALL)
        if whole is not None and whole.concurrency is not None:
            whole.free = whole.concurrency - await connection.fetchval(calls.sql["count_all_running"])
        return cls(buckets)

    @property
    def names(self) -> list[str]:
        return list(self._buckets)

    def cap(self, name: str) -> int | None:
        bucket = self._buckets.get(name)
        return None if bucket is None else bucket.permits

    def spend(self, claims: Sequence[Claim]) -> None:
        """What the claim took. The control rows know it: the claim statement wrote it."""
        for claim in claims:
            if claim.name in self._buckets:
                self._buckets[claim.name].take(1)
        if ALL in self._buckets:
            self._buckets[ALL].take(len(claims))

    def next_in(self) -> float | None:
        """In how many seconds a rate that is used up gives its next permit, where that alone is wanting."""
        return min((wait for bucket in self._deciding() if (wait := bucket.next_in) is not None), default=None)

    @property
    def used(self) -> bool:
        return any(bucket.taken for bucket in self._buckets.values())

    @property
    def full(self) -> bool:
        """Something has to end before more of a name can start."""
        return any(bucket.free <= 0 for bucket in self._deciding())

    def _deciding(self) -> list[_Bucket]:
        """While there is no permit for anything, those of single names do not matter."""
        whole = self._buckets.get(ALL)
        return [whole] if whole is not None and not whole.permits else list(self._buckets.values())


def _refilled(
    rate: float | None, concurrency: int | None, tokens: float, refilled_at: datetime, now: datetime
) -> _Bucket:
    if rate is None:
        return _Bucket(None, concurrency, 0.0)
    elapsed = max(timedelta(0), now - refilled_at)
    return _Bucket(rate, concurrency, min(max(1.0, rate), tokens + rate * elapsed.total_seconds()))
