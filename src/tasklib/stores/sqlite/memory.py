"""Queues in this process's memory, by name. They outlive their stores: people call asyncio.run again and again."""

from __future__ import annotations

import os
import threading

from tasklib.stores.sqlite.address import Address, memory_name
from tasklib.stores.sqlite.lane import Lane

_lock = threading.Lock()
_lanes: dict[str, Lane] = {}


async def shared_lane(address: Address, timeout: float) -> Lane:
    """The one thread and connection of all stores on this queue, so that they never wait for each other's locks."""
    name = address.memory or ""
    with _lock:
        lane = _lanes.get(name)
    if lane is not None:
        return lane
    fresh = Lane(address, f"tasklib-memory-{name}")
    await fresh.start(timeout)
    with _lock:
        lane = _lanes.setdefault(name, fresh)
    if lane is not fresh:
        fresh.stop()
    return lane


def forget_memory(name: str) -> None:
    """Drops the queue behind `memory://name` with all its tasks. Stores that are open on it are closed by it."""
    with _lock:
        lane = _lanes.pop(memory_name(name), None)
    if lane is not None:
        lane.stop()
        lane.join()


def _start_anew() -> None:
    # The threads are not in the child. The lanes stay referenced by their threads' dead frames: nothing closes them.
    global _lock
    _lock = threading.Lock()
    _lanes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
