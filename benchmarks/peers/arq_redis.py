"""arq on Redis (https://arq-docs.helpmanual.io)."""

import asyncio
from collections.abc import Sequence
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from benchmarks.contender import Contender
from benchmarks.starts import mark


async def noop(context: Any, number: int) -> int:
    mark(number)
    return number


class Peer(Contender):
    settings = (
        "max_jobs 100, poll_delay 0.01 (default 0.5), results kept for an hour. It has no bulk enqueue: in bulk, 100 "
        "enqueues at a time."
    )

    async def open(self) -> None:
        self.pool = await create_pool(RedisSettings.from_dsn(self.url))

    async def send(self, number: int) -> None:
        await self.pool.enqueue_job("noop", number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        for at in range(0, len(numbers), 100):
            await asyncio.gather(*(self.pool.enqueue_job("noop", number) for number in numbers[at : at + 100]))

    async def close(self) -> None:
        await self.pool.aclose()

    async def done(self) -> int:
        count = 0
        async for _ in self.pool.scan_iter("arq:result:*", count=10_000):
            count += 1
        return count

    def work(self) -> None:
        asyncio.run(_work(self.url))


async def _work(url: str) -> None:
    await Worker(
        [func(noop, keep_result=3600)],
        redis_settings=RedisSettings.from_dsn(url),
        max_jobs=100,
        poll_delay=0.01,
        handle_signals=True,
    ).async_run()
