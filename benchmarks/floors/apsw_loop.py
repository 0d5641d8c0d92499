"""Bare apsw on tasklib's own table: INSERT, and a loop that claims and completes in batches; WAL, synchronous=FULL."""

import json
import os
import time
from collections.abc import Sequence

import apsw

from benchmarks.contender import Contender
from benchmarks.crowd import counted, make_schema
from benchmarks.starts import mark
from tasklib.core.ids import uuid7
from tasklib.stores.sql.sqlite.connection import WAL_PAGES

INSERT = """
INSERT INTO tasks (id, name, state, kwargs, ready) VALUES (?, 'noop', 'pending', ?, 1)
"""
CLAIM = """
UPDATE tasks SET state = 'running', worker_id = 'floor', ready = 0, version = version + 1,
    started_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
    locked_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+600 seconds')
WHERE id IN (SELECT id FROM tasks WHERE ready = 1 AND name = 'noop' ORDER BY priority DESC, created_at, id LIMIT ?)
RETURNING id, version, kwargs
"""
COMPLETE = """
UPDATE tasks SET state = 'completed', version = version + 1, worker_id = NULL, locked_until = NULL, result = ?,
    completed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE id = ? AND version = ? AND worker_id = 'floor'
"""
IDLE_SECONDS = 0.001


class Floor(Contender):
    """Options: `batch` (500)."""

    settings = "one connection, claims and completions of 500 in turns, results stored; polls every millisecond."

    async def prepare(self) -> None:
        await make_schema(self.url)

    def open(self) -> None:
        self.connection = _connect(self.url)

    def send(self, number: int) -> None:
        self.connection.execute(INSERT, (_id(), json.dumps({"number": number})))

    def send_many(self, numbers: Sequence[int]) -> None:
        with self.connection:
            self.connection.executemany(INSERT, ((_id(), json.dumps({"number": number})) for number in numbers))

    def close(self) -> None:
        self.connection.close()

    def done(self) -> int:
        return counted(self.url, "noop")

    def work(self) -> None:
        connection = _connect(self.url)
        batch = self.options.get("batch", 500)
        while True:
            with connection:
                rows = connection.execute(CLAIM, (batch,)).fetchall()
            if not rows:
                time.sleep(IDLE_SECONDS)
                continue
            finished = []
            for task_id, version, kwargs in rows:
                number = json.loads(kwargs)["number"]
                mark(number)
                finished.append((json.dumps(number), task_id, version))
            with connection:
                connection.executemany(COMPLETE, finished)


def _connect(url: str) -> apsw.Connection:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.set_busy_timeout(10_000)
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    # A log that still grows makes each flush take half as long again: both are to begin it anew after as many pages.
    connection.wal_autocheckpoint(WAL_PAGES)
    return connection


def _id() -> str:
    return str(uuid7(time.time_ns() // 1_000_000, 0, int.from_bytes(os.urandom(8))))
