"""Claim: one statement, one round trip, as long as nothing is limited and nothing has just become due."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from tasklib.core.task import Claim
from tasklib.stores.base import Claimed, ClaimRequest
from tasklib.stores.postgres.calls import Calls, transaction
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.postgres.limits import ALL, Limits, Permits

N = TypeVar("N", int, float)

_ROUNDS = 100
_FIRST_SKIP = 0.02
_LONGEST_SKIP = 1.0


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the claim statement saw beside the tasks it claimed."""

    due_in: float | None
    """Seconds to the next due time among what is not ready; 0 or less: something waits for its promotion."""
    limited: tuple[str, ...]
    """Asked for, limited, and left out because this claim held no permits."""
    stale: bool
    """Rows marked ready that are not claimable: edited by hand."""
    skipped: bool
    """Something is ready but was locked by somebody for the moment."""


class Claims:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._limits = Limits()
        self._promote_first = False
        self._skip = _FIRST_SKIP

    def freed(self) -> None:
        self._limits.freed()

    async def claim(self, request: ClaimRequest) -> Claimed:
        now = asyncio.get_running_loop().time()
        wanted = [name for name in request.names if request.per_name.get(name, 1) > 0]
        names, limited, again = self._limits.split(wanted, now)
        if request.slots <= 0 or not names:
            return Claimed([], again)
        claims: list[Claim] = []
        if not limited:
            claims, seen = await self._calls.run(self._unlimited(request, names), repeat=False)
            self._limits.note(seen.limited)
            rest = request.slots - len(claims)
            if not seen.limited or rest <= 0:
                return Claimed(claims, self._next(request, claims, seen, again))
            names = names if ALL in seen.limited else list(seen.limited)
        more, seen, permits = await self._calls.run(self._under_limits(request, names, len(claims)), repeat=False)
        claims += more
        over = self._limits.learn(permits, names, asyncio.get_running_loop().time())
        return Claimed(claims, _least(self._next(request, claims, seen, again), over))

    def _next(self, request: ClaimRequest, claims: Sequence[Claim], seen: _Seen, again: float | None) -> float | None:
        if len(claims) >= request.slots:
            self._skip = _FIRST_SKIP
            return None
        if seen.skipped:
            again = _least(again, self._skip)
            self._skip = min(self._skip * 2, _LONGEST_SKIP)
        else:
            self._skip = _FIRST_SKIP
        # What is due and still not promoted is locked by somebody, or there is more of it than one promotion takes.
        return _least(again, None if seen.due_in is None else max(seen.due_in, _FIRST_SKIP))

    def _unlimited(self, request: ClaimRequest, names: Sequence[str]) -> Any:
        caps = [request.per_name.get(name) for name in names]

        async def work(connection: Connection, timeout: float) -> tuple[list[Claim], _Seen]:
            return await self._rounds(connection, timeout, request, names, caps, [], request.slots, request.prefetch)

        return work

    def _under_limits(self, request: ClaimRequest, names: Sequence[str], already: int) -> Any:
        async def work(connection: Connection, timeout: float) -> tuple[list[Claim], _Seen, Permits]:
            async with transaction(connection, timeout):
                permits = await Permits.lock(self._calls, connection, names, timeout)
                caps = [_least(request.per_name.get(name), permits.cap(name)) for name in names]
                slots, prefetch = request.slots - already, request.prefetch
                whole = permits.cap(ALL)
                if whole is not None:
                    slots, prefetch = min(slots, whole), 0
                claims, seen = await self._rounds(
                    connection, timeout, request, names, caps, list(permits.buckets), slots, prefetch
                )
                await permits.spend(self._calls, connection, claims, timeout)
            return claims, seen, permits

        return work

    async def _rounds(
        self,
        connection: Connection,
        timeout: float,
        request: ClaimRequest,
        names: Sequence[str],
        caps: Sequence[int | None],
        permitted: Sequence[str],
        slots: int,
        prefetch: int,
    ) -> tuple[list[Claim], _Seen]:
        """Claims until there is enough or no more. More than one round only where something had to be promoted first,
        or hand-edited rows were in the way."""
        calls = self._calls
        claims: list[Claim] = []
        seen = _Seen(None, (), False, False)
        lease = timedelta(seconds=request.lease_seconds)
        left = list(caps)
        force = self._promote_first
        if force:
            self._promote_first = await self._promote(connection, timeout)
        for _ in range(_ROUNDS):
            *rows, last = await connection.fetch(
                calls.sql["claim"],
                names,
                left,
                permitted,
                slots - len(claims),
                slots + prefetch - len(claims),
                request.worker_id,
                lease,
                calls.offset,
                force,
                timeout=timeout,
            )
            claims += map(Claim._make, rows)
            seen = _seen(last["kwargs"])
            if len(claims) >= slots or not (seen.stale or (not force and seen.due_in is not None and seen.due_in <= 0)):
                return claims, seen
            if seen.stale:
                await connection.execute(calls.sql["demote"], calls.offset, names, timeout=timeout)
                left = _reduced(names, caps, claims)
            if not force:
                self._promote_first = await self._promote(connection, timeout)
                force = True
        return claims, seen

    async def _promote(self, connection: Connection, timeout: float) -> bool:
        """Makes ready what has become due. True where there was something: then the next claim begins with it."""
        status = await connection.execute(self._calls.sql["promote"], self._calls.offset, timeout=timeout)
        return bool(status != "UPDATE 0")


def _seen(text: str) -> _Seen:
    values = json.loads(text)
    return _Seen(values["due_in"], tuple(values["limited"] or ()), values["stale"], values["skipped"])


def _least(first: N | None, second: N | None) -> N | None:
    return first if second is None else second if first is None else min(first, second)


def _reduced(names: Sequence[str], caps: Sequence[int | None], claims: Sequence[Claim]) -> list[int | None]:
    taken: dict[str, int] = {}
    for claim in claims:
        taken[claim.name] = taken.get(claim.name, 0) + 1
    return [None if cap is None else max(0, cap - taken.get(name, 0)) for name, cap in zip(names, caps, strict=True)]
