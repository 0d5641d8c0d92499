"""The fetcher: decides when to claim and how much, and hands what it gets to the executors."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from tasklib.core import decide
from tasklib.core.errors import TRANSIENT, StoreGone
from tasklib.core.limits import ALL
from tasklib.core.outcome import Outcome, Released
from tasklib.core.registry import Registry
from tasklib.core.task import Claim
from tasklib.engine.backends import Backend
from tasklib.engine.engine import Engine
from tasklib.engine.parents import Sources, fill_claims
from tasklib.stores.protocol import ControlStore, FleetStore, WorkStore
from tasklib.stores.values import CancelRequested, Claimed, ClaimRequest, DrainRequested, Held, Hint
from tasklib.worker.completer import Completer
from tasklib.worker.executors.slots import Executor, Slots
from tasklib.worker.heartbeat import Heartbeat
from tasklib.worker.in_flight import Execution, InFlight, Stop
from tasklib.worker.isolation import Isolation
from tasklib.worker.outage import Outage
from tasklib.worker.prefetch import PREFETCH_LIMIT, SLICE_SECONDS, RunTimes

log = logging.getLogger("tasklib.worker")

CLAIM_LIMIT = 1000
"""The most that one claim prefetches. Of short tasks that wait there may be more, so that the next claim is on its way
while they run."""
UNSETTLED_LIMIT = 2 * PREFETCH_LIMIT
"""With more outcomes than this waiting to be written, nothing is claimed."""
PREFETCHED_SECONDS = 0.5
"""What has waited longer behind running tasks is given back."""
CANCELS_KEPT = 100
BUSY_SECONDS = 1.0
"""A worker that has found its fill for this long does without wake-ups."""


class Fetcher:
    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        worker_id: str,
        names: Callable[[], tuple[str, ...]],
        slots: Slots,
        in_flight: InFlight,
        executor_for: Callable[[Execution], Executor],
        completer: Completer,
        heartbeat: Heartbeat,
        poll_interval: float,
        parallelism: Mapping[str, int],
        run_times: RunTimes,
        outage: Outage,
        limit: int | None = None,
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._worker_id = worker_id
        self._names = names
        self._slots = slots
        self._in_flight = in_flight
        self._executor_for = executor_for
        self._completer = completer
        self._heartbeat = heartbeat
        self._poll_interval = poll_interval
        self._parallelism = parallelism
        self._run_times = run_times
        self._outage = outage
        self._limit = limit
        self._isolation = Isolation(in_flight)
        self.taken = 0
        """How many were claimed so far; never more than the limit."""
        self._unannounced = False
        self._controls_changed = False
        self._cancels: deque[CancelRequested] = deque(maxlen=CANCELS_KEPT)
        """Heard since the latest claim was sent: what it brings may be meant."""
        self._looking: asyncio.TimerHandle | None = None
        self._wake = asyncio.Event()
        self._busy_since: float | None = None
        self._stopping = False
        self.idle = asyncio.Event()
        """Set while nothing is due and nothing is in flight."""

    def nudge(self) -> None:
        """Something was settled, or may be claimable."""
        self._wake.set()

    def announce(self) -> None:
        """What this worker serves has changed: the others are told, and a claim follows."""
        self._unannounced = True
        self._wake.set()

    def stop(self) -> None:
        """Ends the run after the claim that is under way, if there is one: its answer must not get lost."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        store = await self._engine.store()
        stop_listening = store.listen(self._heard)
        quiet = 0
        try:
            while not self._stopping:
                self._wake.clear()
                if self._unannounced:
                    self._unannounced = False
                    await self._tell(store)
                if self._controls_changed:
                    self._controls_changed = False
                    await self._free_paused(store)
                wanted, prefetch = self._room()
                if wanted + prefetch == 0:
                    if self.taken == self._limit and not len(self._in_flight):
                        self.idle.set()
                    await self._rest(min(self._until_release(), self._isolation.closed_for() or self._poll_interval))
                    self._release_prefetched()
                    continue
                # With every slot free, and nothing in flight that could still make something due.
                at_rest = self._slots.free == self._slots.size and not len(self._in_flight)
                claimed = await self._claim(store, wanted, prefetch)
                if claimed is None:
                    continue
                full = len(claimed.claims) >= wanted + prefetch
                await self._note_busy(store, full)
                if full:
                    quiet = 0
                    continue
                quiet = 0 if claimed.claims else quiet + 1
                if at_rest and not claimed.claims:
                    self.idle.set()
                await self._rest(self._pause(quiet, claimed.next_due_in, store.traits.wakes))
                self.idle.clear()
        finally:
            stop_listening()

    def _heard(self, hint: Hint) -> None:
        if isinstance(hint, CancelRequested):
            self._cancels.append(hint)
            self._heartbeat.look_at(hint.ids)
        elif isinstance(hint, DrainRequested):
            if hint.worker_id == self._worker_id:
                self._heartbeat.beat_now()
        elif hint is None or hint in self._names():
            self._controls_changed = self._controls_changed or hint is None
            self._wake.set()

    def _room(self) -> tuple[int, int]:
        """How many to claim: those that can start now, and those that will soon."""
        if self._isolation.closed_for() > 0:
            return 0, 0
        slots, waiting = self._slots, self._slots.waiting
        wanted, target = slots.free, self._run_times.prefetch
        if self._limit is not None:
            wanted, target = min(wanted, self._limit - self.taken), 0
        if len(self._in_flight) - waiting - slots.running > UNSETTLED_LIMIT:
            return 0, 0
        prefetch = min(target - waiting, CLAIM_LIMIT)
        return self._isolation.room(wanted, prefetch if prefetch >= min(target, CLAIM_LIMIT) / 2 else 0)

    async def _claim(self, store: Backend, wanted: int, prefetch: int) -> Claimed | None:
        names = self._names()
        if not names:
            return Claimed([], None)
        asked_at = time.monotonic()
        request = ClaimRequest(
            worker_id=self._worker_id,
            names=names,
            slots=wanted,
            prefetch=prefetch,
            lease_seconds=self._in_flight.lease_seconds,
            # A copy: others may change it meanwhile.
            per_name={
                name: max(0, most - self._in_flight.count(name)) for name, most in dict(self._parallelism).items()
            },
        )
        self._cancels.clear()
        try:
            claimed = await store.claim(request)
        except StoreGone:
            raise  # waiting does not help: a worker that starts anew opens what is there then
        except TRANSIENT as error:
            log.warning("cannot claim: %s", error)
            self._outage.noticed()
            await asyncio.sleep(random.uniform(0.5, 1.5) * self._poll_interval)
            await self._reclaim_orphans(store)
            return None
        self._outage.over()
        await self._dispatch(store, claimed.claims, asked_at)
        for hint in self._cancels:
            self._heartbeat.look_at(hint.ids)
        return claimed

    async def _reclaim_orphans(self, store: Backend) -> None:
        """A claim's reply may have been lost: whatever runs under this worker's id and was never begun is its to run.
        What was given up is not: its attempt had its start."""
        asked_at = time.monotonic()
        known = self._in_flight.known()  # before asking: the answer may be older than an outcome that arrives meanwhile
        try:
            held = await store.claims_of_worker(self._worker_id)
        except TRANSIENT:
            return
        self._in_flight.forget_given_up({Held(claim.id, claim.version) for claim in held})
        known |= self._in_flight.known()
        orphans = [claim for claim in held if Held(claim.id, claim.version) not in known]
        if orphans:
            log.warning("took up %d claims whose reply was lost", len(orphans))
            # Their leases began some time before: no longer than one call may take.
            await self._dispatch(store, orphans, asked_at - self._engine.config.call_timeout_seconds)

    async def _dispatch(self, store: Backend, claims: Sequence[Claim], asked_at: float) -> None:
        unregistered = []
        executions = []
        sources: dict[UUID, Sources] = {}
        if any(claim.flow is not None and claim.takes_results for claim in claims):
            claims, sources = await self._filled(store, claims)
        for claim in claims:
            task_type = self._registry.get(claim.name)
            if task_type is None:
                unregistered.append(claim)
                continue
            executions.append(self._in_flight.add(claim, task_type, asked_at, sources.get(claim.id)))
        number, outcome = self._isolation.admit(executions)
        for execution in executions[number:]:
            self._give_back(execution, outcome)
        for execution in executions[:number]:
            self._executor_for(execution).waiting.append(execution)
        self.taken += number
        # A claim that follows goes out first: once threads run short tasks, this one gets its turn when all have run.
        asyncio.get_running_loop().call_soon(self._fill, claims)
        if unregistered:
            await self._return(store, unregistered)

    async def _filled(self, store: Backend, claims: Sequence[Claim]) -> tuple[list[Claim], dict[UUID, Sources]]:
        """With results of other tasks among their arguments. Where those cannot be read now, the claims go back."""
        try:
            found = await fill_claims(store, claims)
        except TRANSIENT as error:
            log.warning("cannot read what tasks have waited for: %s", error)
            await self._return(store, [claim for claim in claims if claim.flow is not None])
            return [claim for claim in claims if claim.flow is None], {}
        return [claim for claim, _ in found], {claim.id: told for claim, told in found if told is not None}

    def _fill(self, claims: Sequence[Claim]) -> None:
        """Starts what waits, with as many threads as it is expected to need. What crashed before does not wait behind
        others."""
        urgent = any(claim.no_prefetch for claim in claims)
        self._slots.fill(None if urgent else self._run_times.threads_to_wake(self._slots.waiting))
        if self._looking is None:
            self._look_later()

    def _look_later(self) -> None:
        head = self._slots.head
        loop = asyncio.get_running_loop()
        self._looking = None if head is None else loop.call_later(SLICE_SECONDS, self._look, head.sequence)

    def _look(self, before: int) -> None:
        """What waits did not get on as expected: all threads."""
        head = self._slots.head
        if head is not None and head.sequence - before < self._run_times.slice_size / 4:
            self._slots.fill()
        self._look_later()

    async def _return(self, store: WorkStore, unregistered: Sequence[Claim]) -> None:
        """What cannot be run here: their type was unregistered after the claim was sent, for instance."""
        policy = self._engine.config.default_retry
        try:
            await store.settle([decide.settle(claim, Released(), policy) for claim in unregistered])
        except TRANSIENT as error:
            log.warning("cannot give back %d tasks before their lease runs out: %s", len(unregistered), error)

    async def _note_busy(self, store: FleetStore, full: bool) -> None:
        """Wake-ups cost those who submit: a worker that always finds work asks for none."""
        now = time.monotonic()
        if not full:
            self._busy_since = None
            if not self._heartbeat.listening:
                self._heartbeat.listening = True
                await self._tell(store)
                self._wake.set()  # something may have come before anybody knew that we listen again
        elif self._busy_since is None:
            self._busy_since = now
        elif self._heartbeat.listening and now - self._busy_since > BUSY_SECONDS:
            self._heartbeat.listening = False
            await self._tell(store)

    async def _tell(self, store: FleetStore) -> None:
        try:
            await store.heartbeat(self._heartbeat.about())
            await self._engine.publish(self._registry.of(self._names()))
        except TRANSIENT as error:
            self._unannounced = True  # with the next claim
            log.warning("cannot register: %s", error)

    def _pause(self, quiet: int, next_due_in: float | None, wakes: bool) -> float:
        """Polling is the truth, wake-ups are a hint: poll less and less while nothing comes, but never stop."""
        longest = 5.0 if wakes else 1.0
        pause = min(self._poll_interval * max(1, quiet), self._poll_interval * longest) * random.uniform(0.8, 1.2)
        return pause if next_due_in is None else min(pause, max(0.001, next_due_in))

    async def _rest(self, seconds: float) -> None:
        if self._stopping:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _until_release(self) -> float:
        return PREFETCHED_SECONDS / 2 if self._slots.waiting else self._poll_interval

    def _release_prefetched(self) -> None:
        """Claims that wait behind long tasks go back, for others to run; their attempt is given back."""
        oldest = self._slots.head
        if oldest is not None and time.monotonic() - oldest.taken > PREFETCHED_SECONDS:
            self.give_back()

    async def _free_paused(self, store: ControlStore) -> None:
        """Claims that wait for their start go back when their type is paused."""
        if not self._slots.waiting:
            return
        try:
            controls = await store.controls()
        except TRANSIENT as error:
            log.warning("cannot look at what is paused: %s", error)
            return
        paused = {name for name, control in controls.items() if control.paused}
        for execution in self._in_flight:
            if execution.started is None and not paused.isdisjoint((ALL, execution.claim.name)):
                try:
                    self._executor_for(execution).waiting.remove(execution)
                except ValueError:  # it starts this moment
                    continue
                self._give_back(execution, Released())

    def give_back(self) -> None:
        for execution in self._slots.withdraw():
            self._give_back(execution, Released())

    def _give_back(self, execution: Execution, outcome: Outcome) -> None:
        if execution.settled_once.acquire(blocking=False):
            self._completer.report(execution, None if execution.stop is Stop.LOST else outcome)
