"""Fleet-wide limits, inside the claim: permits are counted under the lock of the control rows, so they are exact.

What is cached here is only when it is worth asking again. A stale cache is safe: the claim statement itself leaves out
limited names for which it was given no permits, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tasklib.core.task import Claim
from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.connect import Connection

ALL = ""
"""The control row that is for all types together."""

_REST = 0.025
"""Limited names are asked for at most this often: it bounds what a limit on one type costs the others."""
_LONGEST_REST = 0.5


@dataclass(slots=True)
class _Gate:
    """What is known of one limited name."""

    shut_until: float = 0.0
    full_for: float = _REST
    """How long to rest when the permits are all in use elsewhere; grows while that stays so."""
    full: bool = False


class Limits:
    """The gates of one store. `now` is monotonic time throughout."""

    def __init__(self) -> None:
        self._gates: dict[str, _Gate] = {}

    def note(self, names: Iterable[str]) -> None:
        """The claim met limited names that were not known to be limited."""
        for name in names:
            self._gates.setdefault(name, _Gate())

    def split(self, names: Iterable[str], now: float) -> tuple[list[str], bool, float | None]:
        """The names to ask for now, whether a limit concerns any of them, and in how many seconds a name that was left
        out may be asked for again."""
        if not self._gates:
            return list(names), False, None
        whole = self._gates.get(ALL)
        if whole is not None and whole.shut_until > now:
            return [], False, whole.shut_until - now
        asked, again = [], None
        limited = whole is not None
        for name in names:
            gate = self._gates.get(name)
            if gate is not None and gate.shut_until > now:
                again = min(again or math.inf, gate.shut_until - now)
                continue
            limited = limited or gate is not None
            asked.append(name)
        return asked, limited, again

    def freed(self) -> None:
        """Something of ours ended: a permit may be free."""
        for gate in self._gates.values():
            if gate.full:
                gate.full, gate.shut_until, gate.full_for = False, 0.0, _REST

    def learn(self, permits: Permits, names: Iterable[str], now: float) -> float | None:
        """Shuts gates after a claim under limits; returns in how many seconds more may be had of what ran out."""
        for name in (ALL, *names):
            if name not in permits.buckets:
                self._gates.pop(name, None)  # not limited any more
        again: float | None = None
        for name, bucket in permits.buckets.items():
            gate = self._gates.setdefault(name, _Gate())
            wait = _REST
            ran_out = False
            gate.full = bucket.free is not None and bucket.free <= 0
            if gate.full:
                wait, ran_out = gate.full_for, True
                gate.full_for = min(gate.full_for * 2, _LONGEST_REST)
            else:
                gate.full_for = _REST
            if bucket.rate is not None and bucket.tokens < 1:
                wait, ran_out = max(wait, (1 - bucket.tokens) / bucket.rate), True
            gate.shut_until = now + wait
            if ran_out:
                again = min(again or math.inf, wait)
        return again


@dataclass(slots=True)
class _Bucket:
    rate: float | None
    concurrency: int | None
    tokens: float
    refilled_at: datetime
    free: int | None = None
    """Permits of the concurrency limit that are left."""
    taken: int = 0

    @property
    def permits(self) -> int:
        """How many may start now; a number that no claim reaches where there is no limit of a kind."""
        by_rate = math.floor(self.tokens) if self.rate is not None else 2**31 - 1
        return max(0, min(by_rate, self.free if self.free is not None else 2**31 - 1))

    def take(self, count: int) -> None:
        self.taken += count
        self.tokens -= count
        if self.free is not None:
            self.free -= count


class Permits:
    """What the locked control rows allow, within one transaction."""

    def __init__(self, buckets: dict[str, _Bucket]) -> None:
        self.buckets = buckets

    @classmethod
    async def lock(cls, calls: Calls, connection: Connection, names: Sequence[str], timeout: float) -> Permits:
        rows = await connection.fetch(calls.sql["lock_limits"], names, calls.offset, timeout=timeout)
        buckets = {name: _refilled(*values) for name, *values in rows}
        counted = [name for name, bucket in buckets.items() if bucket.concurrency is not None]
        # After the lock, in a new snapshot: what the holder before us claimed must be in the count.
        if any(counted):
            rows = await connection.fetch(calls.sql["count_running"], counted, timeout=timeout)
            running = dict(map(tuple, rows))
            for name in filter(None, counted):
                buckets[name].free = (buckets[name].concurrency or 0) - running.get(name, 0)
        if ALL in counted:
            total = await connection.fetchval(calls.sql["count_all_running"], timeout=timeout)
            buckets[ALL].free = (buckets[ALL].concurrency or 0) - total
        return cls(buckets)

    def cap(self, name: str) -> int | None:
        bucket = self.buckets.get(name)
        return bucket.permits if bucket is not None else None

    async def spend(self, calls: Calls, connection: Connection, claims: Sequence[Claim], timeout: float) -> None:
        for claim in claims:
            if claim.name in self.buckets:
                self.buckets[claim.name].take(1)
        if ALL in self.buckets:
            self.buckets[ALL].take(len(claims))
        spent = [(name, bucket) for name, bucket in self.buckets.items() if bucket.taken and bucket.rate is not None]
        if spent:
            columns = (
                [name for name, _ in spent],
                [bucket.tokens for _, bucket in spent],
                [bucket.refilled_at for _, bucket in spent],
            )
            await connection.execute(calls.sql["spend"], *columns, timeout=timeout)


def _refilled(rate: float | None, concurrency: int | None, tokens: float, refilled_at: datetime, now: Any) -> _Bucket:
    if rate is None:
        return _Bucket(None, concurrency, 0.0, refilled_at)
    elapsed = max(timedelta(0), now - refilled_at)
    filled = min(max(1.0, rate), tokens + rate * elapsed.total_seconds())
    return _Bucket(rate, concurrency, filled, max(now, refilled_at))
