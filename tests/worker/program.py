"""A worker as a process of its own: `python -m tests.worker.program '{"database_url": ...}' CONCURRENCY [burst]`."""

import asyncio
import json
import logging
import os
import signal
import sys
from typing import Any, cast

import tests.worker.app
from tasklib import Config, TaskWorker

DIES_IN_FIRE = "TASKLIB_TEST_DIES_IN_FIRE"
"""In the environment: it is killed in the middle of its first fire of a schedule."""


def die_in_fire() -> None:
    """Where SQL engines have the schedule under its version, and its tasks stored, and have not committed; and where
    NATS has been sent all of the batch but its commit."""
    from tasklib.stores.nats.keys import SCHEDULE
    from tasklib.stores.nats.kv import KeyValueStore
    from tasklib.stores.sql import schedules

    message = KeyValueStore._message

    def die(*_: object) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def die_at_commit(kv: KeyValueStore, write: Any, headers: dict[str, str]) -> Any:
        batch = headers.get("Nats-Batch-Id")
        if batch is not None and write.key.startswith(SCHEDULE):
            fires.add(batch)
        if batch in fires and "Nats-Batch-Commit" in headers:
            die()
        return message(kv, write, headers)

    fires: set[str | None] = set()
    sql, nats = cast(Any, schedules), cast(Any, KeyValueStore)
    sql.fired, nats._message = die, die_at_commit


if __name__ == "__main__":
    assert tests.worker.app.work.name == "work"
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    logging.getLogger("tasklib.tasks").setLevel(logging.WARNING)  # how often they fail is told, not each that went well
    if os.environ.get(DIES_IN_FIRE):
        die_in_fire()
    config = Config(**json.loads(sys.argv[1]))
    worker = TaskWorker(config, concurrency=int(sys.argv[2]), poll_interval_seconds=0.2, burst="burst" in sys.argv)
    asyncio.run(worker.run())
