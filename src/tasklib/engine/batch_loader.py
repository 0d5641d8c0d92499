"""Reads that several callers need at the same moment, made once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Together(Generic[K, V]):
    """A caller alone reads at once. Of a crowd, those who ask in the same turn of the event loop share one read: nobody
    is given what was read before they asked, and nobody waits for a read that was under way then. Belongs to one event
    loop."""

    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Sequence[V]]]) -> None:
        self._read = read
        self._under_way = 0
        self._asked: list[tuple[K, asyncio.Future[V]]] = []
        self._readers: set[asyncio.Task[None]] = set()

    async def get(self, key: K) -> V:
        if not self._under_way:
            return (await self._reading([key]))[0]
        if not self._asked:
            reader = asyncio.create_task(self._read_for_all())
            self._readers.add(reader)
            reader.add_done_callback(self._readers.discard)
        # One for each: whoever gives up does so for themselves alone.
        answer: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        self._asked.append((key, answer))
        return await answer

    async def _read_for_all(self) -> None:
        asked, self._asked = self._asked, []
        try:
            found = await self._reading([key for key, _ in asked])
        except asyncio.CancelledError:
            for _, answer in asked:
                answer.cancel()
            raise
        except Exception as error:
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
        else:
            for (_, answer), value in zip(asked, found, strict=True):
                if not answer.done():
                    answer.set_result(value)

    async def _reading(self, keys: Sequence[K]) -> Sequence[V]:
        self._under_way += 1
        try:
            return await self._read(keys)
        finally:
            self._under_way -= 1
