"""PgQueuer (https://github.com/janbjorge/pgqueuer)."""

import asyncio
import json
import signal
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import psycopg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.contender import Contender
from benchmarks.starts import mark


class Peer(Contender):
    settings = (
        "batch_size 1000 (default 10), async entrypoint, asyncpg, uvloop as in its own command line, durable "
        "tables (its default). It moves finished jobs to a log table and stores no results."
    )

    knob = ("batch_size", 1000, (10, 100, 1000))

    async def prepare(self) -> None:
        connection = await asyncpg.connect(self.url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def open(self) -> None:
        self.connection = await asyncpg.connect(self.url)
        self.queries = Queries(AsyncpgDriver(self.connection))

    async def send(self, number: int) -> None:
        await self.queries.enqueue("noop", json.dumps({"number": number}).encode())

    async def send_many(self, numbers: Sequence[int]) -> None:
        payloads: list[bytes | None] = [json.dumps({"number": number}).encode() for number in numbers]
        await self.queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))

    async def close(self) -> None:
        await self.connection.close()

    def done(self) -> int:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'").fetchone()
            return int(found[0]) if found else 0

    def work(self) -> None:
        uvloop.run(self._work())

    async def _work(self) -> None:
        connection = await asyncpg.connect(self.url)
        queue = PgQueuer(AsyncpgDriver(connection))

        @queue.entrypoint("noop")
        async def noop(job: Job) -> None:
            mark(json.loads(job.payload or b"")["number"])

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
        await queue.run(batch_size=self.chosen, dequeue_timeout=timedelta(seconds=30))
