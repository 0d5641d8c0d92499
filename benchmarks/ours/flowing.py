"""The tasks of the benchmark's flows."""

import time

from tasklib import task


@task
async def hop() -> float:
    """When it began."""
    return time.time()


@task
def step() -> None: ...
