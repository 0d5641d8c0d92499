"""Fires schedules: looks what is due, and sleeps until the next will be. Every worker has one, and none leads."""

from __future__ import annotations

import asyncio
import logging
import random
import time

from tasklib.core.errors import TRANSIENT, StoreGone
from tasklib.engine.engine import Engine
from tasklib.engine.schedules import LOOK_AGAIN_SECONDS
from tasklib.stores.values import Hint

log = logging.getLogger("tasklib.worker")

LONGEST_SLEEP_SECONDS = 60.0
"""Who changes a schedule wakes all that listen. This is for those who were not heard."""
SPREAD_SECONDS = 0.03
"""So that not all workers come in the same moment."""
KEEP_EVERY_SECONDS = 3600.0


class Scheduler:
    def __init__(self, engine: Engine) -> None:
        self._schedules = engine.schedules
        self._engine = engine
        self._wake = asyncio.Event()
        self._kept_at = time.monotonic()

    async def run(self) -> None:
        stop_listening = (await self._engine.store()).listen(self._heard)
        try:
            while True:
                self._wake.clear()
                wait = await self.look()
                try:
                    async with asyncio.timeout(wait):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            stop_listening()

    async def look(self) -> float:
        """Fires what is due; returns when to look again."""
        longest = LONGEST_SLEEP_SECONDS * random.uniform(0.8, 1.0)
        try:
            if time.monotonic() - self._kept_at > KEEP_EVERY_SECONDS:
                await self._schedules.keep()
                self._kept_at = time.monotonic()
            wait = await self._schedules.fire()
        except StoreGone:
            raise  # waiting does not help, see the fetcher
        except TRANSIENT as error:
            log.warning("cannot fire schedules: %s", error)
            return LOOK_AGAIN_SECONDS * random.uniform(0.5, 1.5)
        return longest if wait is None else min(longest, wait + random.uniform(0, SPREAD_SECONDS))

    def _heard(self, hint: Hint) -> None:
        if hint is None:
            self._wake.set()
