"""A TCP proxy that stands between a store and its server, and breaks the line where a test wants it broken."""

import asyncio
import struct
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit, urlunsplit

from tests.waiting import pause

Way = Literal["to server", "to client"]
WAYS: tuple[Way, ...] = ("to server", "to client")


class Proxy:
    """Everything passes, until a fault is ordered.

    `lose_reply(marker)`: the next message with these bytes reaches the server; when the server has answered, the line
    is cut and the answer is thrown away. `lose_request(marker)`: the line is cut before the message goes out. An empty
    marker takes the next message, whatever it is. `freeze()`: silence, both ways or one way; `delay` slows both down.
    `faults` counts what really happened.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reply_marker: bytes | None = None
        self._request_marker: bytes | None = None
        self._flowing: dict[Way, asyncio.Event] = {"to server": asyncio.Event(), "to client": asyncio.Event()}
        self.thaw()
        self.delay = 0.0
        """Seconds that each piece takes, each way."""
        self.faults = 0
        self.connections = 0
        self.foreign_pids = False
        """True: the process number that the server tells at the start is changed, as a pooler does."""

    @property
    def url(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        parts = urlsplit(self._url)
        user, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{port}"))

    def lose_reply(self, marker: bytes) -> None:
        self._reply_marker = marker

    def lose_request(self, marker: bytes) -> None:
        self._request_marker = marker

    def disarm(self) -> None:
        """Forgets what was ordered and has not happened."""
        self._reply_marker = self._request_marker = None

    def freeze(self, *ways: Way) -> None:
        """Lines stay open, and nothing comes through: what a partition looks like. Given one way, the other is fine."""
        self.faults += 1
        for way in ways or WAYS:
            self._flowing[way].clear()

    def thaw(self) -> None:
        for flowing in self._flowing.values():
            flowing.set()

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    def cut(self) -> None:
        """All lines that are open now."""
        assert self._tasks, "there is no line to cut"
        self.faults += 1
        for task in self._tasks:
            task.cancel()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: asyncio complains of its own when they are cancelled.
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())  # also if it was cut before it began
        self.connections += 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(self._url)
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(parts.hostname, parts.port)
        except OSError:  # nobody is there: the caller is to see just that
            return
        swallow = asyncio.Event()
        ways = [
            asyncio.ensure_future(self._to_server(reader, upstream_writer, swallow)),
            asyncio.ensure_future(self._to_client(upstream_reader, writer, swallow)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for end in (writer, upstream_writer):  # now: whoever cuts a line that is just ending cuts the wait short
                end.transport.abort()
            await asyncio.wait(ways)

    async def _to_server(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, swallow: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            await self._pass("to server")
            if self._request_marker is not None and self._request_marker in data:
                self._request_marker = None
                self.faults += 1
                return
            if self._reply_marker is not None and self._reply_marker in data:
                self._reply_marker = None
                swallow.set()
            writer.write(data)
            await writer.drain()

    async def _to_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, swallow: asyncio.Event
    ) -> None:
        first = True
        while data := await reader.read(65536):
            await self._pass("to client")
            if swallow.is_set():
                self.faults += 1
                return
            if self.foreign_pids and first and b"K\x00\x00\x00\x0c" in data:
                at = data.index(b"K\x00\x00\x00\x0c") + 5
                data = data[:at] + struct.pack("!i", 424242) + data[at + 4 :]
                first = False
            writer.write(data)
            await writer.drain()

    async def _pass(self, way: Way) -> None:
        await self._flowing[way].wait()
        if self.delay:
            await pause(self.delay)
