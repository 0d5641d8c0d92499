"""The completer: turns outcomes into guarded changes and settles them in batches.

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
from tasklib.core.decide import Change, WriteResult
from tasklib.core.errors import TRANSIENT
from tasklib.core.outcome import Failed, Outcome
from tasklib.core.task import Claim
from tasklib.engine import task_log
from tasklib.engine.engine import Engine
from tasklib.engine.listeners import Settled, listening
from tasklib.stores.protocol import WorkStore
from tasklib.worker.in_flight import Execution, InFlight
from tasklib.worker.outage import Outage
from tasklib.worker.prefetch import RunTimes

log = logging.getLogger("tasklib.worker")

BATCH_LIMIT = 1000
OVERLAP = 2
"""Batches being written at once; the second starts only once it is worth a round trip of its own."""
OVERLAP_FROM = 250


class Completer:
    def __init__(
        self, engine: Engine, in_flight: InFlight, run_times: RunTimes, outage: Outage, settled: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._policy = engine.config.default_retry
        self._listening = listening(engine.config.middleware)
        self._in_flight = in_flight
        self._run_times = run_times
        self._outage = outage
        self._settled = settled
        self._outcomes: deque[tuple[Execution, Outcome]] = deque()
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._told = False
        self._lock = threading.Lock()
        self._leaving = False
        self._writing: set[asyncio.Task[None]] = set()

    def report(self, execution: Execution, outcome: Outcome | None) -> None:
        """What an execution came to; from any thread. None: nothing may be recorded."""
        if outcome is None:
            self._in_flight.remove(execution)
        else:
            self._outcomes.append((execution, outcome))
        if not self._told:
            with self._lock:
                if self._told:
                    return
                self._told = True
            try:
                self._loop.call_soon_threadsafe(self._news.set)
            except RuntimeError:
                log.warning("task %s ended after its worker was gone; nothing is recorded", execution.claim.id)

    @property
    def pending(self) -> int:
        return len(self._outcomes) + len(self._writing)

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            self._told = False
            self._flush()
            self._settled()

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
        self._settled()

    async def _settle(self, batch: list[tuple[Execution, Outcome]]) -> None:
        ran = [f.ended - f.started for f, _ in batch if f.ended is not None and f.started is not None]
        if ran:
            self._run_times.add(len(ran), sum(ran))
        changes = [self._decide(execution, outcome) for execution, outcome in batch]
        write_results = await self._write(changes, batch)
        refused: list[tuple[Claim, WriteResult]] = []
        settled: list[Settled] = []
        for (execution, outcome), change, write_result in zip(batch, changes, write_results, strict=True):
            self._in_flight.remove(execution)
            if write_result is WriteResult.APPLIED or write_result is WriteResult.DUPLICATE:
                begun = execution.started is not None
                task_log.ended(execution.claim, outcome, begun=begun, due_in=change.due_in)
                if self._listening:
                    settled.append(Settled(execution.claim, change, outcome))
            else:
                refused.append((execution.claim, write_result))
        task_log.refused([claim for claim, _ in refused], [write_result for _, write_result in refused])
        await self._engine.announce(settled)

    async def _write(self, changes: list[Change], batch: list[tuple[Execution, Outcome]]) -> list[WriteResult]:
        """Tries until it is written. The guards see to it that this can do no harm, however late it is. Once all leases
        of the batch are over, others have taken them back."""
        store: WorkStore = await self._engine.store()
        delay = 0.05
        while True:
            try:
                write_results = await store.settle(changes)
                self._outage.over()
                return write_results
            except TRANSIENT as error:
                if all(execution.lost and (self._leaving or execution.lease_is_over) for execution, _ in batch):
                    return [WriteResult.STALE] * len(batch)
                log.warning("cannot settle %d outcomes yet: %s", len(batch), error)
                self._outage.noticed()
                await asyncio.sleep(delay * random.uniform(0.5, 1.5))
                delay = min(delay * 2, 5.0)

    def _decide(self, execution: Execution, outcome: Outcome) -> Change:
        spread = random.uniform(-1.0, 1.0) if type(outcome) is Failed else 0.0
        return decide.settle(execution.claim, outcome, self._policy, spread)
