"""SAQ on Redis (https://saq-py.readthedocs.io)."""

from typing import Any

import redis

from benchmarks.peers import saq_postgres


class Peer(saq_postgres.Peer):
    settings = (
        "concurrency 100, up to 200 connections; results kept for ten minutes (ttl). It has no bulk enqueue: in bulk, "
        "20 submits at a time."
    )

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        # redis-py's own limit is 100, and its 100 slots are not all that connect: jobs stay behind unfinished.
        super().__init__(f"{url}?max_connections=200", options)

    async def prepare(self) -> None:
        pass

    def done(self) -> int:
        """All jobs that Redis has, without those that it lists as unfinished."""
        with redis.Redis.from_url(self.url) as connection:
            jobs = sum(1 for _ in connection.scan_iter("saq:job:bench:*", count=10_000))
            return jobs - int(connection.zcard("saq:bench:incomplete"))
