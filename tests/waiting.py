"""Waiting for a condition with a deadline: the only place where tests may sleep."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


def eventually(condition: Callable[[], T], timeout: float = 30, interval: float = 0.01) -> T:
    """Call `condition` until what it returns is true, and return that; AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise _too_late(condition, timeout, value)
        time.sleep(interval)
    return value


@overload
async def eventually_async(condition: Callable[[], Awaitable[T]], timeout: float = ..., interval: float = ...) -> T: ...
@overload
async def eventually_async(condition: Callable[[], T], timeout: float = ..., interval: float = ...) -> T: ...
async def eventually_async(condition: Callable[[], Any], timeout: float = 30, interval: float = 0.01) -> Any:
    """The same without blocking the event loop; `condition` may be a plain or an async function."""
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        value = await found if inspect.isawaitable(found) else found
        if value:
            return value
        if time.monotonic() >= deadline:
            raise _too_late(condition, timeout, value)
        await asyncio.sleep(interval)


async def pause(seconds: float) -> None:
    """For what is slow itself: a line with latency, a fault that lasts. Never to wait for something."""
    await asyncio.sleep(seconds)


async def turns(number: int) -> None:
    """Lets the event loop go round this often."""
    for _ in range(number):
        await asyncio.sleep(0)


def _too_late(condition: Callable[..., object], timeout: float, value: object) -> AssertionError:
    where = getattr(condition, "__code__", None)
    what = f"{where.co_filename}:{where.co_firstlineno}" if where else repr(condition)
    return AssertionError(f"still not true after {timeout} s: {what}; last value: {value!r}")
