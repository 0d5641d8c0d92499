"""Submits that wait go together: what arrives while a statement is under way is the next statement."""

from __future__ import annotations

import asyncio
import threading
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


class _ThreadAnswer:
    """What a caller in another thread waits for. Set once; as much of a future as is needed here."""

    def __init__(self) -> None:
        self._inserted: Inserted | None = None
        self._error: BaseException | None = None
        self._given_up = False
        self._set = threading.Lock()
        self._set.acquire()

    def done(self) -> bool:
        """Nobody waits for it any more."""
        return self._given_up

    def set_result(self, inserted: Inserted) -> None:
        self._inserted = inserted
        self._set.release()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._set.release()

    def wait(self) -> Inserted:
        try:
            self._set.acquire()
        except BaseException:  # Ctrl-C
            self._given_up = True
            raise
        if self._inserted is None:
            assert self._error is not None
            raise self._error
        return self._inserted


class _Waiting(NamedTuple):
    task: NewTask
    dated: bool
    answer: asyncio.Future[Inserted] | _ThreadAnswer


class GroupInsert:
    """For tasks without keys and links: their inserts never wait for another's. A lone submit goes at once, and there
    is no timer. Where several are refused together, each goes again by itself, so that one harms no other. Belongs to
    one event loop; other threads may hand it tasks."""

    def __init__(self, store: WorkStore) -> None:
        self._store = store
        self._waiting: deque[_Waiting] = deque()
        self._began: list[float] = []
        """When the statements began that are under way."""
        self._returning = False
        """Callers were answered together, and may come again in this turn of the loop."""
        self._writing: set[asyncio.Task[None]] = set()
        self._from_threads: deque[_Waiting] = deque()
        self._loop_called = False
        """The loop was called to take over what came from threads, and has not begun to."""

    async def insert(self, task: NewTask, *, dated: bool) -> Inserted:
        if self._returning or (self._began and self._under_way() >= AT_ONCE):
            answer: asyncio.Future[Inserted] = asyncio.get_running_loop().create_future()
            self._waiting.append(_Waiting(task, dated, answer))
            return await answer
        began = time.monotonic()
        self._began.append(began)
        try:
            [inserted] = await self._store.insert([task], dated=dated)
        finally:
            self._began.remove(began)
            if self._waiting:
                self._start()
        return inserted

    def insert_from_thread(self, task: NewTask, loop: asyncio.AbstractEventLoop) -> Inserted:
        """The same for sync code, in another thread than the loop's. The loop is called once for all tasks that come
        before it gets there: calling it takes longer than all the rest."""
        answer = _ThreadAnswer()
        self._from_threads.append(_Waiting(task, False, answer))
        if not self._loop_called:
            self._loop_called = True
            loop.call_soon_threadsafe(self._take_over)
        return answer.wait()

    def _take_over(self) -> None:
        self._loop_called = False  # first: what comes from here on calls again
        while self._from_threads:
            self._waiting.append(self._from_threads.popleft())
        if not self._returning and self._under_way() < AT_ONCE:
            self._start()

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
