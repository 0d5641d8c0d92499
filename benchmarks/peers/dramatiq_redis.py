"""Dramatiq on Redis (https://dramatiq.io)."""

import signal
import threading
from collections.abc import Sequence
from typing import Any

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.contender import Contender
from benchmarks.starts import mark


class Peer(Contender):
    settings = (
        "one process with 8 threads (its default), results stored in Redis. It has no bulk enqueue: one at a time."
    )

    def open(self) -> None:
        self.broker, self.noop = _broker(self.url)

    def send(self, number: int) -> None:
        self.noop.send(number)

    def send_many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.noop.send(number)

    def done(self) -> int:
        return int(redis.Redis.from_url(_results(self.url)).dbsize())

    def work(self) -> None:
        broker, _ = _broker(self.url)
        worker = dramatiq.Worker(broker, worker_threads=8)
        worker.start()
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        stopped.wait()
        worker.stop()


def _broker(url: str) -> tuple[RedisBroker, Any]:
    broker = RedisBroker(url=url)
    broker.add_middleware(Results(backend=RedisBackend(url=_results(url))))
    dramatiq.set_broker(broker)

    @dramatiq.actor(store_results=True, broker=broker, actor_name="noop")
    def noop(number: int) -> int:
        mark(number)
        return number

    return broker, noop


def _results(url: str) -> str:
    """A database of their own, so that they can be counted."""
    return f"{url.removesuffix('/0')}/1"
