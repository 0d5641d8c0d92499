"""A store's two connections, one that writes and one that reads, and how work gets to them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from tasklib.core.errors import StoreClosed
from tasklib.stores.sql.steps import READING_SECONDS, Steps
from tasklib.stores.sqlite import wake
from tasklib.stores.sqlite.address import Address
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.lane import Lane
from tasklib.stores.sqlite.memory import shared_lane
from tasklib.stores.sqlite.statements import Played, play

T = TypeVar("T")


class Lanes:
    def __init__(self, address: Address, timeout: float, clock: Clock) -> None:
        self._address = address
        self._timeout = timeout
        self._clock = clock
        self._bells = wake.bells_of(address.key, None if address.path is None else Path(f"{address.key}-wake"))
        self._writer: Lane | None = None
        self._reader: Lane | None = None
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
                self._writer = self._reader = await shared_lane(self._address, self._timeout)
                return
            writer = Lane(self._address, "tasklib-writer")
            await writer.start(self._timeout)
            reader = Lane(self._address, "tasklib-reader")
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
        return (await self._lane(self._reader).run(self._played(steps), timeout)).result

    async def write(self, steps: Callable[[], Steps[T]]) -> T:
        self._check_open()
        return (await self._write(self._played(steps), after=self._notify)).result

    def _played(self, steps: Callable[[], Steps[T]]) -> Callable[[apsw.Connection], Played[T]]:
        return lambda connection: play(connection, steps(), self._clock)

    def _notify(self, played: Played[Any]) -> None:
        for notify in played.notifications:
            messages = wake.claimable(notify.names) + wake.finished([str(task_id) for task_id in notify.finished])
            self._bells.ring([wake.ANYTHING] if notify.everybody else messages)

    async def _look(self, work: Callable[[apsw.Connection], T]) -> T:
        self._check_open()
        return await self._read(work)

    async def _look_for_people(self, work: Callable[[apsw.Connection], T]) -> T:
        """They would rather be told that it takes too long."""
        self._check_open()
        return await self._lane(self._reader).run(work, min(self._timeout, READING_SECONDS))

    async def _change(
        self, work: Callable[[apsw.Connection], T], *, atomic: bool = False, after: Callable[[T], None] | None = None
    ) -> T:
        self._check_open()
        return await self._write(work, atomic=atomic, after=after)

    async def _on_writer(self, work: Callable[[apsw.Connection], T]) -> T:
        """Outside a transaction, on the writing connection."""
        self._check_open()
        return await self._lane(self._writer).run(work, self._timeout)

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._lane(self._reader).run(work, self._timeout)

    async def _write(self, work: Callable[[apsw.Connection], T], **options: Any) -> T:
        return await self._lane(self._writer).run(work, self._timeout, writes=True, **options)

    def _lane(self, lane: Lane | None) -> Lane:
        if lane is None:
            raise StoreClosed("the store is not open")
        return lane
