"""A store's two connections, one that writes and one that reads, and how work gets to them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import apsw

from tasklib.core.errors import StoreClosed
from tasklib.stores.sql.hints import cancel_message, drain_message
from tasklib.stores.sql.sqlite import external, notify
from tasklib.stores.sql.sqlite.address import Address
from tasklib.stores.sql.sqlite.batches import Target
from tasklib.stores.sql.sqlite.clock import Clock
from tasklib.stores.sql.sqlite.connection_thread import ConnectionThread, roll_back
from tasklib.stores.sql.sqlite.memory import shared_thread
from tasklib.stores.sql.sqlite.statements import Played, play
from tasklib.stores.sql.steps import Steps

T = TypeVar("T")


class SqliteDriver:
    def __init__(self, address: Address, timeout: float, clock: Clock) -> None:
        self._address = address
        self._timeout = timeout
        self._clock = clock
        self._notifier = notify.notifier_for(address.key, None if address.path is None else Path(f"{address.key}-wake"))
        self._writer: ConnectionThread | None = None
        self._reader: ConnectionThread | None = None
        self._is_open = False
        self._pid = os.getpid()
        self._connecting: asyncio.Lock | None = None

    @property
    def clock_offset(self) -> float:
        return self._clock.offset

    @clock_offset.setter
    def clock_offset(self, seconds: float) -> None:
        self._clock.offset = seconds

    async def _connect(self) -> None:
        self._check_process()
        if self._connecting is None:
            self._connecting = asyncio.Lock()
        async with self._connecting:
            if self._writer is not None:
                return
            if self._address.path is None:
                self._writer = self._reader = await shared_thread(self._address, self._timeout)
                return
            writer = ConnectionThread(self._address, "tasklib-writer")
            await writer.start(self._timeout)
            reader = ConnectionThread(self._address, "tasklib-reader")
            try:
                await reader.start(self._timeout)
            except BaseException:
                writer.stop()
                raise
            self._writer, self._reader = writer, reader

    async def _disconnect(self) -> None:
        writer, reader = self._writer, self._reader
        self._writer = self._reader = None
        if self._address.path is not None and writer is not None and reader is not None and os.getpid() == self._pid:
            reader.stop()
            writer.stop()
            await reader.stopped()
            await writer.stopped()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreClosed("the store was made before a fork; make one in each process")

    def _check_open(self) -> None:
        self._check_process()
        if not self._is_open:
            raise StoreClosed("the store is not open")

    def _is_missing(self) -> bool:
        return self._address.path is not None and not self._address.path.exists()

    async def read(self, steps: Callable[[], Steps[T]], *, seconds: float | None = None) -> T:
        self._check_open()
        timeout = self._timeout if seconds is None else min(self._timeout, seconds)

        def work(connection: apsw.Connection) -> T:
            connection.execute("BEGIN")  # all statements see the same
            try:
                return play(connection, steps(), self._clock).result
            finally:
                roll_back(connection)  # there is nothing to commit

        return await self._running(self._reader).run(work, timeout)

    async def write(self, steps: Callable[[], Steps[T]], *, repeat: bool = True, atomic: bool = False) -> T:
        """`repeat` makes no difference: no reply of a file is ever lost."""
        self._check_open()
        return (await self._write(self._played(steps), atomic=atomic, after=self._notify)).result

    def play_on(self, connection: object, steps: Callable[[], Steps[T]]) -> T:
        return external.play_on(
            self._address, connection, self._played(steps), monotonic() + self._timeout, self._notify
        )

    def _played(self, steps: Callable[[], Steps[T]]) -> Callable[[Target], Played[T]]:
        return lambda connection: play(connection, steps(), self._clock)

    def _notify(self, played: Played[Any]) -> None:
        for each in played.notifications:
            messages = notify.claimable(each.names) + notify.finished([str(task_id) for task_id in each.finished])
            if each.cancel_requested:
                messages.append(cancel_message(each.cancel_requested))
            if each.drain_requested is not None:
                messages.append(drain_message(each.drain_requested))
            self._notifier.notify([notify.ANYTHING] if each.everybody else messages)

    async def _on_writer(self, work: Callable[[apsw.Connection], T]) -> T:
        """Outside a transaction, on the writing connection."""
        self._check_open()
        return await self._running(self._writer).run(work, self._timeout)

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._running(self._reader).run(work, self._timeout)

    async def _write(self, work: Callable[[apsw.Connection], T], **options: Any) -> T:
        return await self._running(self._writer).run(work, self._timeout, writes=True, **options)

    def _running(self, thread: ConnectionThread | None) -> ConnectionThread:
        if thread is None:
            raise StoreClosed("the store is not open")
        return thread
