"""Claim: one statement, one round trip, as long as no limit concerns it and nothing has just become due."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from tasklib.core.task import Claim
from tasklib.stores.postgres.calls import Calls, transaction
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.postgres.limits import ALL, Room
from tasklib.stores.values import Claimed, ClaimRequest

N = TypeVar("N", int, float)

_ROUNDS = 100
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the claim statement saw beside the tasks it claimed."""

    due_in: float | None = None
    """Seconds to the next due time among what is not ready; 0 or less: something waits for its promotion."""
    controlled: bool = False
    """A pause or a limit concerns the names."""
    uncounted: bool = False
    """It is the turn of something under a concurrency limit: what runs must be counted before it can be claimed."""
    permit_in: float | None = None
    full: bool = False
    stale: bool = False
    """Rows marked ready that are not claimable: edited by hand."""
    skipped: bool = False
    """Something is ready but was locked by somebody for the moment."""

    @property
    def unpromoted(self) -> bool:
        return self.due_in is not None and self.due_in <= 0


_Result = tuple[list[Claim], _Seen]


class Claims:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._promote_first = False
        self._controlled = False
        """A pause or a limit concerned the last claim: the next begins with the statement that knows of them."""
        self._count_first = False
        """There was room under a concurrency limit the last time: the next claim begins with the count."""
        self._look_again = _FIRST_LOOK

    async def claim(self, request: ClaimRequest) -> Claimed:
        # Each name once: the same row must not be picked for two of them.
        names = [name for name in dict.fromkeys(request.names) if request.per_name.get(name, 1) > 0]
        if request.slots + request.prefetch <= 0 or not names:
            return Claimed([], None)
        claims: list[Claim] = []
        seen = _Seen(uncounted=self._count_first)
        if not seen.uncounted:
            claims, seen = await self._calls.run(self._at_once(request, names), repeat=False)
        if seen.uncounted:
            more, seen = await self._calls.run(self._counted(request, names, claims), repeat=False)
            claims += more
        if len(claims) >= request.slots:
            self._look_again = _FIRST_LOOK
            return Claimed(claims, None)
        return Claimed(claims, self._next(seen))

    async def take(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        """One statement, unless a concurrency limit concerns the task. Safe to repeat after a lost reply: the version
        has moved then, and whoever asked finds the task to be theirs."""
        values = (task_id, version, worker_id, timedelta(seconds=lease_seconds), self._calls.offset)

        async def statement(connection: Connection, counted: Sequence[str]) -> Claim | str | None:
            found = await connection.fetchrow(self._calls.sql["take"], *values, counted)
            if found is None:
                return None
            *claim, uncounted = found
            return Claim._make(claim) if uncounted is None else str(uncounted)

        async def work(connection: Connection, timeout: float) -> Claim | None:
            async with asyncio.timeout(timeout):
                taken = await statement(connection, [])
            if not isinstance(taken, str):
                return taken
            async with transaction(connection, timeout):
                room = await Room.lock(self._calls, connection, [taken])
                taken = None if room.full else await statement(connection, room.names)
            return None if isinstance(taken, str) else taken

        return await self._calls.run(work)

    def _next(self, seen: _Seen) -> float | None:
        """When it is worth asking again. Where that depends on others, soon at first, then less and less often."""
        again = seen.permit_in
        if seen.skipped or seen.full or seen.unpromoted:
            again = _least(again, self._look_again)
            self._look_again = min(self._look_again * 2, _LONGEST_LOOK)
        else:
            self._look_again = _FIRST_LOOK
        return again if seen.unpromoted else _least(again, seen.due_in)

    def _at_once(
        self, request: ClaimRequest, names: Sequence[str]
    ) -> Callable[[Connection, float], Awaitable[_Result]]:
        async def work(connection: Connection, timeout: float) -> _Result:
            caps = [request.per_name.get(name) for name in names]
            async with asyncio.timeout(timeout):
                return await self._rounds(connection, request, names, caps, [], request.slots, request.prefetch)

        return work

    def _counted(
        self, request: ClaimRequest, names: Sequence[str], already: Sequence[Claim]
    ) -> Callable[[Connection, float], Awaitable[_Result]]:
        async def work(connection: Connection, timeout: float) -> _Result:
            async with transaction(connection, timeout):
                room = await Room.lock(self._calls, connection, names)
                wanted = _reduced(names, [request.per_name.get(name) for name in names], already)
                caps = [_least(most, room.cap(name)) for name, most in zip(names, wanted, strict=True)]
                slots, prefetch = request.slots - len(already), request.prefetch
                whole = room.cap(ALL)
                if whole is not None:
                    slots, prefetch = min(slots, whole), 0
                claims, seen = await self._rounds(connection, request, names, caps, room.names, slots, prefetch)
            room.fill(claims)
            self._count_first = room.used
            return claims, _Seen(
                due_in=seen.due_in,
                permit_in=seen.permit_in,
                # Limited since the count: ask again.
                full=seen.full or seen.uncounted or room.full,
                skipped=seen.skipped,
            )

        return work

    async def _rounds(
        self,
        connection: Connection,
        request: ClaimRequest,
        names: Sequence[str],
        caps: Sequence[int | None],
        counted: Sequence[str],
        slots: int,
        prefetch: int,
    ) -> _Result:
        """Claims until there is enough or no more. More than one round only where something had to be promoted first,
        or the statement for everyday met a control, or hand-edited rows were in the way."""
        calls = self._calls
        claims: list[Claim] = []
        seen = _Seen()
        lease = timedelta(seconds=request.lease_seconds)
        left = list(caps)
        force = self._promote_first
        if force:
            self._promote_first = await self._promote(connection)
        for _ in range(_ROUNDS):
            wanted = (slots - len(claims), slots + prefetch - len(claims))
            values = (names, left, *wanted, request.worker_id, lease, calls.offset, force)
            knowing = self._controlled or bool(counted)
            if knowing:
                *rows, last = await connection.fetch(calls.sql["claim_under_limits"], *values, counted)
            else:
                *rows, last = await connection.fetch(calls.sql["claim"], *values)
            claims += map(Claim._make, rows)
            seen = _Seen(**json.loads(last["kwargs"]))
            self._controlled = seen.controlled
            if len(claims) >= max(1, slots):
                break
            if seen.unpromoted and not force:
                self._promote_first = await self._promote(connection)
                force = True
            elif seen.stale:
                await connection.execute(calls.sql["demote"], calls.offset, names)
                left = _reduced(names, caps, claims)
            elif not seen.controlled or knowing:
                break
        return claims, seen

    async def _promote(self, connection: Connection) -> bool:
        """Makes ready what has become due. True where there was something: then the next claim begins with it."""
        status = await connection.execute(self._calls.sql["promote"], self._calls.offset)
        return bool(status != "UPDATE 0")


def _least(first: N | None, second: N | None) -> N | None:
    return first if second is None else second if first is None else min(first, second)


def _reduced(names: Sequence[str], caps: Sequence[int | None], claims: Sequence[Claim]) -> list[int | None]:
    taken: dict[str, int] = {}
    for claim in claims:
        taken[claim.name] = taken.get(claim.name, 0) + 1
    return [None if cap is None else max(0, cap - taken.get(name, 0)) for name, cap in zip(names, caps, strict=True)]
