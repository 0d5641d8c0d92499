"""Awa (https://github.com/hardbyte/awa): a core in Rust, with Python around it."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
import psycopg
from awa import AsyncClient
from awa.bridge import insert_job

from benchmarks.contender import Contender
from benchmarks.starts import mark

# A second or so after the last task of a slot of its ring has completed, the slot is emptied, and its tasks are only a
# number. Its view `awa.terminal_jobs` is therefore no way to count: it has none of those, and the others it joins with
# their input by a nested loop, which takes a minute for 10,000 and keeps the slot from being emptied meanwhile.
_COMPLETED = """
    SELECT (SELECT coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches)
         + (SELECT count(*) FROM awa.done_entries WHERE state = 'completed')
         + (SELECT coalesce(sum(pruned_completed_count), 0) FROM awa.queue_terminal_rollups)
"""


@dataclass
class Noop:
    number: int


class Peer(Contender):
    settings = (
        "async handler, 1,024 workers on the queue, as its documentation has it for no-ops, and its defaults for the "
        "rest (more claimers, more connections, no deadline: no difference seen). One at a time through its bridge to "
        "asyncpg, which is faster than its own client; enqueue_many_copy in bulk (its fastest way in). No results."
    )

    knob = ("workers", 1024, (50, 200, 1024))

    async def prepare(self) -> None:
        async with AsyncClient(self.url) as client:
            await client.migrate()
            await client.install_queue_storage()

    async def open(self) -> None:
        self.client = AsyncClient(self.url)
        self.connection = await asyncpg.connect(self.url)

    async def send(self, number: int) -> None:
        await insert_job(self.connection, Noop(number), queue="bench")

    async def send_many(self, numbers: Sequence[int]) -> None:
        await self.client.enqueue_many_copy([Noop(number) for number in numbers], queue="bench")

    async def close(self) -> None:
        await self.connection.close()
        await self.client.close()

    def done(self) -> int:
        with psycopg.connect(self.url) as connection:
            found = connection.execute(_COMPLETED).fetchone()
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
