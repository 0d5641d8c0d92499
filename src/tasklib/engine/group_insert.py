"""Submits that wait go together: what arrives while a statement is under way is the next statement."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tasklib.core.errors import TRANSIENT, StoreClosed
from tasklib.core.task import NewTask
from tasklib.stores.protocol import WorkStore
from tasklib.stores.values import Inserted

MOST_TOGETHER = 500
MOST_PAYLOAD = 4 * 1024 * 1024
AT_ONCE = 4
"""Statements that are under way before others wait: while one is committed, the next can be on its way."""
PATIENCE_SECONDS = 0.25
"""Nobody queues behind statements that take longer than this: they may be stuck, and others need not be."""


class _Waiting(NamedTuple):
    task: NewTask
    dated: bool
    answer: asyncio.Future[Inserted]


class GroupInsert:
    """For tasks without keys and links: their inserts never wait for another's. A lone submit goes at once, and there
    is no timer. Where several are refused together, each goes again by itself, so that one harms no other. Belongs to
    one event loop."""

    def __init__(self, store: WorkStore) -> None:
        self._store = store
        self._waiting: deque[_Waiting] = deque()
        self._began: list[float] = []
        """When the statements began that are under way."""
        self._returning = False
        """Callers were answered together, and may come again in this turn of the loop."""
        self._writing: set[asyncio.Task[None]] = set()

    async def insert(self, task: NewTask, *, dated: bool) -> Inserted:
        if self._returning or self._under_way() >= AT_ONCE:
            answer: asyncio.Future[Inserted] = asyncio.get_running_loop().create_future()
            self._waiting.append(_Waiting(task, dated, answer))
            return await answer
        began = time.monotonic()
        self._began.append(began)
        try:
            [inserted] = await self._store.insert([task], dated=dated)
        finally:
            self._began.remove(began)
            self._start()
        return inserted

    def _under_way(self) -> int:
        now = time.monotonic()
        return sum(now - began < PATIENCE_SECONDS for began in self._began)

    def _start(self) -> None:
        batch = self._next()
        if batch:
            writing = asyncio.get_running_loop().create_task(self._write(batch))
            self._writing.add(writing)
            writing.add_done_callback(self._writing.discard)

    def _next(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < MOST_TOGETHER and size < MOST_PAYLOAD:
            each = self._waiting.popleft()
            if not each.answer.done():  # else its caller has gone
                batch.append(each)
                size += len(each.task.kwargs)
        return batch

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        began = time.monotonic()
        self._began.append(began)
        answers: Sequence[Inserted | BaseException] = [StoreClosed("the queue was closed")] * len(batch)
        try:
            answers = await self._insert(batch)
        finally:
            self._began.remove(began)
            for each, answer in zip(batch, answers, strict=True):
                if each.answer.done():
                    continue
                if isinstance(answer, BaseException):
                    each.answer.set_exception(answer)
                else:
                    each.answer.set_result(answer)
            # The callers run in the next turn of the loop; what they submit then goes together in the one after it.
            self._returning = True
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._returned)

    def _returned(self) -> None:
        self._returning = False
        self._start()

    async def _insert(self, batch: Sequence[_Waiting]) -> Sequence[Inserted | BaseException]:
        dated = any(each.dated for each in batch)
        try:
            return await self._store.insert([each.task for each in batch], dated=dated)
        except TRANSIENT as error:
            return [error] * len(batch)
        except Exception as error:
            if len(batch) == 1:
                return [error]
        return [answer for each in batch for answer in await self._insert([each])]
