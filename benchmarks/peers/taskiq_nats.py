"""taskiq on NATS JetStream (https://github.com/taskiq-python/taskiq-nats)."""

import asyncio
from collections.abc import Sequence
from typing import Any

import nats
from taskiq.api import run_receiver_task
from taskiq_nats import NATSObjectStoreResultBackend, PullBasedJetStreamBroker

from benchmarks.contender import Contender
from benchmarks.starts import mark


class Peer(Contender):
    settings = (
        "pull consumer in batches of 100, 100 tasks at once, results in the object store. It has no bulk enqueue: in "
        "bulk, 100 at a time."
    )

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

    async def done(self) -> int:
        """One entry of meta data for each result."""
        servers, name = _address(self.url)
        client = await nats.connect(servers)
        try:
            stream = await client.jetstream().stream_info(
                f"OBJ_{name}_results", subjects_filter=f"$O.{name}_results.M.>"
            )
            return len(stream.state.subjects or {})
        finally:
            await client.close()

    def work(self) -> None:
        asyncio.run(_work(self.url))


def _address(url: str) -> tuple[list[str], str]:
    servers, _, name = url.partition("?bucket=")
    return servers.split(","), name


def _broker(url: str) -> tuple[PullBasedJetStreamBroker, Any]:
    servers, name = _address(url)
    broker = PullBasedJetStreamBroker(
        servers,
        subject=f"{name}_tasks",
        stream_name=f"{name}_stream",
        durable=f"{name}_durable",
        pull_consume_batch=100,
        pull_consume_timeout=0.05,
    ).with_result_backend(NATSObjectStoreResultBackend(servers, bucket_name=f"{name}_results"))

    @broker.task(task_name="noop")
    async def noop(number: int) -> int:
        mark(number)
        return number

    return broker, noop


async def _work(url: str) -> None:
    broker, _ = _broker(url)
    await run_receiver_task(broker, max_async_tasks=100, run_startup=True)
