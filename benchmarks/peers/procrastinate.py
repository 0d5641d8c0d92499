"""Procrastinate (https://procrastinate.readthedocs.io)."""

import asyncio
from collections.abc import Sequence

import psycopg
from procrastinate import App, PsycopgConnector

from benchmarks.contender import Contender
from benchmarks.starts import mark


class Peer(Contender):
    settings = (
        "async task, worker concurrency 20, pool of up to 20 connections, LISTEN/NOTIFY on, batch_defer_async in bulk. "
        "Finished jobs stay in the table; no results."
    )
    knob = ("concurrency", 20, (1, 5, 20, 50))

    def prepare(self) -> None:
        app, _ = _app(self.url)
        asyncio.run(_schema(app))

    async def open(self) -> None:
        self.app, self.noop = _app(self.url)
        await self.app.open_async()

    async def send(self, number: int) -> None:
        await self.noop.defer_async(number=number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        await self.noop.batch_defer_async(*({"number": number} for number in numbers))

    async def close(self) -> None:
        await self.app.close_async()

    def done(self) -> int:
        with psycopg.connect(self.url) as connection:
            sql = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"
            found = connection.execute(sql).fetchone()
            return int(found[0]) if found else 0

    def work(self) -> None:
        asyncio.run(_work(_app(self.url)[0], self.chosen))


def _app(url: str):
    app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=20))

    @app.task(name="noop")
    async def noop(number: int) -> None:
        mark(number)

    return app, noop


async def _schema(app: App) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def _work(app: App, concurrency: int) -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=concurrency)
