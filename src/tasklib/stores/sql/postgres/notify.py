"""LISTEN: workers are woken when something may be claimable, waiters when their task has ended.

One connection does it, the pool's listener connection, which serves calls as well. It is made when somebody first
listens, made anew when it is lost, and after that everybody is woken: what was said meanwhile was not heard.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tasklib.stores.listeners import Listeners, within
from tasklib.stores.sql.hints import request_in
from tasklib.stores.sql.postgres.driver import PostgresDriver
from tasklib.stores.sql.postgres.url import Connection
from tasklib.stores.values import CancelRequested

_CHECK_SECONDS = 20.0
"""How often a silent connection is asked whether it is still there."""
_CHECK_TIMEOUT = 5.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LINGER_SECONDS = 5.0
"""A listener connection that nobody listens on any more waits this long for the next listener."""


class Wakes:
    """Belongs to the event loop of its store. Behind PgBouncer there is no LISTEN: nobody is woken, all poll."""

    def __init__(self, calls: PostgresDriver) -> None:
        self._calls = calls
        self.listeners = Listeners(self._attend, self._attentive)
        self._listening: set[str] = set()
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None

    async def _attentive(self) -> None:
        """Until the channels that are wanted are listened to."""
        if not self._calls.target.pgbouncer and not self._wanted() <= self._listening:
            self._settled.clear()
            await self._settled.wait()

    async def close(self) -> None:
        self.listeners.close()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait([self._runner])

    def _attend(self) -> None:
        self._changed.set()
        if self._wanted() and (self._runner is None or self._runner.done()):
            self._runner = asyncio.get_running_loop().create_task(self._run(), name="tasklib wake-ups")

    def _wanted(self) -> set[str]:
        target = self._calls.target
        wanted = {target.work_channel} if self.listeners.listening else set()
        return wanted | ({target.done_channel} if self.listeners.waiting else set())

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._stay()
                self._settled.set()
                return  # nobody listens any more, or nobody can
            except Exception:
                # Whatever it was: polling goes on, and so do the attempts. The verbs report what is wrong.
                pass
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _stay(self) -> None:
        """One connection's life as the listener connection."""
        pool = self._calls.pool
        if self._calls.target.pgbouncer:
            return
        connection = await self._calls.connect(_CHECK_TIMEOUT)
        if self._calls.target.pgbouncer:
            connection.terminate()
            return
        lost = asyncio.Event()

        def on_end(_: Connection) -> None:
            lost.set()
            self._changed.set()

        connection.add_termination_listener(on_end)
        pool.settle_down(connection)
        self._listening = set()
        try:
            await self._serve(connection, lost)
        except BaseException:
            pool.forget_home(connection)
            raise
        finally:
            self._listening = set()

    async def _serve(self, connection: Connection, lost: asyncio.Event) -> None:
        pool = self._calls.pool
        lonely = False
        while True:
            self._changed.clear()
            if lost.is_set():
                raise ConnectionError("the listening connection was lost")
            wanted = self._wanted()
            quiet = asyncio.get_running_loop().time() - pool.listener_used_at
            if wanted and wanted == self._listening and quiet < _CHECK_SECONDS:  # it served a call, and so is alive
                await within(_CHECK_SECONDS - quiet, self._changed.wait())
                continue
            listener = pool.listener_if_free()
            if listener is None:  # in use, and so alive; it comes back soon
                await within(0.05 if wanted != self._listening else _CHECK_SECONDS, self._changed.wait())
                continue
            if not wanted and lonely:
                pool.close_listener(listener)
                return
            await self._converse(listener, wanted)
            lonely = not wanted
            await within(_LINGER_SECONDS if lonely else _CHECK_SECONDS, self._changed.wait())

    async def _converse(self, listener: Connection, wanted: set[str]) -> None:
        """Brings the channels up to date, or else makes sure that the connection answers."""
        pool = self._calls.pool
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT):
                if wanted == self._listening:
                    await listener.execute("SELECT 1")
                for channel in wanted - self._listening:
                    await listener.add_listener(channel, self._heard)
                for channel in self._listening - wanted:
                    await listener.remove_listener(channel, self._heard)
        except BaseException:
            pool.drop(listener)
            raise
        pool.release(listener)
        if wanted - self._listening:
            self.listeners.tell(None)
            self.listeners.tell(CancelRequested())
            self.listeners.ended()
        self._listening = wanted
        self._settled.set()

    def _heard(self, _connection: Any, _pid: int, channel: str, payload: str) -> None:
        if channel == self._calls.target.work_channel:
            self.listeners.tell(payload[1:] if payload.startswith("=") else request_in(payload))
        else:
            self.listeners.ended(payload)
