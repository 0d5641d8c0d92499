"""Connections of one event loop: few, handed out newest first, closed when idle.

asyncpg's own pool wraps each connection and resets it with a round trip on each release. Nothing here needs that: no
statement of ours leaves session state behind, and a connection whose call did not end well is not used again. With
`reset=` and without the round trip it still makes a task for each release: taking a connection and giving it back took
51 microseconds of processor time, and 1.4 here. Nor can a connection of its own listen and serve calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from tasklib.core.errors import StoreBusy, StoreClosed
from tasklib.stores.sql.postgres.failures import connection_limit
from tasklib.stores.sql.postgres.url import Connection

IDLE_SECONDS = 30.0
"""Longer than the pause between two heartbeats: a connection for each would cost more than it saves."""


class Pool:
    """At most `size` connections, and beside them the listener connection, once there is one: it listens, it is never
    closed for idleness, and it is preferred, so that an idle process holds that one alone."""

    def __init__(self, connect: Callable[[float], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._loop = asyncio.get_running_loop()
        self._members: set[Connection] = set()
        self._connecting = 0
        self._idle: list[tuple[Connection, float]] = []
        self._busy: set[Connection] = set()
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()
        self._listener: Connection | None = None
        self.listener_used_at = self._loop.time()
        self._home_is_free = False
        self._closing: set[asyncio.Task[None]] = set()
        self._reaper: asyncio.TimerHandle | None = None
        self._closed = False

    async def acquire(self, deadline: float) -> Connection:
        """A connection for one call. Raises StoreBusy when none comes free in time, and what connecting raises."""
        while True:
            if self._closed:
                raise StoreClosed("the store is closed")
            connection = self.take()
            if connection is not None:
                return connection
            if len(self._members) + self._connecting < self._size:
                try:
                    return await self._grow(deadline)
                except BaseException as error:
                    if not self._makes_do(error):
                        self._hand_over(None)
                        raise
                    connection = self.take()
            connection = connection or await self._wait(deadline)
            if connection is not None:
                return connection

    def release(self, connection: Connection) -> None:
        self._busy.discard(connection)
        if connection.is_closed():
            self.drop(connection)
        elif self._closed or not (connection is self._listener or connection in self._members):
            self._close_softly(connection)
        elif self._waiters and self._hand_over(connection):
            pass
        elif connection is self._listener:
            self._home_is_free = True
            self.listener_used_at = self._loop.time()
        else:
            self._idle.append((connection, self._loop.time()))
            if self._reaper is None:
                self._reaper = self._loop.call_later(IDLE_SECONDS, self._reap)

    def drop(self, connection: Connection, *, softly: bool = False) -> None:
        """Never to be used again: its state is in doubt. `softly`: a statement that may still run is cancelled."""
        self._busy.discard(connection)
        if softly and not self._closed:
            self._close_softly(connection)
        else:
            connection.terminate()
        if connection is self._listener:
            self._listener, self._home_is_free = None, False
        self._members.discard(connection)
        self._hand_over(None)

    def settle_down(self, connection: Connection) -> None:
        """Makes a connection, which was not taken from here, the listener connection."""
        self._listener = connection
        self.release(connection)

    def listener_if_free(self) -> Connection | None:
        """Takes the listener connection, if nobody uses it just now."""
        if self._listener is not None and self._home_is_free:
            self._home_is_free = False
            self._busy.add(self._listener)
            return self._listener
        return None

    def close_listener(self, connection: Connection) -> None:
        """The end of the listener connection, which the caller has taken."""
        self._listener, self._home_is_free = None, False
        self._busy.discard(connection)
        self._close_softly(connection)

    def forget_home(self, connection: Connection) -> None:
        """Whatever became of it: it is not the listener connection any more."""
        if self._listener is connection:
            self._listener, self._home_is_free = None, False
        connection.terminate()

    @property
    def connections(self) -> int:
        return len(self._members) + (self._listener is not None)

    async def close(self) -> None:
        """Nothing is waited for: a call that is under way fails, and finds the store closed."""
        self._closed = True
        if self._reaper is not None:
            self._reaper.cancel()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        if (listener := self.listener_if_free()) is not None:
            self.close_listener(listener)
        for connection, _ in self._idle:
            self._close_softly(connection)
        self._idle.clear()
        for connection in self._busy:
            connection.terminate()
        while self._closing:
            await asyncio.wait(self._closing)

    def take(self) -> Connection | None:
        """One that is idle."""
        if self._home_is_free:
            self._home_is_free = False
            listener = self._listener
            if listener is not None and not listener.is_closed():
                self._busy.add(listener)
                return listener
            self._listener = None
        while self._idle:
            connection, _ = self._idle.pop()
            if not connection.is_closed():
                self._busy.add(connection)
                return connection
            self._members.discard(connection)
        return None

    async def _grow(self, deadline: float) -> Connection:
        self._connecting += 1
        try:
            connection = await self._connect(deadline - self._loop.time())
        finally:
            self._connecting -= 1
        if self._closed:
            connection.terminate()
            raise StoreClosed("the store was closed")
        self._members.add(connection)
        self._busy.add(connection)
        return connection

    def _makes_do(self, error: BaseException) -> bool:
        """We may have no more connections: one of those that we have, or are about to have, will come free."""
        return connection_limit(error) is not None and self.connections + self._connecting > 0 and not self._closed

    async def _wait(self, deadline: float) -> Connection | None:
        """A connection, or None: there may be room for one more."""
        waiter: asyncio.Future[Connection | None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout_at(deadline):
                return await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                connection = waiter.result()  # it came just as we gave up
                if connection is not None:
                    self.release(connection)
                else:
                    self._hand_over(None)
            if isinstance(error, TimeoutError):
                raise StoreBusy(f"all {len(self._members)} connections stayed in use until the deadline") from None
            raise

    def _hand_over(self, connection: Connection | None) -> bool:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                if connection is not None:
                    self._busy.add(connection)
                waiter.set_result(connection)
                return True
        return False

    def _reap(self) -> None:
        self._reaper = None
        now = self._loop.time()
        # Newest last: the front of the list has been idle for longest.
        while self._idle and self._idle[0][1] + IDLE_SECONDS <= now + 0.01:
            connection, _ = self._idle.pop(0)
            self._members.discard(connection)
            self._close_softly(connection)
        if self._idle:
            self._reaper = self._loop.call_at(self._idle[0][1] + IDLE_SECONDS, self._reap)

    def _close_softly(self, connection: Connection) -> None:
        task = self._loop.create_task(_goodbye(connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _goodbye(connection: Connection) -> None:
    """A proper end, so that the server does not log a lost client."""
    try:
        await connection.close(timeout=2.0)
    except Exception:
        connection.terminate()
