"""Tasks that run until they are cancelled."""

import asyncio
from typing import Any

from benchmarks.ours.queue import Tasklib
from benchmarks.starts import mark
from tasklib import task


@task
async def until_cancelled(number: int) -> None:
    mark(2 * number)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        mark(2 * number + 1)
        raise


class Cancelled(Tasklib):
    """With every setting at its default: a heartbeat comes every ten seconds."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        super().__init__(url, options)
        self._handles: dict[int, Any] = {}

    async def send(self, number: int) -> None:
        self._handles[number] = await until_cancelled.submit_async(number=number)

    async def cancel(self, number: int) -> None:
        await self._handles.pop(number).cancel_async()
