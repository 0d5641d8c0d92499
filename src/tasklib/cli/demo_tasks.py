"""The tasks of `tasklib demo`: small stand-ins for what people put into a queue."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tasklib.core.retry import RetryPolicy
from tasklib.doors.functions import task
from tasklib.worker.current import current_task

_SOON = RetryPolicy(base=0.4, multiplier=2.0)
"""Short enough to watch. The default waits 5, 10 and 20 seconds."""


@task
async def send_welcome_email(to: str) -> str:
    await asyncio.sleep(0.3)
    return f"sent to {to}"


@task
def resize_photo(photo: str, width: int) -> dict[str, Any]:
    _work(0.7)
    return {"photo": photo, "size": [width, width * 2 // 3]}


@task(retry=_SOON)
async def charge_card(order: int, amount: float) -> str:
    await asyncio.sleep(0.2)
    if current_task().attempt <= 2:
        raise ConnectionError("the payment gateway answered 503")
    return f"order {order}: charged {amount:.2f}"


@task(retry=_SOON, max_retries=2)
def import_feed(url: str) -> int:
    _work(0.2)
    raise LookupError(f"{url} answered 404")


@task
async def send_reminder(to: str) -> str:
    await asyncio.sleep(0.2)
    return f"reminded {to}"


@task(timeout_seconds=1, max_retries=0)
def crunch_numbers(rows: int) -> int:
    for _ in range(rows):
        _work(0.05)
    return rows


@task
async def rebuild_search_index(shards: int) -> int:
    await asyncio.sleep(shards * 10.0)
    return shards


@task
async def send_newsletter(issue: int) -> str:
    await asyncio.sleep(0.2)
    return f"issue {issue} sent"


@task(priority=100)
async def page_on_call(reason: str) -> str:
    await asyncio.sleep(0.2)
    return f"paged: {reason}"


def _work(seconds: float) -> None:
    """Stands for something that keeps a thread busy."""
    threading.Event().wait(seconds)
