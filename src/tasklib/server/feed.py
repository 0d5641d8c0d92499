"""Live figures, read once for all who watch."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from tasklib.core.errors import TaskLibError
from tasklib.engine.engine import Engine
from tasklib.server.views import control_view, stats_view

READ_SECONDS = 1.0
"""Figures are read at most this often, and this often while somebody watches."""
HEARTBEAT_SECONDS = 15.0


class Feed:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = asyncio.Lock()
        self._read_at: float | None = None
        self._events: dict[str, str] = {}
        self._ended = False
        self.reads = 0
        """How often the queue was asked."""

    def end(self) -> None:
        """Lets every stream end, so that the server can."""
        self._ended = True

    async def stream(self, seconds: float) -> AsyncIterator[str]:
        """Server-sent events: what has changed since the last one, and a comment now and then to show that we live."""
        started = spoke = time.monotonic()
        sent: dict[str, str] = {}
        yield "retry: 2000\n\n"
        while not self._ended and time.monotonic() - started < seconds:
            for name, data in (await self._read(started)).items():
                if sent.get(name) != data:
                    sent[name], spoke = data, time.monotonic()
                    yield f"event: {name}\ndata: {data}\n\n"
            if time.monotonic() - spoke > HEARTBEAT_SECONDS:
                spoke = time.monotonic()
                yield ": still here\n\n"
            await self._pause()

    async def _pause(self) -> None:
        for _ in range(5):  # in steps, so that an end is noticed
            if not self._ended:
                await asyncio.sleep(READ_SECONDS / 5)

    async def _read(self, since: float) -> dict[str, str]:
        """Not older than `since`: whoever comes may have seen what is newer than the last figures, and would not
        hear of a change back to them."""
        async with self._lock:
            now = time.monotonic()
            if self._read_at is None or self._read_at < since or now - self._read_at >= READ_SECONDS * 0.8:
                self._read_at = now
                self._events = await self._figures()
                self.reads += 1
            return dict(self._events)

    async def _figures(self) -> dict[str, str]:
        try:
            workers = await self._engine.workers()
            stats = stats_view(await self._engine.stats(), workers, self._engine.config.dead_after_seconds)
            controls = await self._engine.controls()
        except TaskLibError as error:
            return {"problem": json.dumps({"code": error.code})}
        shown = {name: control_view(each).model_dump(by_alias=True) for name, each in controls.items()}
        return {
            "stats": stats.model_dump_json(by_alias=True),
            "controls": json.dumps({"paused": shown.get("", {}).get("paused", False), "types": shown}),
        }
