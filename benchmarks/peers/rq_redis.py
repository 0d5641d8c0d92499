"""RQ on Redis (https://python-rq.org)."""

from collections.abc import Sequence

import redis
from rq import Queue, SimpleWorker
from rq.registry import FinishedJobRegistry

from benchmarks.contender import Contender
from benchmarks.starts import mark


def noop(number: int) -> int:
    mark(number)
    return number


class Peer(Contender):
    settings = "SimpleWorker (no fork for each job), enqueue_many in bulk, results kept for an hour."

    def open(self) -> None:
        self.queue = _queue(self.url)

    def send(self, number: int) -> None:
        self.queue.enqueue(noop, number, result_ttl=3600)

    def send_many(self, numbers: Sequence[int]) -> None:
        self.queue.enqueue_many([Queue.prepare_data(noop, (number,), result_ttl=3600) for number in numbers])

    def done(self) -> int:
        return len(FinishedJobRegistry(queue=_queue(self.url)))

    def work(self) -> None:
        queue = _queue(self.url)
        SimpleWorker([queue], connection=queue.connection).work(logging_level="WARNING")


def _queue(url: str) -> Queue:
    return Queue("bench", connection=redis.Redis.from_url(url))
