"""Live figures, read once for all who watch."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tasklib.core.errors import TaskLibError
from tasklib.engine.engine import Engine
from tasklib.server.views import control_view, stats_view

READ_SECONDS = 1.0
"""Figures are read at most this often, and this often while somebody watches."""
HEARTBEAT_SECONDS = 15.0
DRIFT_SECONDS = 1.0
"""The oldest due task of a type is another one when it is due so much earlier or later."""


@dataclass(frozen=True, slots=True)
class Figures:
    """As they were at one moment."""

    at: float
    stats: dict[str, Any] | None = None
    """None: the database could not be asked."""
    others: dict[str, str] = field(default_factory=dict)
    """Events that are sent whole."""


class Seen:
    """What one stream has been told."""

    def __init__(self) -> None:
        self._types: dict[str, tuple[dict[str, Any], float]] | None = None
        self._others: dict[str, str] = {}

    def events(self, figures: Figures) -> list[tuple[str, str]]:
        news = self.news(figures)
        events = [] if news is None else [(news[0], json.dumps(news[1], separators=(",", ":")))]
        for name, data in figures.others.items():
            if self._others.get(name) != data:
                self._others[name] = data
                events.append((name, data))
        return events

    def news(self, figures: Figures) -> tuple[str, dict[str, Any]] | None:
        """All counts at first; then the totals, the types whose figures have changed, and null for those that are gone.
        A due task that grows older is no change."""
        if figures.stats is None:
            return None
        types: dict[str, dict[str, Any]] = figures.stats["byType"]
        if self._types is None:
            self._types = {name: (each, figures.at) for name, each in types.items()}
            return "stats", figures.stats
        changed: dict[str, Any] = {
            name: each for name, each in types.items() if not _is_same(self._types.get(name), each, figures.at)
        }
        self._types |= {name: (each, figures.at) for name, each in changed.items()}
        for name in self._types.keys() - types.keys():
            del self._types[name]
            changed[name] = None
        return ("changes", {**figures.stats, "byType": changed}) if changed else None


def _is_same(told: tuple[dict[str, Any], float] | None, now: dict[str, Any], at: float) -> bool:
    if told is None:
        return False
    had, had_at = told
    older, oldest = had["oldestDueSeconds"], now["oldestDueSeconds"]
    if older is not None and oldest is not None and abs(oldest - older - (at - had_at)) <= DRIFT_SECONDS:
        oldest = older
    return had == {**now, "oldestDueSeconds": oldest}


class Feed:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = asyncio.Lock()
        self._read_at: float | None = None
        self._figures = Figures(0.0)
        self._ended = False
        self.reads = 0
        """How often the queue was asked."""

    def end(self) -> None:
        """Lets every stream end, so that the server can."""
        self._ended = True

    async def stream(self, seconds: float) -> AsyncIterator[str]:
        """Server-sent events: everything once, then what changes, and a comment now and then to show that we live."""
        started = spoke = time.monotonic()
        seen = Seen()
        yield "retry: 2000\n\n"
        while not self._ended and time.monotonic() - started < seconds:
            for name, data in seen.events(await self._read(started)):
                spoke = time.monotonic()
                yield f"event: {name}\ndata: {data}\n\n"
            if time.monotonic() - spoke > HEARTBEAT_SECONDS:
                spoke = time.monotonic()
                yield ": still here\n\n"
            await self._pause()

    async def _pause(self) -> None:
        for _ in range(5):  # in steps, so that an end is noticed
            if not self._ended:
                await asyncio.sleep(READ_SECONDS / 5)

    async def _read(self, since: float) -> Figures:
        """Not older than `since`: whoever comes may have seen what is newer than the last figures, and would not
        hear of a change back to them."""
        async with self._lock:
            now = time.monotonic()
            if self._read_at is None or self._read_at < since or now - self._read_at >= READ_SECONDS * 0.8:
                self._read_at = now
                self._figures = await self._ask()
                self.reads += 1
            return self._figures

    async def _ask(self) -> Figures:
        try:
            workers = await self._engine.workers()
            stats = stats_view(await self._engine.stats(), workers, self._engine.config.dead_after_seconds)
            controls = await self._engine.controls()
        except TaskLibError as error:
            return Figures(time.monotonic(), others={"problem": json.dumps({"code": error.code})})
        shown = {name: control_view(each).model_dump(mode="json", by_alias=True) for name, each in controls.items()}
        text = json.dumps({"paused": shown.get("", {}).get("paused", False), "types": shown})
        return Figures(time.monotonic(), stats.model_dump(mode="json", by_alias=True), {"controls": text})
