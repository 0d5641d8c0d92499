"""Queues in this process's memory, by name. They outlive their stores: people call asyncio.run again and again."""

from __future__ import annotations

import os
import threading

from tasklib.stores.sql.sqlite.address import Address, memory_name
from tasklib.stores.sql.sqlite.connection_thread import ConnectionThread

_lock = threading.Lock()
_threads: dict[str, ConnectionThread] = {}


async def shared_thread(address: Address, timeout: float) -> ConnectionThread:
    """The one thread and connection of all stores on this queue, so that they never wait for each other's locks."""
    name = address.memory or ""
    with _lock:
        thread = _threads.get(name)
    if thread is not None:
        return thread
    fresh = ConnectionThread(address, f"tasklib-memory-{name}")
    await fresh.start(timeout)
    with _lock:
        thread = _threads.setdefault(name, fresh)
    if thread is not fresh:
        fresh.stop()
    return thread


def forget_memory(name: str) -> None:
    """Drops the queue behind `memory://name` with all its tasks. Stores that are open on it are closed by it."""
    with _lock:
        thread = _threads.pop(memory_name(name), None)
    if thread is not None:
        thread.stop()
        thread.join()


def _start_anew() -> None:
    # The threads are not in the child. Their dead frames still refer to the connections, so nothing closes them.
    global _lock
    _lock = threading.Lock()
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
