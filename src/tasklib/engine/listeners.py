"""Tells middleware what has become of tasks, once it is committed.

In a thread of its own, one event after the other: a listener that fails or takes long can change no task, and delays
neither the worker's event loop nor its heartbeat or janitor.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import json
import logging
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, wait
from typing import NamedTuple

from tasklib.core.decide import UNTIMED, Change
from tasklib.core.outcome import Failed, Outcome
from tasklib.core.task import Claim, Task, TaskState
from tasklib.engine.middleware import EVENTS, Middleware, TaskEvent, defining

log = logging.getLogger("tasklib.middleware")

WAITING_LIMIT = 10_000
"""With so many events waiting, further ones are dropped: listeners are too slow for what happens."""
FLUSH_SECONDS = 5.0
"""How long a worker that stops waits for its listeners."""

Listener = Callable[[TaskEvent], Awaitable[None] | None]


class Settled(NamedTuple):
    """What was written of a task."""

    task: Claim | Task
    """As it was before."""
    change: Change
    outcome: Outcome | None = None


def listening(middleware: Sequence[Middleware]) -> bool:
    return bool(middleware) and bool(defining(middleware, *EVENTS))


def tell(middleware: Sequence[Middleware], settled: Settled) -> None:
    """Hands one event to those who listen."""
    kind = _kind(settled.change)
    if kind is not None and (listeners := defining(middleware, kind)):
        event = _event(settled)
        for each in listeners:
            _thread.put(getattr(each, kind), event)


async def flush() -> None:
    """Until listeners have heard what was told so far, or time is up."""
    heard = _thread.heard()
    if heard is not None:
        await asyncio.wait({asyncio.wrap_future(heard)}, timeout=FLUSH_SECONDS)


def flush_blocking() -> None:
    heard = _thread.heard()
    if heard is not None:
        wait([heard], FLUSH_SECONDS)


def _kind(change: Change) -> str | None:
    match change.state:
        case TaskState.COMPLETED:
            return "on_completed"
        case TaskState.CANCELLED:
            return "on_cancelled"
        case TaskState.FAILED:
            return "on_failed" if change.terminal else "on_retry"
        case _:
            return None  # given back or put off: nothing has happened yet


def _event(settled: Settled) -> TaskEvent:
    task, change, outcome = settled
    failed = outcome if isinstance(outcome, Failed) else None
    return TaskEvent(
        id=task.id,
        name=task.name,
        attempt=task.attempt if isinstance(task, Claim) else task.attempts,
        tags=json.loads(task.tags) if isinstance(task, Claim) else dict(task.tags),
        error=change.error,
        exception=None if failed is None else failed.cause,
        seconds=None if change.bucket == UNTIMED else change.run_ms / 1000,
        waited=task.waited_ms / 1000 if isinstance(task, Claim) and task.waited_ms is not None else None,
        retry_in=change.due_in if change.state is TaskState.FAILED else None,
        seen=failed is not None and failed.seen,
    )


class _Thread:
    """Made when first used, and made anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[tuple[Listener, TaskEvent] | Future[None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._dropping = False

    def put(self, listener: Listener, event: TaskEvent) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=_serve, args=(self._queue,), name="tasklib-events", daemon=True)
                self._thread.start()
            dropping = self._queue.qsize() >= WAITING_LIMIT
            first, self._dropping = dropping and not self._dropping, dropping
        if first:
            log.error("listeners are too slow: %d events wait, and further ones are dropped", WAITING_LIMIT)
        if not dropping:
            self._queue.put((listener, event))

    def heard(self) -> Future[None] | None:
        """Done once all is heard that was put so far; None: nothing ever was."""
        with self._lock:
            if self._thread is None:
                return None
        mark: Future[None] = Future()
        self._queue.put(mark)
        return mark

    def close(self) -> None:
        with self._lock:
            thread = self._thread
        if thread is not None:
            self._queue.put(None)
            thread.join(FLUSH_SECONDS)


def _serve(waiting: queue.SimpleQueue[tuple[Listener, TaskEvent] | Future[None] | None]) -> None:
    with asyncio.Runner() as runner:
        while (item := waiting.get()) is not None:
            if isinstance(item, Future):
                if item.set_running_or_notify_cancel():
                    item.set_result(None)
                continue
            listener, event = item
            try:
                answer = listener(event)
                if inspect.isawaitable(answer):
                    runner.run(_awaited(answer))
            except BaseException:  # whatever it is: the task is what it is, and the next event comes
                name = getattr(listener, "__qualname__", repr(listener))
                log.exception("the listener %s failed; task %s (%s) is not concerned", name, event.id, event.name)


async def _awaited(answer: Awaitable[None]) -> None:
    await answer


_thread = _Thread()


def _forget() -> None:
    """In a forked child, which has no such thread."""
    global _thread
    _thread = _Thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _thread.close())
