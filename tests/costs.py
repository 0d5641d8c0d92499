"""Counting what a store asks of its database, and a minute that passes in two seconds."""

import asyncio
import selectors
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from tests.stores.proxy import Proxy

_SSL_REQUEST = 80877103
_STATEMENTS = (b"E", b"Q")  # Execute; a simple query
_TURNS = (b"S", b"H", b"Q")  # Sync, Flush, a simple query: the client then waits for the server


class PostgresMeter(Proxy):
    """Stands in the line and reads along: which messages the client sends."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.messages: Counter[bytes] = Counter()

    @property
    def statements(self) -> int:
        return sum(self.messages[kind] for kind in _STATEMENTS)

    @property
    def round_trips(self) -> int:
        return sum(self.messages[kind] for kind in _TURNS)

    async def _to_server(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, swallow: asyncio.Event
    ) -> None:
        started = False
        try:
            while True:
                # The first messages of a connection have no type.
                kind = await reader.readexactly(1) if started else b""
                head = await reader.readexactly(4)
                body = await reader.readexactly(struct.unpack("!i", head)[0] - 4)
                if started:
                    self.messages[kind] += 1
                else:
                    started = struct.unpack("!i", body[:4])[0] != _SSL_REQUEST
                writer.write(kind + head + body)
                await writer.drain()
        except asyncio.IncompleteReadError:
            return


class SqliteMeter:
    """Hears of every statement and commit of the connections that are opened while it is in place."""

    def __init__(self) -> None:
        self.statements = 0
        self.commits = 0
        self.rows = 0
        self.steps = 0
        """Rows that statements gave: for each of them the lock of the interpreter is given up and got back."""
        self._seen: dict[int, int] = {}

    @contextmanager
    def in_place(self) -> Iterator[None]:
        apsw.connection_hooks.append(self._meet)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(self._meet)

    def _meet(self, connection: apsw.Connection) -> None:
        def on_event(event: dict[str, Any]) -> None:
            if event["code"] == apsw.SQLITE_TRACE_ROW:
                self.steps += 1
                return
            self.statements += 1
            self.rows += event["total_changes"] - self._seen.get(id(connection), 0)
            self._seen[id(connection)] = event["total_changes"]

        def on_commit() -> bool:
            self.commits += 1
            return False

        self._seen.pop(id(connection), None)
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE | apsw.SQLITE_TRACE_ROW, on_event)
        connection.set_commit_hook(on_commit)


SPEED = 30


class _Selector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(timeout and timeout / SPEED)


class FastLoop(asyncio.SelectorEventLoop):
    """Its clock runs thirty times as fast: everything that waits, waits a thirtieth."""

    def __init__(self) -> None:
        super().__init__(_Selector())

    def time(self) -> float:
        return super().time() * SPEED


async def pass_time(seconds: float) -> None:
    """In a fast loop, as long as it takes to do there what is done in so many seconds."""
    assert isinstance(asyncio.get_running_loop(), FastLoop)
    await asyncio.sleep(seconds)  # noqa: TID251 - there is no condition to wait for: that nothing happens is the test
