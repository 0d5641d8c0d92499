"""The worker for `worker-deployment.yaml`: it touches a file while it is well, which is what the probes look at.

A probe must not ask the database: with the database away every worker would be restarted, to no avail.
"""

import asyncio
import logging
import os
from pathlib import Path

import tasks  # noqa: F401 - a worker serves the tasks that it knows

import tasklib


async def show_signs_of_life(file: Path) -> None:
    while True:
        file.touch()
        await asyncio.sleep(5)


async def main() -> None:
    alive = asyncio.create_task(show_signs_of_life(Path(os.environ["ALIVE_FILE"])))
    try:
        await tasklib.TaskWorker(tasklib.Config(), concurrency=int(os.environ.get("CONCURRENCY", "4"))).run()
    finally:
        alive.cancel()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(main())
