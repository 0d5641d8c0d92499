"""The cache: what this store knows of the bucket without asking. Started when it is wanted, no larger than wanted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any
from uuid import UUID

from tasklib.core.errors import StoreClosed, StoreError
from tasklib.core.limits import ALL, Control
from tasklib.stores.listeners import Listeners
from tasklib.stores.nats import keys, limits
from tasklib.stores.nats.all_tasks import AllTasks
from tasklib.stores.nats.failures import PASSING
from tasklib.stores.nats.feed import Feed
from tasklib.stores.nats.index import Index
from tasklib.stores.nats.kv import KeyValueStore
from tasklib.stores.nats.record import NOTE, Note, decode, read_note
from tasklib.stores.values import CancelRequested, DrainRequested, Hint

log = logging.getLogger("tasklib.store")

_BATCH_SECONDS = 0.25
"""How long the rest of a batch is waited for, where its last message may be gone."""

_Change = tuple[int, str, dict[str, str]]


class Depth(IntEnum):
    """How much is known."""

    NEWS = 1
    """What changes from now on: for those who wait."""
    ACTIVE = 2
    """Also what waits and what runs: for those who claim."""
    EVERYTHING = 3
    """Also what is finished: for those who list."""


class TaskCache:
    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv
        self._depth = 0
        self._feed: Feed | None = None
        self._starting = asyncio.Lock()
        self._goals: list[tuple[int, asyncio.Future[None]]] = []
        self._unfinished: list[_Change] = []
        self.listeners = Listeners(self._attend, self._attentive)
        self._news: set[str | UUID | DrainRequested | None] = set()
        """Names of types, ids of tasks that were asked to stop, workers that were asked to drain, None for anything."""
        self._jobs: set[asyncio.Task[None]] = set()
        self.moved: Callable[[bytes, int], None] = lambda task, sequence: None
        """Told of each new revision of a task."""
        self.index = Index(kv.clock.earliest_micros)
        self.all_tasks: AllTasks | None = None
        self.controls: dict[str, tuple[int, Control]] = {}

    # -- life ---------------------------------------------------------------------------------------------------------

    async def get_or_raise(self, depth: Depth) -> None:
        if depth <= self._depth:
            return
        async with self._starting:
            if depth <= self._depth:
                return
            if self._feed is not None:
                await self._feed.stop()
            self._depth = depth
            self._clear()
            self._feed = Feed(self._kv, self._changed, self._current, self._clear, only_new=depth is Depth.NEWS)
            self._feed.start()

    def want(self, depth: Depth) -> None:
        """The same in the background."""
        if depth > self._depth:
            self._spawn(self.get_or_raise(depth))

    async def close(self) -> None:
        self.listeners.close()
        for job in list(self._jobs):
            job.cancel()
        async with self._starting:
            feed, self._feed = self._feed, None
            if feed is not None:
                await feed.stop()
        for _, goal in self._goals:
            if not goal.done():
                goal.set_exception(StoreClosed("the store was closed during the call"))

    def _clear(self) -> None:
        self._unfinished.clear()
        self.index = Index(self._kv.clock.earliest_micros)
        self.all_tasks = AllTasks() if self._depth == Depth.EVERYTHING else None
        self.controls = {}

    # -- keeping up ---------------------------------------------------------------------------------------------------

    async def sync(self, depth: Depth = Depth.ACTIVE) -> None:
        """Until everything is known that was in the bucket when this was called."""
        await self.get_or_raise(depth)
        goal: int = (await self._kv.info())["state"]["last_seq"]
        await self.reach(goal)

    async def reach(self, goal: int) -> None:
        while True:
            feed = self._feed
            if feed is None:
                raise StoreClosed("the store was closed during the call")
            if not feed.caught_up or feed.seen < goal:
                waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._goals.append((goal, waiting))
                await waiting
                continue
            if not self._unfinished:
                return
            waiting = asyncio.get_running_loop().create_future()
            self._goals.append((feed.seen + 1, waiting))
            try:
                async with asyncio.timeout(_BATCH_SECONDS):
                    await waiting
            except TimeoutError:
                self._finish()

    def _current(self, anew: bool) -> None:
        if self.all_tasks is not None:
            self.all_tasks.loaded()
        if anew:
            self._wake(None)  # something may have come before anybody heard it
        self._settle_goals()

    def _settle_goals(self) -> None:
        feed = self._feed
        if not self._goals or feed is None or not feed.caught_up:
            return
        left = []
        for goal, waiting in self._goals:
            if waiting.done():
                continue
            if goal <= feed.seen:
                waiting.set_result(None)
            else:
                left.append((goal, waiting))
        self._goals = left

    def _changed(self, sequence: int, subject: str, headers: dict[str, str]) -> None:
        """A batch shows when its last message is there, as it was written: all or none."""
        batch = headers.get("Nats-Batch-Id")
        if self._unfinished and self._unfinished[0][2]["Nats-Batch-Id"] != batch:
            self._finish()
        if batch is not None and "Nats-Batch-Commit" not in headers:
            self._unfinished.append((sequence, subject, headers))
            return
        self._finish()
        self._apply(sequence, subject, headers)
        if self._goals:
            self._settle_goals()

    def _finish(self) -> None:
        if self._unfinished:
            changes, self._unfinished = self._unfinished, []
            for change in changes:
                self._apply(*change)

    # -- changes ------------------------------------------------------------------------------------------------------

    def _apply(self, sequence: int, subject: str, headers: dict[str, str]) -> None:
        key = subject[len(self._kv.address.prefix) :]
        deleted = "KV-Operation" in headers
        if key.startswith(keys.TASK):
            try:
                task = bytes.fromhex(key[len(keys.TASK) :].replace("-", ""))
            except ValueError:
                return
            if len(task) != 16:
                return
            note = None if deleted else read_note(headers)
            if note is None and not deleted:
                self._spawn(self._look(UUID(bytes=task), sequence))
                return
            self._task_changed(task, note, sequence)
        elif key.startswith(keys.CONTROL):
            name = keys.text_of(key[len(keys.CONTROL) :])
            if deleted or NOTE not in headers:
                self.controls.pop(name, None)
            else:
                self.controls[name] = (sequence, limits.decode(name, headers[NOTE]))
            self._wake(None)
        elif key.startswith(keys.SCHEDULE) and NOTE in headers:
            self._wake(None)
        elif key.startswith(keys.WORKER) and NOTE in headers:
            self._wake(DrainRequested(keys.text_of(key[len(keys.WORKER) :])))

    def _task_changed(self, task: bytes, note: Note | None, sequence: int) -> None:
        self.moved(task, sequence)
        if self._depth > Depth.NEWS:
            left = self.index.running.get(task)
            if note is None:
                self.index.remove(task)
            elif self.index.put(task, note):
                self._wake(note.name)
            if left is not None and self._has_room_limit(left.name):
                self._wake(left.name)
            if self.all_tasks is not None:
                if note is None:
                    self.all_tasks.remove(task)
                else:
                    self.all_tasks.put(task, note)
        elif note is not None and note.claimable and note.is_due(self._kv.clock.earliest_micros()):
            self._wake(note.name)
        if note is not None and note.cancel_requested:
            self._wake(UUID(bytes=task))
        if self.listeners.waiting and (note is None or note.completed is not None):
            self.listeners.ended(str(UUID(bytes=task)))

    def _has_room_limit(self, name: str) -> bool:
        return any(each in self.controls and self.controls[each][1].concurrency is not None for each in (name, ALL))

    async def _look(self, task_id: UUID, sequence: int) -> None:
        """A record without our note: written by hand. It is read for what the note would have said."""
        key = keys.task(task_id)
        try:
            entry = (await self._kv.run(lambda: self._kv.read([key]))).get(key)
            if entry is not None and entry.revision == sequence and not entry.deleted:
                record = decode(entry.data, sequence)
                note = read_note({NOTE: record.note()})
                self._task_changed(task_id.bytes, note, sequence)
        except (StoreError, *PASSING) as error:
            log.warning("the record of task %s cannot be read: %s", task_id, error)
        except (ValueError, TypeError, KeyError) as error:
            log.warning("the record of task %s is not one of ours: %s", task_id, error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        job = asyncio.get_running_loop().create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    # -- telling ------------------------------------------------------------------------------------------------------

    def _attend(self) -> None:
        if self.listeners.listening:
            self.want(Depth.NEWS)

    async def _attentive(self) -> None:
        """Until changes are heard of."""
        await self.get_or_raise(Depth.NEWS)
        await self.reach(0)

    def _wake(self, news: str | UUID | DrainRequested | None) -> None:
        if not self.listeners.listening:
            return
        if not self._news:
            asyncio.get_running_loop().call_soon(self._tell)
        self._news.add(news)

    def _tell(self) -> None:
        news, self._news = self._news, set()
        hints: list[Hint] = [None] if None in news else [each for each in news if isinstance(each, str)]
        if asked := tuple(each for each in news if isinstance(each, UUID)):
            hints.append(CancelRequested(asked))
        hints += [each for each in news if isinstance(each, DrainRequested)]
        for hint in hints:
            self.listeners.tell(hint)
