"""Awa (https://github.com/hardbyte/awa): a core in Rust, with Python around it."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from awa import AsyncClient

from benchmarks.contender import Contender
from benchmarks.starts import mark


@dataclass
class Noop:
    number: int


class Peer(Contender):
    settings = "async handler, 200 workers on the queue, enqueue_many_copy in bulk (its fastest way in). No results."

    knob = ("workers", 200, (20, 200, 1000))

    async def prepare(self) -> None:
        client = AsyncClient(self.url)
        await client.migrate()
        await client.install_queue_storage()

    async def open(self) -> None:
        self.client = AsyncClient(self.url)

    async def send(self, number: int) -> None:
        await self.client.insert(Noop(number), queue="bench")

    async def send_many(self, numbers: Sequence[int]) -> None:
        await self.client.enqueue_many_copy([Noop(number) for number in numbers], queue="bench")

    async def close(self) -> None:
        await self.client.close()

    def done(self) -> int:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("SELECT count(*) FROM awa.terminal_jobs WHERE state = 'completed'").fetchone()
            return int(found[0]) if found else 0

    def work(self) -> None:
        asyncio.run(_work(self.url, self.chosen))


async def _work(url: str, workers: int) -> None:
    client = AsyncClient(url)

    @client.task(Noop, queue="bench")
    async def noop(job) -> None:
        mark(job.args.number)

    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await client.start([("bench", workers)])
    await stopped.wait()
    await client.shutdown()
