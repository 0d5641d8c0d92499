"""From sync code to the engine: one event loop in one thread, which never runs user code. What does run user code gets
a thread and a loop for itself."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from tasklib.core.errors import TaskLibError

T = TypeVar("T")


class Bridge:
    """Made when first used, and made anew after a fork: threads and sockets do not survive one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the coroutine over there and waits for it here."""
        loop = self._started()
        if threading.current_thread() is self._thread:
            work.close()
            raise TaskLibError("a blocking call was made inside tasklib's own loop; use the _async form")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

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


def run_apart(work: Coroutine[Any, Any, T]) -> T:
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
run_blocking = bridge.run

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=bridge.forget)
atexit.register(bridge.close)
