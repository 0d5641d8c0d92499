"""The reporter: turns outcomes into guarded changes and settles them in batches.

What finishes while one batch is being written makes up the next, so batches are small and at once when the worker is
idle, and large when it is busy.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections import deque
from collections.abc import Callable

from tasklib.core import decide
from tasklib.core.decide import Change, Verdict
from tasklib.core.errors import TRANSIENT
from tasklib.core.outcome import Failed, Outcome
from tasklib.core.task import Claim
from tasklib.engine import task_log
from tasklib.engine.engine import Engine
from tasklib.engine.listeners import Settled, listening
from tasklib.worker.flight import Flight, Flights
from tasklib.worker.outage import Outage
from tasklib.worker.pace import Pace

log = logging.getLogger("tasklib.worker")

BATCH_LIMIT = 1000
OVERLAP = 2
"""Batches being written at once; the second starts only once it is worth a round trip of its own."""
OVERLAP_FROM = 250


class Reporter:
    def __init__(
        self, engine: Engine, flights: Flights, pace: Pace, outage: Outage, landed: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._policy = engine.config.retry_policy
        self._listening = listening(engine.config.middleware)
        self._flights = flights
        self._pace = pace
        self._outage = outage
        self._landed = landed
        self._outcomes: deque[tuple[Flight, Outcome]] = deque()
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._told = False
        self._lock = threading.Lock()
        self._leaving = False
        self._writing: set[asyncio.Task[None]] = set()

    def report(self, flight: Flight, outcome: Outcome | None) -> None:
        """What a flight came to; from any thread. None: nothing may be recorded."""
        if outcome is None:
            self._flights.land(flight)
        else:
            self._outcomes.append((flight, outcome))
        if not self._told:
            with self._lock:
                if self._told:
                    return
                self._told = True
            try:
                self._loop.call_soon_threadsafe(self._news.set)
            except RuntimeError:
                log.warning("task %s ended after its worker was gone; nothing is recorded", flight.claim.id)

    @property
    def pending(self) -> int:
        return len(self._outcomes) + len(self._writing)

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            self._told = False
            self._flush()
            self._landed()

    async def drain(self) -> None:
        """Until everything reported so far is settled; what was given up is tried once."""
        self._leaving = True
        while self._outcomes or self._writing:
            self._flush()
            if self._writing:
                await asyncio.wait(self._writing, return_when=asyncio.FIRST_COMPLETED)

    def _flush(self) -> None:
        while self._outcomes and len(self._writing) < OVERLAP:
            if self._writing and len(self._outcomes) < OVERLAP_FROM:
                return
            batch = [self._outcomes.popleft() for _ in range(min(len(self._outcomes), BATCH_LIMIT))]
            writing = asyncio.create_task(self._settle(batch))
            self._writing.add(writing)
            writing.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("outcomes could not be settled", exc_info=task.exception())
        self._flush()
        self._landed()

    async def _settle(self, batch: list[tuple[Flight, Outcome]]) -> None:
        ran = [f.ended - f.started for f, _ in batch if f.ended is not None and f.started is not None]
        if ran:
            self._pace.note(len(ran), sum(ran))
        changes = [self._decide(flight, outcome) for flight, outcome in batch]
        verdicts = await self._write(changes, batch)
        refused: list[tuple[Claim, Verdict]] = []
        settled: list[Settled] = []
        for (flight, outcome), change, verdict in zip(batch, changes, verdicts, strict=True):
            self._flights.land(flight)
            if verdict is Verdict.APPLIED or verdict is Verdict.ALREADY:
                task_log.ended(flight.claim, outcome, begun=flight.started is not None)
                if self._listening:
                    settled.append(Settled(flight.claim, change, outcome))
            else:
                refused.append((flight.claim, verdict))
        task_log.refused([claim for claim, _ in refused], [verdict for _, verdict in refused])
        await self._engine.announce(settled)

    async def _write(self, changes: list[Change], batch: list[tuple[Flight, Outcome]]) -> list[Verdict]:
        """Tries until it is written. The guards see to it that this can do no harm, however late it is. Once all leases
        of the batch are over, others have taken them back."""
        store = await self._engine.store()
        delay = 0.05
        while True:
            try:
                verdicts = await store.settle(changes)
                self._outage.over()
                return verdicts
            except TRANSIENT as error:
                if all(flight.lost and (self._leaving or flight.lease_is_over) for flight, _ in batch):
                    return [Verdict.LOST] * len(batch)
                log.warning("cannot settle %d outcomes yet: %s", len(batch), error)
                self._outage.noticed()
                await asyncio.sleep(delay * random.uniform(0.5, 1.5))
                delay = min(delay * 2, 5.0)

    def _decide(self, flight: Flight, outcome: Outcome) -> Change:
        spread = random.uniform(-1.0, 1.0) if type(outcome) is Failed else 0.0
        return decide.settle(flight.claim, outcome, self._policy, spread)
