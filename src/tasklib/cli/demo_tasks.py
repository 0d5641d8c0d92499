"""The tasks of `tasklib demo`, small stand-ins for what people put into a queue, and what each of them shows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from tasklib import RetryPolicy, TaskHandle, TaskState, current_task, every, flow, task
from tasklib.api.decorator import Submitter

_SOON = RetryPolicy(base=0.4, multiplier=2.0)  # short enough to watch; the default waits 5, 10 and 20 seconds


@task
async def send_email(to: str) -> str:
    await asyncio.sleep(0.3)
    return f"sent to {to}"


@task
def resize_photo(photo: str) -> str:
    threading.Event().wait(0.7)
    return f"thumbnails/{photo}"


@task(retry=_SOON)
async def charge_card(order: int) -> str:
    if current_task().attempt <= 2:
        raise ConnectionError("the payment gateway answered 503")
    return f"order {order} is paid"


@task(retry=_SOON, max_retries=2)
def import_feed(url: str) -> int:
    raise LookupError(f"{url} answered 404")


@task(max_retries=0)
async def crunch_numbers(seconds: int) -> None:
    await asyncio.sleep(seconds)


@task(queue="agents")  # not one that the demo's worker serves
def review_refund(order: int) -> str:
    return f"order {order}: refund approved"


@task
def read_orders(day: str) -> list[int]:
    threading.Event().wait(0.5)
    return [1017, 1018, 1019]


@task
async def add_up(orders: list[int], shop: str) -> int:
    await asyncio.sleep(0.6)
    return len(orders) * len(shop)


@task
def close_the_day(totals: list[int]) -> str:
    return f"{sum(totals)} pieces were sold"


async def put_together_a_flow() -> list[TaskHandle[Any]]:
    """One task, two that get its result, one that gets theirs."""
    async with flow("end of the day"):
        orders = await read_orders.submit_async("2026-11-18")
        totals = [await add_up.submit_async(orders.output, shop) for shop in ("Berlin", "Tokyo")]
        return [orders, *totals, await close_the_day.submit_async([total.output for total in totals])]


@task(schedule=every(seconds=5))
def send_digest() -> str:
    return f"the digest of {current_task().slot:%H:%M:%S}"


class Scene(NamedTuple):
    """One task of the demo, and how it must end."""

    shows: str
    task: Submitter[..., Any]
    arguments: Mapping[str, Any]
    ends: TaskState = TaskState.COMPLETED
    attempts: int = 1


OPENING = (
    Scene("runs at once", send_email, {"to": "ada@example.com"}),
    Scene("runs in a thread", resize_photo, {"photo": "beach.jpg"}),
    Scene("fails twice, is retried", charge_card, {"order": 1017}, attempts=3),
    Scene("fails for good", import_feed, {"url": "https://feeds.example.com/old"}, TaskState.FAILED, attempts=3),
    Scene("is claimed by an agent", review_refund, {"order": 1011}),
    Scene("waits 3 seconds", send_email.options(delay_seconds=3), {"to": "alan@example.com"}),
    Scene("runs into its timeout", crunch_numbers.options(timeout_seconds=1), {"seconds": 60}, TaskState.FAILED),
    Scene("is cancelled as it runs", crunch_numbers, {"seconds": 600}, TaskState.CANCELLED),
    Scene("jumps the queue", send_email.options(priority=100), {"to": "on-call@example.com"}),
)
"""Submitted before the worker starts, so that the last one can be seen to overtake the others."""
FLOW = (
    Scene("begins a flow", read_orders, {}),
    Scene("waits for its result", add_up, {}),
    Scene("waits for it, too", add_up, {}),
    Scene("gets both results", close_the_day, {}),
)
"""The tasks of `put_together_a_flow`, in their order."""
