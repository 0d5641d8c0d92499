"""The engine: one configuration's hold on its queue, for whichever event loop asks."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast
from uuid import UUID

from tasklib.core import decide
from tasklib.core.decide import Change, WriteResult
from tasklib.core.durations import Seconds, in_seconds
from tasklib.core.errors import StoreClosed, StoreError, TaskConflict, TaskNotFound, WorkerNotFound, WorkerStopped
from tasklib.core.published import PublishedType, publish
from tasklib.core.registry import TaskType
from tasklib.core.task import NewTask, Task, is_terminal, not_finished
from tasklib.engine import task_log
from tasklib.engine.backends import Backend, make_store
from tasklib.engine.batch_loader import Together
from tasklib.engine.collecting import collected
from tasklib.engine.config import Config, check_default, is_missing
from tasklib.engine.filters import check_sorted_by_end, checked
from tasklib.engine.group_insert import GroupInsert
from tasklib.engine.listeners import Settled, listening, tell
from tasklib.engine.schedules import Schedules
from tasklib.engine.submission import Call, Prepared, Submitted, prepare, prepare_many
from tasklib.stores.protocol import InsertsInThread, Store
from tasklib.stores.values import (
    Age,
    Audit,
    AuditEntry,
    ControlChange,
    Controls,
    Count,
    EndedPage,
    Failure,
    Filter,
    Inserted,
    NameStats,
    Page,
    Point,
    VersionStart,
    WorkerInfo,
)

log = logging.getLogger("tasklib")

TYPES_KEPT_SECONDS = 5.0
"""So long a process goes by what it knows of published types."""
TRIES = 100
"""How often an operation reads again after losing a race. Each loss means that somebody else got on."""


class Engine:
    """Verbs on the queue. A store is opened for each event loop that uses it, and closed with that loop."""

    def __init__(self, config: Config, *, clock_offset: float = 0.0) -> None:
        self.config = config
        self.call_timeout = min(config.submit_timeout_seconds, config.call_timeout_seconds)
        """An application's, for stores that are opened from now on. A worker can wait longer."""
        self._told = False
        self._clock_offset = clock_offset
        self._open: dict[int, _Opened] = {}
        self._pid = os.getpid()
        self._closed = False
        self._recovered_at: float | None = None
        self._types: _Types | None = None
        self.schedules = Schedules(self)
        self._told_of: dict[str, TaskType] = {}
        """What was published from here."""
        self._alike: weakref.WeakSet[Engine] = weakref.WeakSet()
        """Engines with other settings on this queue, which go by this one's clock."""

    # -- settings -----------------------------------------------------------------------------------------------------

    def with_settings(self, config: Config) -> Engine:
        """Another engine on this queue and its clock, with these settings."""
        found = Engine(self._here(config), clock_offset=self._clock_offset)
        self._alike.add(found)
        return found

    def adopt(self, config: Config) -> None:
        """Takes over these settings, but for the queue."""
        self.config = self._here(config)

    def _here(self, config: Config) -> Config:
        settings = config.given
        settings.pop("database_url", None)
        if "database_url" in self.config.model_fields_set:
            settings["database_url"] = self.config.database_url
        return Config(**settings)

    # -- stores -------------------------------------------------------------------------------------------------------

    async def store(self) -> Backend:
        """The open store of the running loop."""
        return (await self._opened()).store

    def _at_hand(self, loop: asyncio.AbstractEventLoop) -> _Opened | None:
        """What that loop has open already."""
        opened = self._open.get(id(loop))
        if opened is None or not opened.ready or opened.loop() is not loop or self._closed or self._pid != os.getpid():
            return None
        return opened

    async def _opened(self) -> _Opened:
        if self._closed:
            raise StoreClosed("this queue was closed")
        loop = asyncio.get_running_loop()
        if self._pid != os.getpid():
            self._open, self._pid = {}, os.getpid()  # nothing opened before a fork may be used after it
        opened = self._open.get(id(loop))
        if opened is None or opened.loop() is not loop:
            opened = self._open[id(loop)] = _Opened(weakref.ref(loop), self.new_store(), asyncio.Lock())
        if not opened.ready:
            async with opened.lock:
                if not opened.ready:
                    await self._open_store(opened.store)
                    opened.keeper = self._close_with_loop(opened, id(loop))
                    await anext(opened.keeper)
                    opened.ready = True
        return opened

    async def _open_store(self, store: Backend) -> None:
        fresh = is_missing(self.config)
        await store.open()
        if fresh:
            log.info("made the queue %s", self.config.place)
        self._tell()

    def _tell(self) -> None:
        """Once: a queue in another folder than one thinks looks like one that stands still."""
        if not self._told:
            self._told = True
            log.info("using the queue %s", self.config.place)

    def new_store(self) -> Backend:
        """A store of one's own, not yet open: for a thread with a loop of its own."""
        check_default(self.config)
        return make_store(self.config, clock_offset=self._clock_offset, call_timeout=self.call_timeout)

    async def _close_with_loop(self, opened: _Opened, key: int) -> AsyncGenerator[None]:
        # An event loop that shuts down finishes its asynchronous generators: the one hook it offers for clean-up.
        try:
            yield
        finally:
            if self._open.get(key) is opened:
                del self._open[key]
            await opened.store.close()

    async def close(self) -> None:
        """Closes this loop's store; other loops close theirs when they end."""
        opened = self._open.pop(id(asyncio.get_running_loop()), None)
        if opened is not None:
            await opened.store.close()

    async def shutdown(self) -> None:
        self._closed = True
        await self.close()

    def advance(self, seconds: Seconds) -> None:
        """Moves this engine's clock, in tests."""
        self._clock_offset += in_seconds(seconds)
        for opened in self._open.values():
            opened.store.clock_offset = self._clock_offset
        for engine in self._alike:
            engine.advance(seconds)

    # -- submit -------------------------------------------------------------------------------------------------------

    async def submit(
        self,
        call: Call,
        *,
        connection: object | None = None,
        dated: bool = False,
        copy_of: UUID | None = None,
        audit: Audit[UUID] | None = None,
    ) -> Submitted:
        """Stores the task that was asked for. On the caller's connection: in the caller's transaction. `dated`: the
        answer may say when it was created, if no idempotency key is given. `copy_of`: the task that it repeats."""
        prepared = self.prepare_at_once(call)
        if prepared is None:
            prepared = prepare(call, await self.published(call.name), self.config)
        kept = collected(self, [prepared.task], connection)
        if kept is not None:
            [inserted] = kept
        elif connection is None:
            [inserted] = await self.insert([prepared.task], dated=dated, copy_of=copy_of, audit=audit)
        else:
            [inserted] = await self.insert_on_async(connection, [prepared.task])
        return Submitted(*inserted, prepared.validated)

    async def submit_many(
        self, call: Call, arguments: Iterable[Mapping[str, Any]], *, connection: object | None = None
    ) -> Sequence[Inserted]:
        """The same call of a known type with each of these arguments, all or none."""
        tasks = prepare_many(call, arguments, self.config)
        kept = collected(self, tasks, connection)
        if kept is not None:
            return kept
        return await (self.insert(tasks) if connection is None else self.insert_on_async(connection, tasks))

    def prepare_at_once(self, call: Call) -> Prepared | None:
        """The task that was asked for, checked, not yet stored. None: this process does not have the code of its type,
        and has not looked lately at what is published of it."""
        if call.task_type is not None:
            return prepare(call, None, self.config)
        if self._types is None or time.monotonic() - self._types.read_at > TYPES_KEPT_SECONDS:
            return None
        return prepare(call, self._types.by_name.get(call.name), self.config)

    async def published(self, name: str) -> PublishedType | None:
        """Looks up what workers have told of a type."""
        self._types = types = await (await self._opened()).types.get(None)
        return types.by_name.get(name)

    async def publish(self, types: Iterable[TaskType]) -> None:
        """Tells what these types take, and their options, to those who submit without the code, and declares their
        schedules. Each once."""
        new = [each for each in types if self._told_of.get(each.name) is not each]
        if new:
            await (await self.store()).publish(publish(new))
            await self.schedules.declare(new)
            self._told_of.update((each.name, each) for each in new)
            self._types = None

    async def insert(
        self,
        tasks: Sequence[NewTask],
        *,
        dated: bool = False,
        copy_of: UUID | None = None,
        audit: Audit[UUID] | None = None,
    ) -> Sequence[Inserted]:
        """Stores tasks that are ready made."""
        opened = self._at_hand(asyncio.get_running_loop()) or await self._opened()
        group_insert = opened.group_insert
        if group_insert is not None and len(tasks) == 1 and tasks[0].is_plain and copy_of is None and audit is None:
            inserted: Sequence[Inserted] = [await group_insert.insert(tasks[0], dated=dated)]
        else:
            inserted = await opened.store.insert(tasks, dated=dated, copy_of=copy_of, audit=audit)
        task_log.enqueued(tasks, inserted)
        return inserted

    def insert_here(self, loop: asyncio.AbstractEventLoop, tasks: Sequence[NewTask]) -> Sequence[Inserted] | None:
        """For sync code, in another thread than that loop's: in this thread, if the loop's store can take them at once,
        or together with what other threads submit. None: neither is possible."""
        opened = self._at_hand(loop)
        if opened is None:
            return None
        inserted = None if opened.insert_sync is None else opened.insert_sync(tasks)
        if inserted is None and opened.group_insert is not None and len(tasks) == 1 and tasks[0].is_plain:
            inserted = [opened.group_insert.insert_from_thread(tasks[0], loop)]
        if inserted is not None:
            task_log.enqueued(tasks, inserted)
        return inserted

    def insert_on(
        self, connection: object, tasks: Sequence[NewTask], *, dated: bool = False
    ) -> Sequence[Inserted] | Awaitable[Sequence[Inserted]]:
        """In the caller's transaction; in this thread if the connection is a sync one."""
        self._tell()
        return self.new_store().insert_on(connection, tasks, dated=dated)

    async def insert_on_async(self, connection: object, tasks: Sequence[NewTask]) -> Sequence[Inserted]:
        inserted = self.insert_on(connection, tasks)
        return await inserted if isinstance(inserted, Awaitable) else inserted

    # -- operate ------------------------------------------------------------------------------------------------------

    async def cancel(self, task_id: UUID, *, audit: Audit[Task] | None = None) -> Task:
        """Cancels a waiting task, or asks a running one to stop. Returns the task as it is then."""
        store = await self.store()
        for _ in range(TRIES):
            task = await self.get_or_raise(task_id)
            change = decide.cancel(task)
            entries = audit_by_id([task], audit)
            if change is not None:
                if (await store.settle([change], audit=entries))[0] in (WriteResult.APPLIED, WriteResult.DUPLICATE):
                    await self.announce([Settled(task, change)])
                    return await self.get_or_raise(task_id)
            elif await store.request_cancel([task_id], audit=entries):
                return await self.get_or_raise(task_id)
        raise TaskConflict(f"task {task_id} changes too fast to be cancelled", task_id=task_id)

    async def retry(self, task_id: UUID, *, audit: Audit[Task] | None = None) -> Task:
        """A failed task anew: all attempts, due now, history kept."""
        return await self._change(task_id, decide.retry_by_hand, "retried", audit)

    async def run_now(self, task_id: UUID, *, audit: Audit[Task] | None = None) -> Task:
        """What waits for its time, or for its retry, is due at once. What is due stays as it is, without an entry."""
        now = await (await self.store()).now()
        return await self._change(task_id, lambda task: decide.run_now(task, now), "run now", audit)

    async def revive(self, task_id: UUID, *, audit: Audit[Task] | None = None) -> Task:
        """A cancelled task waits again: all attempts, due when it was due, history kept."""
        return await self._change(task_id, decide.revive, "revived", audit)

    async def _change(
        self, task_id: UUID, decided: Callable[[Task], Change | None], word: str, audit: Audit[Task] | None
    ) -> Task:
        """Writes what is decided of the task as it is found, until nobody came in between."""
        store = await self.store()
        for _ in range(TRIES):
            task = await self.get_or_raise(task_id)
            change, entries = decided(task), audit_by_id([task], audit)
            if change is None:
                return task
            if (await store.settle([change], audit=entries))[0] in (WriteResult.APPLIED, WriteResult.DUPLICATE):
                return await self.get_or_raise(task_id)
        raise TaskConflict(f"task {task_id} changes too fast to be {word}", task_id=task_id)

    async def delete(self, task_id: UUID, *, audit: Audit[Task] | None = None) -> None:
        store = await self.store()
        for _ in range(TRIES):
            task = await self.get_or_raise(task_id)
            decide.check_deletable(task)
            guard, entries = (task.id, task.version), audit_by_id([task], audit)
            [result] = await store.delete([guard], audit=entries)
            if result is WriteResult.AWAITED:
                waiting = (await store.feeds(task_id, 1)).ids
                raise TaskConflict(
                    f"task {task_id} cannot be deleted: task {', '.join(map(str, waiting))} waits for it",
                    task_id=task_id,
                    state=task.state,
                )
            if result is not WriteResult.STALE:
                return
        raise TaskConflict(f"task {task_id} changes too fast to be deleted", task_id=task_id)

    async def expire(self, limit: int = 500) -> int:
        """Takes back what dead workers hold. Returns how many tasks were recovered."""
        store = await self.store()
        lost = await store.lost_leases(self.config.dead_after_seconds, limit)
        if not lost:
            return 0
        changes = [decide.expire(task, worker_lost_error(task)) for task in lost]
        write_results = await store.settle(changes)
        done = zip(lost, changes, write_results, strict=True)
        await self.announce(
            [Settled(task, change) for task, change, write_result in done if write_result is WriteResult.APPLIED]
        )
        return write_results.count(WriteResult.APPLIED)

    async def announce(self, settled: Sequence[Settled]) -> None:
        """Tells middleware what was just committed, if any of it listens. A change that had another form, for a cancel
        that was asked for meanwhile, is told in the form it was written in."""
        middleware = self.config.middleware
        if not settled or not listening(middleware):
            return
        doubtful = [each.change.id for each in settled if each.change.if_asked is not None]
        found: list[Task | None] = []
        if doubtful:
            try:
                found = list(await (await self.store()).get(doubtful))
            except Exception as error:  # what was committed is committed: nobody may take this for its failure
                log.warning("cannot see whether %d tasks were cancelled while they ran: %s", len(doubtful), error)
        rows = {task.id: task for task in found if task is not None}
        for each in settled:
            tell(middleware, each._replace(change=decide.written(each.change, rows.get(each.change.id))))

    async def recover(self, *, at_once: bool) -> int:
        """`expire` for those who have no janitor; unless `at_once`, no more often than a janitor would."""
        now = time.monotonic()
        if not at_once and self._recovered_at is not None and now - self._recovered_at < self.config.recovery_seconds:
            return 0
        self._recovered_at = now
        return await self.expire()

    async def prune(
        self,
        states: Sequence[str],
        older_than_seconds: float,
        limit: int,
        *,
        dry_run: bool = False,
        audit: Audit[str] | None = None,
    ) -> int:
        return await (await self.store()).prune(states, older_than_seconds, limit, dry_run=dry_run, audit=audit)

    async def drain(self, worker_id: str, by: str, *, audit: Sequence[AuditEntry] = ()) -> WorkerInfo:
        """Asks a worker to take nothing more, to finish what it runs, and to end. Asked again, it leaves no entry."""
        store = await self.store()
        await store.request_drain(worker_id, by, audit=audit)
        worker = next((each for each in await store.workers() if each.id == worker_id), None)
        if worker is None:
            raise WorkerNotFound(worker_id)
        if worker.drain is None:
            raise WorkerStopped(f"worker {worker_id} has stopped")
        return worker

    async def control(self, change: ControlChange, *, audit: Sequence[AuditEntry] = ()) -> Controls:
        return await (await self.store()).control(change, audit=audit)

    # -- look ---------------------------------------------------------------------------------------------------------

    async def get(self, task_id: UUID) -> Task | None:
        return await (await self._opened()).tasks.get(task_id)

    async def get_or_raise(self, task_id: UUID) -> Task:
        task = await self.get(task_id)
        if task is None:
            raise TaskNotFound(task_id)
        return task

    async def get_by_key(self, key: str) -> Task | None:
        return await (await self.store()).get_by_key(key)

    async def page(self, where: Filter, **paging: Any) -> Page:
        checked(where)
        return await (await self.store()).page(where, **paging)

    async def page_ended(self, where: Filter, **paging: Any) -> EndedPage:
        check_sorted_by_end(checked(where))
        return await (await self.store()).page_ended(where, **paging)

    async def page_longest(self, where: Filter, **paging: Any) -> Page:
        checked(where)
        return await (await self.store()).page_longest(where, **paging)

    async def count(self, where: Filter, cap: int) -> Count:
        checked(where)
        return await (await self.store()).count(where, cap)

    async def stats(self) -> dict[str, NameStats]:
        return await (await self.store()).stats()

    async def series(self, since_seconds: float, step_seconds: int = 60, **window: Any) -> Sequence[Point]:
        return await (await self.store()).series(since_seconds, step_seconds, **window)

    async def backlog_history(self, since_seconds: float, step_seconds: int = 60, **window: Any) -> Sequence[Age]:
        return await (await self.store()).backlog_history(since_seconds, step_seconds, **window)

    async def latest_failures(self, name: str | None, limit: int) -> Sequence[Failure]:
        return await (await self.store()).latest_failures(name, limit)

    async def versions(self) -> Sequence[VersionStart]:
        return await (await self.store()).versions()

    async def workers(self) -> list[WorkerInfo]:
        return await (await self.store()).workers()

    async def controls(self) -> dict[str, Controls]:
        return await (await self.store()).controls()

    async def standing(self) -> FleetStatus:
        """Of this moment, and one look for all who ask in it."""
        return await (await self._opened()).standing.get(None)

    async def wait(self, task_id: UUID, timeout: Seconds | None) -> Task:
        """The task once it is finished. Woken, not spinning."""
        limit: float | None = in_seconds(timeout)
        store = await self.store()
        watching = store.watch(task_id)
        seen: Task | None = None
        try:
            async with asyncio.timeout(limit):
                async for task in watching:
                    if task is None:
                        raise TaskNotFound(task_id)
                    if is_terminal(task):
                        return task
                    seen = task
        except TimeoutError:
            raise not_finished(task_id, seen, limit) from None
        finally:
            if isinstance(watching, AsyncGenerator):
                await watching.aclose()
        raise StoreClosed("the queue was closed while waiting")


