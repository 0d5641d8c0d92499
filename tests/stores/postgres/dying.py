"""A worker that claims the task `parent`, says so, ends it when it is told to, and is killed before its second look:
`python -m tests.stores.postgres.dying URL`."""

import asyncio
import os
import signal
import sys
from typing import Any

from tasklib.stores.sql import settle as settling
from tasklib.stores.sql.postgres import PostgresStore
from tests.conformance.builders import claim_one, completed


def killed(ids: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str) -> None:
    setattr(settling, "recount", killed)  # noqa: B010
    store = PostgresStore(url)
    await store.open()
    held = await claim_one(store, "parent")
    print("claimed", flush=True)
    sys.stdin.readline()
    await store.settle([completed(held)._replace(feeds=True)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
