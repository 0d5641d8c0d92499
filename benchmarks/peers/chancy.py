"""Chancy (https://tkte.ch/chancy)."""

import asyncio
import logging
from collections.abc import Sequence

import psycopg
from chancy import Chancy, Job, Queue, Worker, job

from benchmarks.contender import Contender
from benchmarks.starts import mark


@job(queue="bench")
async def noop(*, number: int) -> None:
    mark(number)


class Peer(Contender):
    settings = (
        "async executor, concurrency 1000 (a batch as large as the concurrency is fetched), eager_polling, "
        "LISTEN/NOTIFY on, push_many in bulk. Finished jobs stay in the table; no results."
    )

    knob = ("concurrency", 1000, (10, 100, 1000))

    async def prepare(self) -> None:
        async with _app(self.url) as app:
            await app.migrate()
            await app.declare(
                Queue(
                    "bench",
                    concurrency=self.chosen,
                    executor=Chancy.Executor.Async,
                    polling_interval=1,
                    eager_polling=True,
                )
            )

    async def open(self) -> None:
        self.app = _app(self.url)
        await self.app.__aenter__()

    async def send(self, number: int) -> None:
        await self.app.push(_job(number))

    async def send_many(self, numbers: Sequence[int]) -> None:
        async for _ in self.app.push_many([_job(number) for number in numbers]):
            pass

    async def close(self) -> None:
        await self.app.__aexit__(None, None, None)

    def done(self) -> int:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("SELECT count(*) FROM chancy_jobs WHERE state = 'succeeded'").fetchone()
            return int(found[0]) if found else 0

    def work(self) -> None:
        asyncio.run(_work(self.url))


def _app(url: str) -> Chancy:
    return Chancy(url, log=logging.getLogger("chancy"))


def _job(number: int) -> Job:
    return noop.job.with_kwargs(number=number)


async def _work(url: str) -> None:
    async with _app(url) as app, Worker(app) as worker:
        await worker.wait_for_shutdown()