class FleetStatus(NamedTuple):
    """What decides whether waiting tasks start."""

    controls: Mapping[str, Controls]
    workers: Sequence[WorkerInfo]


class _Types(NamedTuple):
    """Task types as workers have published them."""

    by_name: Mapping[str, PublishedType]
    read_at: float


class StoreEngine(Engine):
    """The same on one store that somebody made, for the event loop that uses it first."""

    def __init__(self, store: Store, config: Config) -> None:
        super().__init__(config, clock_offset=store.clock_offset)
        self._given = store
        self._taken = False

    def new_store(self) -> Backend:
        if self._taken:
            raise StoreError("a store belongs to one event loop; give the queue's URL to use it from several")
        self._taken = True
        return cast(Backend, self._given)


def audit_by_id(tasks: Sequence[Task], audit: Audit[Task] | None) -> Audit[UUID] | None:
    """The entries of an action on these tasks, as a store asks for them."""
    if audit is None:
        return None
    by_id = {task.id: task for task in tasks}
    return lambda applied: audit([by_id[task_id] for task_id in applied])


def worker_lost_error(task: Task) -> str:
    """The error of an attempt whose worker is gone."""
    return f"WorkerLost: worker {task.worker_id} vanished while it ran this task: its lease or its heartbeat ran out"


