"""A worker as a process of its own: `python -m tests.worker.program '{"database_url": ...}' CONCURRENCY [burst]`."""

import asyncio
import json
import logging
import sys

import tests.worker.app
from tasklib import Config, TaskWorker

if __name__ == "__main__":
    assert tests.worker.app.work.name == "work"
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    logging.getLogger("tasklib.tasks").setLevel(logging.WARNING)  # how often they fail is told, not each that went well
    config = Config(**json.loads(sys.argv[1]))
    worker = TaskWorker(config, concurrency=int(sys.argv[2]), poll_interval_seconds=0.2, burst="burst" in sys.argv)
    asyncio.run(worker.run())
