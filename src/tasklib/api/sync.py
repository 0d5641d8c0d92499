"""From sync code to the engine: one event loop in one thread, which never runs user code. What does run user code gets
a thread and a loop for itself."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from tasklib.core.errors import TaskLibError

T = TypeVar("T")


class _Call(Generic[T]):
    """A coroutine on its way over and back. `asyncio.run_coroutine_threadsafe` does the same with two futures that are
    chained and a condition, which a single submit can feel."""

    def __init__(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._loop = loop
        self._task: asyncio.Task[None] | None = None
        self._result: T
        self._error: BaseException | None = None
        self.ended = threading.Lock()
        self.ended.acquire()

    def start(self) -> None:
        self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            self._result = await self._work
        except BaseException as error:
            self._error = error
        self.ended.release()  # not in a callback of the task, which would come a turn of the loop later

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            if inspect.getcoroutinestate(self._work) == inspect.CORO_CREATED:
                self._work.close()  # as its task will never begin

    def result(self) -> T:
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it holds this frame, which holds us
        return self._result


class Bridge:
    """Made when first used, and made anew after a fork: threads and sockets do not survive one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the coroutine over there and waits for it here."""
        loop = self._started()
        if self.is_here:
            work.close()
            raise TaskLibError("a blocking call was made inside tasklib's own loop; use the _async form")
        call = _Call(work, loop)
        loop.call_soon_threadsafe(call.start)
        try:
            call.ended.acquire()
        except BaseException:
            loop.call_soon_threadsafe(call.cancel)
            raise
        return call.result()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """For other threads. None: nothing was run yet."""
        return None if self.is_here else self._loop

    @property
    def is_here(self) -> bool:
        """Whether this is its own thread."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Ends the loop and with it what was opened in it."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None and thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(5.0)

    def forget(self) -> None:
        """In a forked child: the thread is not there, the lock may be held by nobody."""
        self._lock = threading.Lock()
        self._loop = self._thread = None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="tasklib-bridge", daemon=True)
                self._thread.start()
            return self._loop


def run_in_new_thread(work: Coroutine[Any, Any, T]) -> T:
    """Runs the coroutine in a thread and a loop of its own, and waits for it here."""
    outcome: Future[T] = Future()

    def main() -> None:
        try:
            outcome.set_result(asyncio.run(work))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=main, name="tasklib-apart", daemon=True).start()
    return outcome.result()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


bridge = Bridge()
run_sync = bridge.run

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=bridge.forget)
atexit.register(bridge.close)
