"""Bare asyncpg on tasklib's own table: INSERT, COPY, and a loop that claims and completes in batches. No validation, no
leases kept, no counters, no retries, no limits: what the database and the driver cost."""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from benchmarks.contender import Contender
from benchmarks.crowd import counted, make_schema
from benchmarks.starts import mark
from tasklib.core.ids import uuid7

INSERT = """
INSERT INTO tasks (
    id, name, state, kwargs, max_retries, priority, tags, scheduled_at, created_at, updated_at, ready
) VALUES (
    $1, 'noop', 'pending', $2, 3, 0, '{}', statement_timestamp(), statement_timestamp(), statement_timestamp(), true
)
"""
INSERT_AND_WAKE = f"{INSERT} RETURNING pg_notify('floor', '')::text"
CLAIM = """
WITH picked AS MATERIALIZED (
    SELECT id FROM tasks WHERE ready AND name = 'noop' ORDER BY priority DESC, created_at, id LIMIT $1
    FOR UPDATE SKIP LOCKED
)
UPDATE tasks SET state = 'running', worker_id = 'floor', ready = false, version = version + 1,
    started_at = clock_timestamp(), updated_at = clock_timestamp(), locked_until = clock_timestamp() + interval '600 s'
WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, version, kwargs
"""
COMPLETE = """
WITH batch AS MATERIALIZED (SELECT * FROM unnest($1::uuid[], $2::int[], $3::jsonb[]) AS b (id, version, result))
UPDATE tasks t SET state = 'completed', version = t.version + 1, worker_id = NULL, locked_until = NULL,
    completed_at = clock_timestamp(), updated_at = clock_timestamp(), result = b.result
FROM batch b WHERE t.id = b.id AND t.version = b.version AND t.worker_id = 'floor'
"""
COLUMNS = ["id", "name", "state", "kwargs", "tags", "scheduled_at", "created_at", "updated_at", "ready"]


class Floor(Contender):
    """Options: `batch` (500), `connections` (1), `wake` (False: submits without NOTIFY)."""

    settings = (
        "one connection, claims and completions of 500 in turns, results stored; the table and indexes of tasklib."
    )

    async def prepare(self) -> None:
        await make_schema(self.url)

    async def open(self) -> None:
        self.connection = await _connect(self.url)
        self.insert = await self.connection.prepare(INSERT_AND_WAKE if self.options.get("wake") else INSERT)

    async def send(self, number: int) -> None:
        await self.insert.fetchval(new_id(), json.dumps({"number": number}))

    async def send_many(self, numbers: Sequence[int]) -> None:
        now = datetime.now(UTC)
        rows = [
            (new_id(), "noop", "pending", json.dumps({"number": number}), "{}", now, now, now, True)
            for number in numbers
        ]
        await self.connection.copy_records_to_table("tasks", records=rows, columns=COLUMNS)

    async def close(self) -> None:
        await self.connection.close()

    def done(self) -> int:
        return counted(self.url, "noop")

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        batch = self.options.get("batch", 500)
        loops = [_Loop(await _connect(self.url), batch) for _ in range(self.options.get("connections", 1))]
        await asyncio.gather(*(loop.run() for loop in loops))


class _Loop:
    def __init__(self, connection: Any, batch: int) -> None:
        self.connection = connection
        self.batch = batch
        self.woken = asyncio.Event()

    async def run(self) -> None:
        await self.connection.execute("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        await self.connection.add_listener("floor", lambda *_: self.woken.set())
        claim = await self.connection.prepare(CLAIM)
        complete = await self.connection.prepare(COMPLETE)
        while True:
            self.woken.clear()
            rows = await claim.fetch(self.batch)
            if not rows:
                await self.woken.wait()
                continue
            results = []
            for row in rows:
                number = json.loads(row["kwargs"])["number"]
                mark(number)
                results.append(json.dumps(number))
            await complete.fetch([row["id"] for row in rows], [row["version"] for row in rows], results)


def new_id() -> UUID:
    return uuid7(time.time_ns() // 1_000_000, 0, int.from_bytes(os.urandom(8)))


async def _connect(url: str) -> Any:
    return await asyncpg.connect(url, statement_cache_size=100)
