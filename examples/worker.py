"""Run tasks until Ctrl-C or SIGTERM: what is running then may finish, the rest is given back."""

import asyncio
import logging

import tasks  # noqa: F401 - a worker serves the tasks that it knows

import tasklib


async def main() -> None:
    worker = tasklib.TaskWorker(tasklib.Config(), concurrency=4)
    await worker.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(main())
