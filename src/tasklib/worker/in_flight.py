"""A claim on its way through this worker, from being claimed until it is settled."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from functools import partial
from typing import TypeAlias
from uuid import UUID

from tasklib.core.registry import TaskType
from tasklib.core.task import Claim
from tasklib.engine.current import RunningTask
from tasklib.engine.parents import Parents, Sources, flow_of
from tasklib.engine.waits import Waits
from tasklib.stores.values import Held

ParentReader: TypeAlias = Callable[[Claim], Parents]

LEASE_MARGIN_SECONDS = 2.0
"""A lease is given up at most so long before it really ends."""


class Stop(StrEnum):
    """Why a handler is told to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    LOST = "lost"
    """Another has it, or nobody: the row says so."""
    SILENT = "silent"
    """The lease could not be confirmed in time: another may have it."""
    SHUTDOWN = "shutdown"


class Execution:
    """One claim and what this worker knows of it. Threads share it; each field is written by one of them at a time."""

    __slots__ = (
        "cancel_requested",
        "claim",
        "ended",
        "in_flight",
        "lease_until",
        "lost",
        "sequence",
        "settled_once",
        "sources",
        "started",
        "stop",
        "stop_at",
        "taken",
        "task_type",
    )

    def __init__(
        self,
        claim: Claim,
        task_type: TaskType,
        sequence: int,
        lease_until: float,
        in_flight: InFlight,
        sources: Sources | None = None,
    ) -> None:
        self.claim = claim
        self.sources = sources
        """Of what other tasks have put into its payload."""
        self.in_flight = in_flight
        """With what all executions of this worker share."""
        self.task_type = task_type
        self.sequence = sequence
        self.taken = time.monotonic()
        self.lease_until = lease_until
        self.started: float | None = None
        self.ended: float | None = None
        self.stop: Stop | None = None
        self.stop_at: float | None = None
        self.cancel_requested = False
        self.lost = False
        self.settled_once = threading.Lock()
        """Whoever takes it first speaks for this execution: its runner, or the one who gave up on the runner."""

    @property
    def deadline(self) -> float | None:
        limit = self.claim.timeout_seconds
        return None if limit is None or self.started is None else self.started + limit

    @property
    def lease_is_over(self) -> bool:
        """By the database's clock, too: whoever looks takes it back."""
        return time.monotonic() >= self.lease_until + LEASE_MARGIN_SECONDS

    def tell(self) -> RunningTask:
        reader = self.in_flight.reader
        return RunningTask(
            id=self.claim.id,
            name=self.claim.name,
            attempt=self.claim.attempt,
            tags=json.loads(self.claim.tags),
            deadline=self.deadline,
            is_last=self.claim.is_last,
            flow_id=flow_of(self.claim) if self.claim.flow is not None and '"id"' in self.claim.flow else None,
            _parents=None if reader is None else partial(reader, self.claim),
            _arguments=lambda: self.task_type.decode_call(self.claim.kwargs),
            _queue=self.in_flight.queue,
            _version=self.claim.version,
            _waits=self.in_flight.waits,
            _lost=lambda: self.lost,
            _cancelled=lambda: self.cancel_requested,
        )


class InFlight:
    """All executions of a worker, by task id. Entries come and go by single dict operations, so threads need no
    lock."""

    def __init__(
        self,
        queue: str,
        lease_seconds: float,
        waits: Waits | None = None,
        reader: ParentReader | None = None,
    ) -> None:
        self.queue = queue
        """The database URL."""
        self.reader = reader
        self.waits = waits
        """What its handlers wait for."""
        self.lease_seconds = lease_seconds
        # Given up this long before the lease really ends, so that two workers never both believe they hold it.
        self.margin = min(LEASE_MARGIN_SECONDS, lease_seconds * 0.1)
        self._by_id: dict[UUID, Execution] = {}
        self.timed: set[Execution] = set()
        """Running executions that have a timeout."""
        self._given_up: dict[Held, None] = {}
        """Leases that were given up and that the store may still show as this worker's."""
        self._sequence = 0

    def add(self, claim: Claim, task_type: TaskType, asked_at: float, sources: Sources | None = None) -> Execution:
        """`asked_at`: when the claim was sent, on the monotonic clock; the lease cannot have begun earlier."""
        self._sequence += 1
        lease_until = asked_at + self.lease_seconds - self.margin
        execution = Execution(claim, task_type, self._sequence, lease_until, self, sources)
        self._by_id[claim.id] = execution
        return execution

    def remove(self, execution: Execution) -> None:
        if self._by_id.get(execution.claim.id) is execution:
            del self._by_id[execution.claim.id]
        if execution.lost:
            self._given_up[Held(execution.claim.id, execution.claim.version)] = None
        self.timed.discard(execution)
        if self.waits is not None and self.waits.awaited:
            self.waits.forget((execution.claim.id, execution.claim.version))

    def known(self) -> set[Held]:
        """Every claim that was begun here and may not be begun again: those in flight, and those given up."""
        return {*list(self._given_up), *(Held(f.claim.id, f.claim.version) for f in self.snapshot())}

    def forget_given_up(self, but: Collection[Held]) -> None:
        """All but these are somebody else's by now, and no version ever comes back."""
        for lease in list(self._given_up):
            if lease not in but:
                del self._given_up[lease]

    def get(self, task_id: UUID) -> Execution | None:
        return self._by_id.get(task_id)

    def held(self, older_than: float) -> list[Held]:
        """Leases that were taken before, and so are worth extending."""
        return [Held(f.claim.id, f.claim.version) for f in self.snapshot() if f.taken <= older_than and not f.lost]

    def snapshot(self) -> list[Execution]:
        return list(self._by_id.values())

    def count(self, name: str) -> int:
        return sum(1 for execution in self.snapshot() if execution.claim.name == name)

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, execution: object) -> bool:
        return isinstance(execution, Execution) and self._by_id.get(execution.claim.id) is execution

    def __iter__(self) -> Iterator[Execution]:
        return iter(self.snapshot())
