"""Event loops of our own: uvloop's where it is installed (the extra `fast`), which takes less time for every call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def _quickest() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


new_loop = _quickest()


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on such a loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)
