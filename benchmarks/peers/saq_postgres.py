"""SAQ on PostgreSQL (https://saq-py.readthedocs.io)."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
from saq import Queue, Worker

from benchmarks.contender import Contender
from benchmarks.starts import mark


async def noop(context: Any, *, number: int) -> int:
    mark(number)
    return number


class Peer(Contender):
    settings = (
        "concurrency 100, pool of up to 20 connections, LISTEN/NOTIFY; results kept for ten minutes (ttl). It has no "
        "bulk insert: in bulk, 20 submits at a time (its pool)."
    )
    knob = ("concurrency", 100, (10, 20, 100))

    async def prepare(self) -> None:
        queue = _queue(self.url)
        await queue.connect()
        await queue.disconnect()

    async def open(self) -> None:
        self.queue = _queue(self.url)
        await self.queue.connect()

    async def send(self, number: int) -> None:
        await self.queue.enqueue("noop", number=number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        for at in range(0, len(numbers), 20):
            await asyncio.gather(*(self.queue.enqueue("noop", number=number) for number in numbers[at : at + 20]))

    async def close(self) -> None:
        await self.queue.disconnect()

    def done(self) -> int:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("SELECT count(*) FROM saq_jobs WHERE status = 'complete'").fetchone()
            return int(found[0]) if found else 0

    def work(self) -> None:
        asyncio.run(_work(self.url, self.chosen))


def _queue(url: str) -> Queue:
    return Queue.from_url(url, name="bench")


async def _work(url: str, concurrency: int) -> None:
    queue = _queue(url)
    await queue.connect()
    await Worker(queue, functions=[noop], concurrency=concurrency).start()
