"""taskiq on Redis (https://taskiq-python.github.io)."""

import asyncio
from collections.abc import Sequence
from typing import Any

import redis
from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend

from benchmarks.contender import Contender
from benchmarks.starts import mark


class Peer(Contender):
    settings = "list queue, 100 tasks at once, results stored in Redis. It has no bulk enqueue: in bulk, 100 at a time."

    async def open(self) -> None:
        self.broker, self.noop = _broker(self.url)
        await self.broker.startup()

    async def send(self, number: int) -> None:
        await self.noop.kiq(number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        for at in range(0, len(numbers), 100):
            await asyncio.gather(*(self.noop.kiq(number) for number in numbers[at : at + 100]))

    async def close(self) -> None:
        await self.broker.shutdown()

    def done(self) -> int:
        return int(redis.Redis.from_url(_results(self.url)).dbsize())

    def work(self) -> None:
        asyncio.run(_work(self.url))


def _broker(url: str) -> tuple[ListQueueBroker, Any]:
    broker = ListQueueBroker(url).with_result_backend(RedisAsyncResultBackend(_results(url)))

    @broker.task(task_name="noop")
    async def noop(number: int) -> int:
        mark(number)
        return number

    return broker, noop


def _results(url: str) -> str:
    """A database of their own, so that they can be counted."""
    return f"{url.removesuffix('/0')}/1"


async def _work(url: str) -> None:
    broker, _ = _broker(url)
    await run_receiver_task(broker, max_async_tasks=100, run_startup=True)
