"""One thread with one connection. Calls wait in its queue; writers that wait together share one commit. Sync code may
borrow the connection while the thread has nothing to do."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any, TypeAlias, TypeVar

import apsw

from tasklib.core.errors import StoreBusy, StoreClosed, StoreGone
from tasklib.stores.sql.sqlite import filesystem
from tasklib.stores.sql.sqlite.address import Address
from tasklib.stores.sql.sqlite.connection import connect, translated

T = TypeVar("T")
Work: TypeAlias = Callable[[apsw.Connection], T]
"""Runs in the connection's thread. It may run again when the database was busy, so it changes nothing but the
database."""

_SHARED_COMMIT = 64
"""Most calls that share one commit."""
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.01
_PROGRESS_STEPS = 200_000
_AFTER_FORK_SECONDS = 30.0
_NO_FILE = (0, 0)
_IN_THE_WAY = (apsw.BusyError, apsw.LockedError, apsw.SchemaChangeError, apsw.ProtocolError)
"""What passes when others have got on."""


class Job:
    """A call that waits for a connection's thread."""

    __slots__ = ("after", "atomic", "deadline", "error", "future", "loop", "result", "work", "writes")

    def __init__(
        self,
        work: Work[Any],
        deadline: float,
        *,
        writes: bool,
        atomic: bool,
        after: Callable[[Any], None] | None,
    ) -> None:
        self.work = work
        self.deadline = deadline
        self.writes = writes
        self.atomic = atomic
        """A single statement: it is its own transaction when it runs alone."""
        self.after = after
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: Exception | None = None


class ForkBarrier:
    """Asks a connection's thread to stand still while the process forks."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.over = threading.Event()


class ConnectionThread:
    """A connection that one thread touches at a time, nearly always its own. It is never used after a fork,
    and not open during one."""

    def __init__(self, address: Address, name: str) -> None:
        self._address = address
        self._path = None if address.path is None else str(address.path)
        self._opened: tuple[int, int] | None = None
        """Which file it was."""
        self._name = name
        self._jobs: SimpleQueue[Job | ForkBarrier | None] = SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._deadline = 0.0
        self._in_use = threading.Lock()
        self._borrowed: apsw.Connection | None = None
        """The connection, for others to borrow. One in memory is not lent: after a fork nothing may get hold of it."""

    async def start(self, timeout: float) -> None:
        """Opens the connection in its thread."""
        opened: Job = Job(lambda _: None, monotonic() + timeout, writes=False, atomic=True, after=None)
        self._thread = threading.Thread(target=self._live, args=(opened,), name=self._name, daemon=True)
        self._thread.start()
        await opened.future

    async def run(
        self,
        work: Work[T],
        timeout: float,
        *,
        writes: bool = False,
        atomic: bool = False,
        after: Callable[[T], None] | None = None,
    ) -> T:
        """`work` in the thread: inside a transaction if it writes. `after` is called in the thread once it is
        committed, whether or not the caller still waits."""
        if self._closing.is_set() or os.getpid() != self._pid:
            raise self._closed()
        job = Job(work, monotonic() + timeout, writes=writes, atomic=atomic, after=after)
        self._jobs.put(job)
        result: T = await job.future
        return result

    def try_here(self, work: Work[T], timeout: float) -> T | None:
        """`work`, a single statement, in the calling thread: there and back would take longer than many a statement.
        None: something is under way, here or in another process, and `run` is to wait for it."""
        if not self._in_use.acquire(blocking=False):
            return None
        try:
            if self._borrowed is None or self._closing.is_set() or os.getpid() != self._pid:
                return None
            self._deadline = monotonic() + timeout
            result = work(self._borrowed)
            if (gone := self._gone()) is not None:
                raise gone
            return result
        except _IN_THE_WAY:
            return None
        except apsw.Error as error:
            raise translated(error, self._address) from error
        finally:
            self._in_use.release()

    def stop(self) -> None:
        """Lets the thread end after what is queued; calls that wait for a lock give up."""
        if not self._closing.is_set():
            self._closing.set()
            self._jobs.put(None)

    async def stopped(self) -> None:
        """Returns when the thread has ended and its connection is closed."""
        if self._thread is not None and os.getpid() == self._pid:
            # Not in an executor: at the end of the interpreter, when the bridge closes, there is none to be had.
            while self._thread.is_alive():
                self._thread.join(0.001)
                await asyncio.sleep(0)

    def join(self) -> None:
        """The same, in a thread that may wait."""
        if self._thread is not None:
            self._thread.join()

    def hold_for_fork(self) -> ForkBarrier:
        """In the thread that forks: returns when the connection's thread stands still."""
        barrier = ForkBarrier()
        self._jobs.put(barrier)
        while self._thread is not None and self._thread.is_alive() and not barrier.begun.wait(0.01):
            pass
        return barrier

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _live(self, opened: Job) -> None:
        # A local of this frame: after a fork the child has no such thread, and nothing there can close the connection.
        try:
            connection = self._connect(opened.deadline)
        except Exception as error:
            self._closing.set()
            opened.error = error
            _resolve([opened])
            return
        self._prepare(connection)
        _resolve([opened])
        while (batch := self._next_batch()) is not None:
            if not isinstance(batch, ForkBarrier):
                self._serve(connection, batch)
            elif self._address.path is None:  # closing it would empty it
                batch.begun.set()
                batch.over.wait()
            else:
                self._put_away(connection)
                _threads.discard(self)
                batch.begun.set()
                batch.over.wait()
                try:
                    connection = self._connect(monotonic() + _AFTER_FORK_SECONDS)
                except Exception:
                    self._closing.set()
                    break
                self._prepare(connection)
        self._put_away(connection)
        self._refuse_rest()

    def _prepare(self, connection: apsw.Connection) -> None:
        connection.set_progress_handler(lambda: monotonic() > self._deadline, _PROGRESS_STEPS)
        if self._address.path is not None:
            self._borrowed = connection

    def _put_away(self, connection: apsw.Connection) -> None:
        with self._in_use:
            self._borrowed = None
            connection.close()

    def _connect(self, deadline: float) -> apsw.Connection:
        with _opening:
            # Not beside an open one that had this name: half of the process would work on the one, half on the other.
            known = False
            for thread in (self, *_threads):
                if thread._path == self._path and thread._opened is not None and not thread._closing.is_set():
                    known = True
                    if (gone := thread._gone()) is not None:
                        raise gone
            connection = self._retried(lambda: connect(self._address, create=not known), deadline)
            if self._path is not None:
                self._opened = filesystem.identity(self._path) or _NO_FILE
            _threads.add(self)
        return connection

    def _gone(self) -> StoreGone | None:
        """Asked before anything is acknowledged: the file is open whatever becomes of its name."""
        return None if self._path is None or self._opened is None else filesystem.gone(self._path, self._opened)

    def _closed(self) -> StoreGone | StoreClosed:
        """Why nothing more is done here. A file that was gone after a fork is not opened again."""
        return self._gone() or StoreClosed("the store is closed")

    def _next_batch(self) -> list[Job] | ForkBarrier | None:
        job = self._jobs.get()
        if job is None or isinstance(job, ForkBarrier):
            return job
        batch = [job]
        while job.writes and len(batch) < _SHARED_COMMIT and not self._jobs.empty():
            job = self._jobs.get()  # at once: nobody else takes from it
            if job is None or isinstance(job, ForkBarrier):
                self._jobs.put(job)
                break
            batch.append(job)
        return batch

    def _serve(self, connection: apsw.Connection, batch: list[Job]) -> None:
        if len(batch) > 1:
            shared = [job for job in batch if job.writes]
            if len(shared) > 1 and self._commit_together(connection, shared):
                self._finish(shared)
                batch = [job for job in batch if not job.writes]
        for job in batch:
            try:
                self._retried(partial(_transact, connection, job), job.deadline)
            except Exception as error:
                job.error = error
            self._finish([job])

    def _finish(self, jobs: list[Job]) -> None:
        gone = self._gone()
        if gone is not None:
            for job in jobs:
                job.error = gone
        _resolve(jobs)
        for job in jobs:
            if job.after is not None and job.error is None:
                with suppress(Exception):  # it tells others of what is committed: whether they hear is not the caller's
                    job.after(job.result)

    def _commit_together(self, connection: apsw.Connection, jobs: list[Job]) -> bool:
        """All or none. False: something went wrong; each is to be tried by itself."""
        try:
            self._retried(lambda: _transact_all(connection, jobs), min(job.deadline for job in jobs))
        except Exception:
            return False
        return True

    def _retried(self, attempt: Callable[[], T], deadline: float) -> T:
        """Waits while other processes hold the lock."""
        pause = _FIRST_PAUSE
        if monotonic() > deadline:
            raise StoreBusy(f"{self._address} did not answer in time: too many calls were waiting")
        while True:
            try:
                with self._in_use:
                    self._deadline = deadline
                    return attempt()
            except _IN_THE_WAY as error:
                left = deadline - monotonic()
                if left <= 0:
                    raise StoreBusy(f"{self._address} is locked by another process for too long") from error
                if self._closing.wait(min(left, pause * random.uniform(0.5, 1.5))):
                    raise StoreClosed("the store was closed while it waited for a lock") from None
                pause = min(pause * 1.3, _LONGEST_PAUSE)
            except apsw.Error as error:
                raise translated(error, self._address) from error

    def _refuse_rest(self) -> None:
        while not self._jobs.empty():
            job = self._jobs.get()
            if isinstance(job, ForkBarrier):
                job.begun.set()
            elif job is not None:
                job.error = self._closed()
                _resolve([job])


