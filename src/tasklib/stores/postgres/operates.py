"""Workers' heartbeats, what operators do, and housekeeping."""

from __future__ import annotations

from uuid import UUID

from tasklib.stores import serving
from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.looks import fetch
from tasklib.stores.values import WorkerBeat

_STRETCH = 20_000
"""Rows that one statement of a prune looks at."""
_STRETCHES = 50
"""Statements of one prune at most: the next goes on where this one stopped."""
_START = UUID(int=0)


async def beat(calls: Calls, worker: WorkerBeat) -> None:
    # Behind a pooler nobody hears: then nobody is to be told.
    listening = worker.listening and not calls.target.pgbouncer
    await fetch(
        calls,
        "beat",
        worker.id,
        worker.hostname,
        worker.pid,
        serving.written(worker),
        worker.concurrency,
        worker.running,
        listening,
        calls.offset,
    )
