"""A worker beside the application: in a daemon thread, with an event loop of its own."""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import weakref
from collections.abc import Callable

from tasklib.worker.worker import TaskWorker

log = logging.getLogger("tasklib.worker")

FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 30.0


class BackgroundWorker:
    """Runs a worker until `stop`. One that breaks is made anew after a while, as a supervisor would do."""

    def __init__(self, make: Callable[[], TaskWorker]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._worker: TaskWorker | None = None
        self._thread = threading.Thread(target=self._main, name="tasklib-worker", daemon=True)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def ending(self) -> bool:
        """It was told to stop, and may still be about it."""
        return self._ended.is_set()

    def start(self) -> None:
        self._thread.start()
        _alive.add(self)

    def adjust(self, concurrency: int) -> None:
        """More or fewer at once, or other types: the worker takes notice now."""
        with self._lock:
            worker = self._worker
        if worker is not None:
            worker.adjust(concurrency)

    def stop(self) -> None:
        """Claims nothing more, lets running tasks finish for the grace period, gives back the rest, and returns then.
        Called by a handler of its own loop it only asks for that."""
        with self._lock:
            self._ended.set()
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _main(self) -> None:
        delay = FIRST_DELAY_SECONDS
        while not self._ended.is_set():
            try:
                with self._lock:
                    if self._ended.is_set():
                        return
                    worker = self._worker = self._make()
                asyncio.run(worker.run())
            except Exception:
                log.exception("the worker of this process broke; it starts anew in %g s", delay)
                self._ended.wait(delay)
                delay = min(delay * 2, LONGEST_DELAY_SECONDS)


_alive: weakref.WeakSet[BackgroundWorker] = weakref.WeakSet()


def _stop_all() -> None:
    """At exit: a daemon thread would be cut off in the middle of its tasks."""
    for worker in list(_alive):
        if worker.alive:
            worker.stop()


atexit.register(_stop_all)