def roll_back(connection: apsw.Connection) -> None:
    """Ends a transaction that went wrong; a full disk or a damaged file may have ended it already."""
    with suppress(apsw.Error):  # the next BEGIN tells what is wrong
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _transact(connection: apsw.Connection, job: Job) -> None:
    if job.writes and not job.atomic:
        _transact_all(connection, [job])
    else:
        _run(connection, job)


def _transact_all(connection: apsw.Connection, jobs: list[Job]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for job in jobs:
            _run(connection, job)
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def _run(connection: apsw.Connection, job: Job) -> None:
    if job.future.cancelled():  # given up while it waited for its turn, or for a lock
        job.after = None
    else:
        job.result = job.work(connection)


def _resolve(jobs: list[Job]) -> None:
    """Hands results to their loops, one call for each loop."""
    for loop in {job.loop for job in jobs}:
        with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_set, [job for job in jobs if job.loop is loop])


def _set(jobs: list[Job]) -> None:
    for job in jobs:
        if not job.future.done():
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)


# SQLite keeps the locks of a process in memory, and a fork copies that memory but not the locks: the child would wait
# for locks that nobody holds, and write without holding its own. So no connection to a file is open during a fork.
_opening = threading.Lock()
_threads: weakref.WeakSet[ConnectionThread] = weakref.WeakSet()
_held_for_fork: list[ForkBarrier] = []


def _before_fork() -> None:
    _opening.acquire()
    _held_for_fork.extend([thread.hold_for_fork() for thread in list(_threads)])


def _after_fork_in_parent() -> None:
    _opening.release()
    for barrier in _held_for_fork:
        barrier.over.set()
    _held_for_fork.clear()


def _after_fork_in_child() -> None:
    global _opening, _threads
    _opening, _threads = threading.Lock(), weakref.WeakSet()
    _held_for_fork.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
