"""LISTEN: workers are woken when something may be claimable, waiters when their task has ended.

One connection does it, the pool's home connection, which serves calls as well. It is made when somebody first listens,
made anew when it is lost, and after that everybody is woken: what was said meanwhile was not heard.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.connect import Connection

_CHECK_SECONDS = 20.0
"""How often a silent connection is asked whether it is still there."""
_CHECK_TIMEOUT = 5.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LINGER_SECONDS = 5.0
"""A home connection that nobody listens on any more waits this long for the next listener."""

Wake = Callable[[str | None], None]


class Wakes:
    """Belongs to the event loop of its store. Behind PgBouncer there is no LISTEN: nobody is woken, all poll."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._workers: dict[object, Wake] = {}
        self._waiters: dict[UUID, set[asyncio.Event]] = {}
        self._listening: set[str] = set()
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None

    def listen(self, wake: Wake) -> Callable[[], None]:
        key = object()
        self._workers[key] = wake
        self._attend()

        def stop() -> None:
            self._workers.pop(key, None)
            self._changed.set()

        return stop

    def await_end(self, task_id: UUID) -> tuple[asyncio.Event, Callable[[], None]]:
        """An event that is set when that task may have ended, and how to give it back."""
        event = asyncio.Event()
        self._waiters.setdefault(task_id, set()).add(event)
        self._attend()

        def stop() -> None:
            waiting = self._waiters.get(task_id, set())
            waiting.discard(event)
            if not waiting:
                self._waiters.pop(task_id, None)
            self._changed.set()

        return event, stop

    async def attentive(self, timeout: float) -> None:
        """Returns when the channels that are wanted are listened to; or, with no harm, after the timeout."""
        if self._calls.target.pgbouncer or self._wanted() <= self._listening:
            return
        self._settled.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._settled.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        self._workers.clear()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait([self._runner])
        for waiting in self._waiters.values():
            for event in waiting:
                event.set()

    def _attend(self) -> None:
        self._changed.set()
        if self._runner is None or self._runner.done():
            self._runner = asyncio.get_running_loop().create_task(self._run(), name="tasklib wake-ups")

    def _wanted(self) -> set[str]:
        target = self._calls.target
        wanted = {target.work_channel} if self._workers else set()
        return wanted | ({target.done_channel} if self._waiters else set())

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
        """One connection's life as the home connection."""
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
            home = pool.home_if_free()
            if home is None:  # in use, and so alive; it comes back soon
                await self._changed_within(0.05 if wanted != self._listening else _CHECK_SECONDS)
                continue
            if not wanted and lonely:
                pool.leave_home(home)
                return
            await self._converse(home, wanted)
            lonely = not wanted
            await self._changed_within(_LINGER_SECONDS if lonely else _CHECK_SECONDS)

    async def _converse(self, home: Connection, wanted: set[str]) -> None:
        """Brings the channels up to date, or else makes sure that the connection answers."""
        pool = self._calls.pool
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT):
                if wanted == self._listening:
                    await home.execute("SELECT 1")
                for channel in wanted - self._listening:
                    await home.add_listener(channel, self._heard)
                for channel in self._listening - wanted:
                    await home.remove_listener(channel, self._heard)
        except BaseException:
            pool.drop(home)
            raise
        pool.release(home)
        if wanted - self._listening:
            self._wake_everybody()
        self._listening = wanted
        self._settled.set()

    async def _changed_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _heard(self, _connection: Any, _pid: int, channel: str, payload: str) -> None:
        if channel == self._calls.target.work_channel:
            name = payload[1:] if payload.startswith("=") else None
            self._wake_workers(name)
        else:
            for event in self._waiters.get(_uuid(payload), ()):
                event.set()

    def _wake_workers(self, name: str | None) -> None:
        for wake in list(self._workers.values()):
            try:
                wake(name)
            except Exception as error:  # its own fault, and not to be the others'
                context = {"message": "a listener for wake-ups failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

    def _wake_everybody(self) -> None:
        self._wake_workers(None)
        for waiting in self._waiters.values():
            for event in waiting:
                event.set()


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:  # somebody else's word on our channel
        return UUID(int=0)
