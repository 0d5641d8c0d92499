"""Deadlines of calls: one timer for all that are under way. A timer for each would be set and cancelled thousands of
times before one of them fires, and a single submit can feel that."""

from __future__ import annotations

import asyncio
import math
from types import TracebackType


class Deadlines:
    """Those of one event loop, by whose clock they go."""

    def __init__(self) -> None:
        self.under_way: set[Deadline] = set()
        self.rings_at = math.inf
        self.loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def arm(self, moment: float) -> None:
        self.close()
        self.rings_at = moment
        self._timer = self.loop.call_at(moment, self._ring)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        """The call it was set for has mostly ended long ago; then it is set for the first of those under way now."""
        for deadline in [each for each in self.under_way if each.moment <= self.rings_at]:
            deadline.pass_by()
        self.rings_at = math.inf
        if self.under_way:
            self.arm(min(deadline.moment for deadline in self.under_way))


class Deadline:
    """`with Deadline(deadlines, moment)` is `async with asyncio.timeout_at(moment)`, but for the timer: what waits in
    it at that moment is cancelled, and ends with a TimeoutError."""

    __slots__ = ("_cancelling", "_deadlines", "_passed", "_task", "moment")

    def __init__(self, deadlines: Deadlines, moment: float) -> None:
        self.moment = moment
        self._deadlines = deadlines
        self._passed = False

    def __enter__(self) -> None:
        deadlines = self._deadlines
        task = asyncio.current_task(deadlines.loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        deadlines.under_way.add(self)
        if self.moment < deadlines.rings_at:
            deadlines.arm(self.moment)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.under_way.discard(self)
        # Whoever else cancelled the task meanwhile is to see it cancelled.
        if self._passed and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def pass_by(self) -> None:
        self._deadlines.under_way.discard(self)
        self._passed = True
        self._task.cancel()
