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
AFTER_GRACE_SECONDS = 10.0
"""How long a worker may take to give back its tasks and to sign off, once its grace period is over."""


class BackgroundWorker:
    """Runs a worker until `stop`. One that breaks is made anew after a while, as a supervisor would do."""

    def __init__(self, make: Callable[[], TaskWorker]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._left = threading.Event()
        """The last run is over. Its thread may still wait for a coroutine that does not end."""
        self._worker: TaskWorker | None = None
        self._grace = 0.0
        self._thread = threading.Thread(target=self._main, name="tasklib-worker", daemon=True)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and not self._left.is_set()

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
        """Claims nothing more, lets running tasks finish for the grace period, gives back the rest, and returns then,
        whatever the tasks do. Called by a handler of its own loop it only asks for that."""
        with self._lock:
            self._ended.set()
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()
        if threading.current_thread() is self._thread:
            return
        if not self._left.wait(self._grace + AFTER_GRACE_SECONDS):
            log.error("the worker of this process does not stop: a task blocks its event loop; it is left behind")

    def _main(self) -> None:
        try:
            self._serve()
        finally:
            self._left.set()

    def _serve(self) -> None:
        delay = FIRST_DELAY_SECONDS
        while not self._ended.is_set():
            try:
                with self._lock:
                    if self._ended.is_set():
                        return
                    worker = self._worker = self._make()
                    self._grace = worker.config.shutdown_grace_seconds
                asyncio.run(self._run(worker))
            except Exception:
                log.exception("the worker of this process broke; it starts anew in %g s", delay)
                self._ended.wait(delay)
                delay = min(delay * 2, LONGEST_DELAY_SECONDS)

    async def _run(self, worker: TaskWorker) -> None:
        try:
            await worker.run()
        finally:
            if self._ended.is_set():
                self._left.set()


_alive: weakref.WeakSet[BackgroundWorker] = weakref.WeakSet()


def _stop_all() -> None:
    """At exit: a daemon thread would be cut off in the middle of its tasks."""
    for worker in list(_alive):
        if worker.alive:
            worker.stop()


atexit.register(_stop_all)