@dataclass(slots=True)
class _Opened:
    """A store that is open, and what belongs to it."""

    loop: weakref.ref[asyncio.AbstractEventLoop]
    store: Backend
    lock: asyncio.Lock
    ready: bool = False
    keeper: AsyncGenerator[None] | None = None
    insert_sync: Callable[[Sequence[NewTask]], Sequence[Inserted] | None] | None = field(init=False)
    tasks: Together[UUID, Task | None] = field(init=False)
    group_insert: GroupInsert | None = field(init=False)
    standing: Together[None, FleetStatus] = field(init=False)
    types: Together[None, _Types] = field(init=False)

    def __post_init__(self) -> None:
        self.insert_sync = self.store.insert_sync if isinstance(self.store, InsertsInThread) else None
        self.tasks = Together(self.store.get)
        self.group_insert = GroupInsert(self.store) if self.store.traits.cheap_batches else None
        self.standing = Together(self._read_standing)
        self.types = Together(self._read_types)

    async def _read_standing(self, asked: Sequence[None]) -> Sequence[FleetStatus]:
        return [FleetStatus(await self.store.controls(), await self.store.workers())] * len(asked)

    async def _read_types(self, asked: Sequence[None]) -> Sequence[_Types]:
        read_at = time.monotonic()
        return [_Types({each.name: each for each in await self.store.published()}, read_at)] * len(asked)
