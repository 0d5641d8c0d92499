"""The intake: decides when to claim and how much, and hands what it gets to the lanes."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from tasklib.core import decide
from tasklib.core.errors import TRANSIENT, StoreGone
from tasklib.core.limits import ALL
from tasklib.core.outcome import Outcome, Released
from tasklib.core.registry import Registry
from tasklib.core.task import Claim
from tasklib.engine.engine import Engine
from tasklib.stores.base import Store
from tasklib.stores.values import CancelRequested, Claimed, ClaimRequest, Held, Hint
from tasklib.worker.apart import Apart
from tasklib.worker.flight import Flight, Flights, Stop
from tasklib.worker.heartbeat import Heartbeat
from tasklib.worker.outage import Outage
from tasklib.worker.pace import PREFETCH_LIMIT, SLICE_SECONDS, Pace
from tasklib.worker.reporter import Reporter
from tasklib.worker.slots import Lane, Slots

log = logging.getLogger("tasklib.worker")

UNSETTLED_LIMIT = 4 * PREFETCH_LIMIT
"""With more outcomes than this waiting to be written, nothing is prefetched."""
HOSTAGE_SECONDS = 0.5
"""What has waited longer behind running tasks is given back."""
CANCELS_KEPT = 100
BUSY_SECONDS = 1.0
"""A worker that has found its fill for this long does without wake-ups."""


class Intake:
    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        worker_id: str,
        names: Callable[[], tuple[str, ...]],
        slots: Slots,
        flights: Flights,
        lane_of: Callable[[Flight], Lane],
        reporter: Reporter,
        heartbeat: Heartbeat,
        poll_interval: float,
        parallelism: Mapping[str, int],
        pace: Pace,
        outage: Outage,
        limit: int | None = None,
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._worker_id = worker_id
        self._names = names
        self._slots = slots
        self._flights = flights
        self._lane_of = lane_of
        self._reporter = reporter
        self._heartbeat = heartbeat
        self._poll_interval = poll_interval
        self._parallelism = parallelism
        self._pace = pace
        self._outage = outage
        self._limit = limit
        self._apart = Apart(flights)
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
        """Something landed, or may be claimable."""
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
                    if self.taken == self._limit and not len(self._flights):
                        self.idle.set()
                    await self._rest(min(self._until_hostages(), self._apart.closed_for() or self._poll_interval))
                    self._free_hostages()
                    continue
                # With every slot free, and nothing in flight that could still make something due.
                at_rest = self._slots.free == self._slots.size and not len(self._flights)
                claimed = await self._claim(store, wanted, prefetch)
                if claimed is None:
                    continue
                full = len(claimed.claims) >= wanted + prefetch
                await self._note_busy(store, full)
                if full:
                    quiet = 0
                    await asyncio.sleep(0)
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
        elif hint is None or hint in self._names():
            self._controls_changed = self._controls_changed or hint is None
            self._wake.set()

    def _room(self) -> tuple[int, int]:
        """How many to claim: those that can start now, and those that will soon."""
        if self._apart.closed_for() > 0:
            return 0, 0
        slots, waiting = self._slots, self._slots.waiting
        wanted, target = slots.free, self._pace.prefetch
        if self._limit is not None:
            wanted, target = min(wanted, self._limit - self.taken), 0
        unsettled = len(self._flights) - waiting - slots.running
        if unsettled > UNSETTLED_LIMIT or waiting > target // 2:
            target = 0
        return self._apart.room(wanted, max(0, target - waiting))

    async def _claim(self, store: Store, wanted: int, prefetch: int) -> Claimed | None:
        names = self._names()
        if not names:
            return Claimed([], None)
        asked_at = time.monotonic()
        request = ClaimRequest(
            worker_id=self._worker_id,
            names=names,
            slots=wanted,
            prefetch=prefetch,
            lease_seconds=self._flights.lease_seconds,
            # A copy: others may change it meanwhile.
            per_name={name: max(0, most - self._flights.count(name)) for name, most in dict(self._parallelism).items()},
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
            await self._adopt(store)
            return None
        self._outage.over()
        await self._board(store, claimed.claims, asked_at)
        for hint in self._cancels:
            self._heartbeat.look_at(hint.ids)
        return claimed

    async def _adopt(self, store: Store) -> None:
        """A claim's reply may have been lost: whatever runs under this worker's id and was never begun is its to run.
        What was given up is not: its attempt had its start."""
        asked_at = time.monotonic()
        known = self._flights.known()  # before asking: the answer may be older than an outcome that arrives meanwhile
        try:
            held = await store.held(self._worker_id)
        except TRANSIENT:
            return
        self._flights.forget_given_up({Held(claim.id, claim.version) for claim in held})
        known |= self._flights.known()
        orphans = [claim for claim in held if Held(claim.id, claim.version) not in known]
        if orphans:
            log.warning("took up %d claims whose reply was lost", len(orphans))
            # Their leases began some time before: no longer than one call may take.
            await self._board(store, orphans, asked_at - self._engine.config.call_timeout_seconds)

    async def _board(self, store: Store, claims: Sequence[Claim], asked_at: float) -> None:
        strays = []
        flights = []
        for claim in claims:
            task_type = self._registry.get(claim.name)
            if task_type is None:
                strays.append(claim)
                continue
            flights.append(self._flights.take_off(claim, task_type, asked_at))
        number, outcome = self._apart.admit(flights)
        for flight in flights[number:]:
            self._give_back(flight, outcome)
        for flight in flights[:number]:
            self._lane_of(flight).waiting.append(flight)
        self.taken += number
        self._fill(claims)
        if strays:
            await self._return(store, strays)

    def _fill(self, claims: Sequence[Claim]) -> None:
        """Starts what waits, with as many hands as it is expected to need. A suspect does not wait behind others."""
        suspect = any(claim.alone for claim in claims)
        self._slots.fill(None if suspect else self._pace.hands(self._slots.waiting))
        if self._looking is None:
            self._look_later()

    def _look_later(self) -> None:
        head = self._slots.head
        loop = asyncio.get_running_loop()
        self._looking = None if head is None else loop.call_later(SLICE_SECONDS, self._look, head)

    def _look(self, head: int) -> None:
        """What waits did not get on as expected: all hands."""
        if self._slots.head is not None and self._slots.head - head < self._pace.slice_size / 4:
            self._slots.fill()
        self._look_later()

    async def _return(self, store: Store, strays: Sequence[Claim]) -> None:
        """Their type was unregistered after the claim was sent."""
        policy = self._engine.config.retry_policy
        try:
            await store.settle([decide.settle(claim, Released(), policy) for claim in strays])
        except TRANSIENT as error:
            log.warning("cannot give back %d tasks before their lease runs out: %s", len(strays), error)

    async def _note_busy(self, store: Store, full: bool) -> None:
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

    async def _tell(self, store: Store) -> None:
        try:
            await store.beat(self._heartbeat.about())
            await self._engine.publish(self._registry.of(self._names()))
        except TRANSIENT as error:
            self._unannounced = True  # with the next claim
            log.warning("cannot register: %s", error)

    def _pause(self, quiet: int, next_due_in: float | None, wakes: bool) -> float:
        """Polling is the truth, wake-ups are a hint: poll less and less while nothing comes, but never stop."""
        longest = 5.0 if wakes else 1.0
        pause = min(self._poll_interval * max(1, quiet), self._poll_interval * longest) * random.uniform(0.8, 1.0)
        return pause if next_due_in is None else min(pause, max(0.001, next_due_in))

    async def _rest(self, seconds: float) -> None:
        if self._stopping:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _until_hostages(self) -> float:
        return HOSTAGE_SECONDS / 2 if self._slots.waiting else self._poll_interval

    def _free_hostages(self) -> None:
        """Claims that wait behind long tasks go back, for others to run; their attempt is given back."""
        oldest = min((flight.taken for flight in self._flights if flight.started is None), default=None)
        if oldest is not None and self._slots.waiting and time.monotonic() - oldest > HOSTAGE_SECONDS:
            self.give_back()

    async def _free_paused(self, store: Store) -> None:
        """Claims that wait for their start go back when their type is paused."""
        if not self._slots.waiting:
            return
        try:
            controls = await store.controls()
        except TRANSIENT as error:
            log.warning("cannot look at what is paused: %s", error)
            return
        paused = {name for name, control in controls.items() if control.paused}
        for flight in self._flights:
            if flight.started is None and not paused.isdisjoint((ALL, flight.claim.name)):
                try:
                    self._lane_of(flight).waiting.remove(flight)
                except ValueError:  # it starts this moment
                    continue
                self._give_back(flight, Released())

    def give_back(self) -> None:
        for flight in self._slots.withdraw():
            self._give_back(flight, Released())

    def _give_back(self, flight: Flight, outcome: Outcome) -> None:
        if flight.verdict.acquire(blocking=False):
            self._reporter.report(flight, None if flight.stop is Stop.LOST else outcome)
