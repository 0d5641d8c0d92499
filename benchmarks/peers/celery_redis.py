"""Celery on Redis (https://docs.celeryq.dev)."""

import os
from collections.abc import Sequence
from typing import Any

import redis
from celery import Celery, group

from benchmarks.contender import Contender
from benchmarks.starts import mark


class Peer(Contender):
    settings = (
        "prefork pool with a process for each core, worker_prefetch_multiplier 100, no gossip, mingle or heartbeat, "
        "results stored in Redis."
    )

    def open(self) -> None:
        self.app, self.noop = _app(self.url)

    def send(self, number: int) -> None:
        self.noop.delay(number)

    def send_many(self, numbers: Sequence[int]) -> None:
        group(self.noop.s(number) for number in numbers).apply_async()

    def done(self) -> int:
        return int(redis.Redis.from_url(_results(self.url)).dbsize())

    def work(self) -> None:
        app, _ = _app(self.url)
        options = ["--pool=prefork", f"--concurrency={os.cpu_count()}", "--without-gossip", "--without-mingle"]
        app.worker_main(["worker", "--loglevel=WARNING", "--without-heartbeat", *options])


def _app(url: str) -> tuple[Celery, Any]:
    app = Celery("bench", broker=url, backend=_results(url))
    app.conf.update(worker_prefetch_multiplier=100, task_track_started=False, result_expires=3600)

    @app.task(name="noop")
    def noop(number: int) -> int:
        mark(number)
        return number

    return app, noop


def _results(url: str) -> str:
    """A database of their own, so that they can be counted."""
    return f"{url.removesuffix('/0')}/1"
