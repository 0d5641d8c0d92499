"""A worker, with old code or with new: `python -m tests.upgrade.worker '{"database_url": ...}' CONCURRENCY`."""

import asyncio
import json
import logging
import sys

import tests.upgrade.app
from tasklib import Config, TaskWorker

if __name__ == "__main__":
    assert tests.upgrade.app.work.name == "work"
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    logging.getLogger("tasklib.tasks").setLevel(logging.WARNING)
    worker = TaskWorker(Config(**json.loads(sys.argv[1])), concurrency=int(sys.argv[2]), poll_interval_seconds=0.2)
    asyncio.run(worker.run())
