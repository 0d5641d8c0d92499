"""Those who listen to one store, and those who wait for the end of a task: all in its event loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

from tasklib.core.task import Task
from tasklib.stores.values import Hint

FIRST_POLL = 1.0
LONGEST_POLL = 5.0
ATTENTIVE_WITHIN = 1.0


async def within(seconds: float, awaited: Awaitable[object]) -> bool:
    """False: it took longer, and was given up."""
    try:
        async with asyncio.timeout(seconds):
            await awaited
    except TimeoutError:
        return False
    return True


class Listeners:
    def __init__(self, changed: Callable[[], None], attentive: Callable[[], Awaitable[None]] | None = None) -> None:
        self._changed = changed
        """Told when somebody comes or goes."""
        self._attentive = attentive
        """Until what is said is heard, where that takes a while."""
        self._wakes: dict[object, Callable[[Hint], None]] = {}
        self._ends: dict[str, set[asyncio.Event]] = {}

    @property
    def listening(self) -> bool:
        return bool(self._wakes)

    @property
    def waiting(self) -> bool:
        return bool(self._ends)

    def listen(self, wake: Callable[[Hint], None]) -> Callable[[], None]:
        key = object()
        self._wakes[key] = wake
        self._changed()

        def stop() -> None:
            if self._wakes.pop(key, None) is not None:
                self._changed()

        return stop

    async def watch(self, task_id: UUID, look: Callable[[], Awaitable[Task | None]]) -> AsyncIterator[Task | None]:
        """The task as `look` finds it, now and whenever it may have ended; with slow polling as the fallback."""
        ended, key = asyncio.Event(), str(task_id)
        self._ends.setdefault(key, set()).add(ended)
        poll = FIRST_POLL
        try:
            self._changed()
            if self._attentive is not None:
                # Before the first look: an end in between is heard.
                await within(ATTENTIVE_WITHIN, self._attentive())
            while True:
                ended.clear()
                yield await look()
                if not await within(poll * random.uniform(0.8, 1.0), ended.wait()):
                    poll = min(poll * 1.5, LONGEST_POLL)
        finally:
            waiting = self._ends.get(key, set())
            waiting.discard(ended)
            if not waiting:
                self._ends.pop(key, None)
            self._changed()

    def tell(self, hint: Hint) -> None:
        loop = asyncio.get_running_loop()
        for wake in self._wakes.values():
            loop.call_soon(wake, hint)  # each by itself: one that raises does not silence the others

    def ended(self, *task_ids: str) -> None:
        """None named: any may have ended."""
        for task_id in task_ids or self._ends:
            for event in self._ends.get(task_id, ()):
                event.set()

    def close(self) -> None:
        """Those who wait look once more, and find the store closed."""
        self._wakes.clear()
        self.ended()
        self._ends.clear()
        self._changed()
