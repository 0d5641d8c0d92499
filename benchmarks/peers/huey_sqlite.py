"""Huey on SQLite (https://huey.readthedocs.io)."""

import logging
import sqlite3
from collections.abc import Sequence

from huey import SqliteHuey
from huey.consumer import Consumer

from benchmarks.contender import Contender
from benchmarks.starts import mark


class Peer(Contender):
    settings = (
        "one thread, initial_delay 0.01 and max_delay 0.05 (default 0.1 and 10), WAL, fsync on. It has no bulk "
        "enqueue: one at a time. Results are kept until they are read."
    )
    knob = ("workers", 1, (1, 2, 4))

    def open(self) -> None:
        self.queue, self.noop = _queue(self.url)

    def send(self, number: int) -> None:
        self.noop(number)

    def send_many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.noop(number)

    def done(self) -> int:
        connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=10)
        try:
            return int(connection.execute("SELECT count(*) FROM kv").fetchone()[0])
        finally:
            connection.close()

    def work(self) -> None:
        logging.getLogger("huey").setLevel(logging.WARNING)
        queue, _ = _queue(self.url)
        Consumer(
            queue, workers=self.chosen, worker_type="thread", initial_delay=0.01, max_delay=0.05, periodic=False
        ).run()


def _queue(url: str):
    queue = SqliteHuey("bench", filename=url.removeprefix("sqlite:///"), fsync=True)

    @queue.task()
    def noop(number: int) -> int:
        mark(number)
        return number

    return queue, noop
