"""Claiming: candidates from the index, their records read, and each marked under its revision, all under way at once.

Every claim is a compare-and-set on the revision that was read, so no task is claimed twice. Claims under a limit go in
one atomic batch with a compare-and-set on the control entry that holds the limit: what runs is counted from the leased
records themselves as of that entry's revision, so limits are exact over the fleet, and no worker's death leaks any.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from tasklib.core.limits import ALL, Limits
from tasklib.core.task import Claim, TaskState
from tasklib.core.unique import key_after_claim
from tasklib.stores.nats import keys, limits
from tasklib.stores.nats.cache import TaskCache
from tasklib.stores.nats.claim_cache import ClaimCache
from tasklib.stores.nats.clock import later, written
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.index import Waiting
from tasklib.stores.nats.kv import LARGEST_BATCH, KeyValueStore, Write
from tasklib.stores.nats.record import Record, decode, to_claim
from tasklib.stores.values import Claimed, ClaimRequest

_AT_ONCE = LARGEST_BATCH // 2


class Claims:
    def __init__(self, kv: KeyValueStore, cache: TaskCache, held: ClaimCache) -> None:
        self._kv = kv
        self._cache = cache
        self._held = held
        self._turn = asyncio.Lock()

    async def claim(self, request: ClaimRequest) -> Claimed:
        names = [name for name in dict.fromkeys(request.names) if request.per_name.get(name, 1) > 0]
        if request.slots + request.prefetch <= 0 or not names:
            return Claimed([], None)
        # One at a time: two claims of one store would only fight for the same tasks.
        async with self._turn:
            claiming = _Claiming(self._kv, self._cache, self._held, request, names)
            await self._kv.run(claiming.run)
            claims = claiming.claims
            return Claimed(claims, claiming.next_due_in() if len(claims) < request.slots else None)

    async def claims_of_worker(self, worker_id: str) -> list[Claim]:
        async def work() -> list[Claim]:
            await self._cache.sync()
            ids = self._cache.index.running_under(worker_id)
            records = await read_records(self._kv, ids)
            return [to_claim(record) for record in records.values() if _runs_under(record, worker_id)]

        return await self._kv.run(work)

    async def claim_by_id(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        sent = False

        async def work() -> Claim | None:
            nonlocal sent
            while True:
                await self._cache.sync()
                record = (await read_records(self._kv, [task_id])).get(task_id)
                if record is None:
                    return None
                if sent and _runs_under(record, worker_id) and record.head["version"] == version + 1:
                    return to_claim(record)  # only the reply was lost
                now = self._kv.clock.now()
                snapshot = _Snapshot(self._cache, now)
                name = record.head["name"]
                if record.head["version"] != version or not record.claimable:
                    return None
                if not record.is_due(self._kv.clock.earliest()):
                    return None
                if not snapshot.limits.allows(name):
                    return None
                claimed = _marked(record, worker_id, now, lease_seconds)
                writes = [*snapshot.limit_writes({name: 1}), write_of(claimed)]
                sent = True
                try:
                    claimed.revision = await self._kv.write(writes)
                except Conflict:
                    continue
                self._held.keep(claimed)
                return to_claim(claimed)

        return await self._kv.run(work)


class _Claiming:
    """One claim on its way: it may take several batches, and several tries for each."""

    def __init__(
        self, kv: KeyValueStore, cache: TaskCache, held: ClaimCache, request: ClaimRequest, names: list[str]
    ) -> None:
        self._kv = kv
        self._cache = cache
        self._held = held
        self.request = request
        self._names = names
        self._snapshot = _Snapshot(cache, kv.clock.now())
        self._ranks: dict[UUID, bytes] = {}
        self._in_doubt: dict[UUID, int] = {}
        """Versions of what was sent without an answer."""
        self.claims: list[Claim] = []

    async def run(self) -> None:
        await self._cache.sync()
        await self._resolve_doubt()
        conflicts = 0
        while (wanted := self.request.slots + self.request.prefetch - len(self.claims)) > 0:
            now = self._kv.clock.now()
            self._snapshot = _Snapshot(self._cache, now)
            taken = self._pick(wanted, conflicts)
            if not taken:
                break
            try:
                done = await self._mark(taken, now)
            finally:
                # Whatever was claimed, by us or by others, the feed takes out of the index.
                self._cache.index.put_back(taken)
            if done and len(taken) < min(wanted, _AT_ONCE):
                break  # there was no more
            conflicts += not done
            await self._cache.sync()
        self.claims.sort(key=lambda claim: self._ranks.get(claim.id, b""))

    def next_due_in(self) -> float | None:
        waits = []
        due = self._cache.index.next_due()
        if due is not None:
            waits.append(max(0.0, (due - self._kv.clock.earliest_micros()) / 1_000_000))
        token = self._snapshot.limits.next_token_in(self._cache.index.busy(self._names))
        if token is not None:
            waits.append(token)
        return min(waits, default=None)

    # -- candidates ---------------------------------------------------------------------------------------------------

    def _pick(self, wanted: int, conflicts: int) -> list[Waiting]:
        """The best that may be claimed now. After a conflict some are left out at random: those who fight for the same
        tasks go apart."""
        request, allowed, index = self.request, self._snapshot.limits, self._cache.index
        index.promote()
        mine = Counter(claim.name for claim in self.claims)
        most = wanted
        slots = request.slots - len(self.claims)
        whole = allowed.cap(ALL)
        if allowed.limited(ALL):
            most = min(max(0, slots), most)
        if whole is not None:
            most = min(most, whole)
        caps = {}
        for name in index.busy(self._names):
            caps_of_name = [most, allowed.cap(name)]
            if name in request.per_name:
                caps_of_name.append(request.per_name[name] - mine[name])
            cap = min(each for each in caps_of_name if each is not None)
            if cap > 0 and not allowed.paused(name):
                caps[name] = cap
        spread = 1 + min(conflicts, 8)
        number = min(most, _AT_ONCE)
        taken = index.take({name: cap * spread for name, cap in caps.items()}, number * spread)
        chosen = sorted(random.sample(range(len(taken)), number)) if number < len(taken) else range(len(taken))
        kept: list[Waiting] = []
        left = dict(caps)
        for place in chosen:
            found = taken[place]
            # What has to wait in the worker must be such that its death wears nothing out, and free of limits.
            may_wait = len(kept) < slots or not (found.no_prefetch or allowed.limited(found.name))
            if may_wait and left[found.name] > 0:
                left[found.name] -= 1
                kept.append(found)
        chosen_ids = {found.id for found in kept}
        index.put_back([found for found in taken if found.id not in chosen_ids])
        return kept

    # -- marking ------------------------------------------------------------------------------------------------------

    async def _mark(self, taken: list[Waiting], now: datetime) -> bool:
        """Writes the claims. False: others were quicker with most of them."""
        ids = [UUID(bytes=found.id) for found in taken]
        records = await read_records(self._kv, ids)
        claimed = []
        earliest = self._kv.clock.earliest()
        for found, task_id in zip(taken, ids, strict=True):
            record = records.get(task_id)
            self._ranks[task_id] = found.entry
            if record is None or not record.claimable or record.head["name"] != found.name:
                continue
            if record.is_due(earliest):
                claimed.append(_marked(record, self.request.worker_id, now, self.request.lease_seconds))
        if not claimed:
            return False
        doubt = {UUID(record.head["id"]): record.head["version"] for record in claimed}
        self._in_doubt.update(doubt)
        sequences = await self._write(claimed)
        self._in_doubt.clear()
        won = 0
        for record, sequence in zip(claimed, sequences, strict=True):
            if sequence:
                won += 1
                record.revision = sequence
                self._held.keep(record)
                self.claims.append(to_claim(record))
        return 2 * won >= len(taken)

    async def _write(self, claimed: list[Record]) -> list[int]:
        writes = list(map(write_of, claimed))
        limits = self._snapshot.limit_writes(Counter(record.head["name"] for record in claimed))
        if not limits:
            return await self._kv.write_each(writes)
        try:
            last = await self._kv.write([*limits, *writes])
        except Conflict:
            return [0] * len(writes)
        return list(range(last - len(writes) + 1, last + 1))

    async def _resolve_doubt(self) -> None:
        """Reads up what became of a batch whose answer was lost."""
        if not self._in_doubt:
            return
        records = await read_records(self._kv, list(self._in_doubt))
        for task_id, version in self._in_doubt.items():
            record = records.get(task_id)
            ours = record is not None and _runs_under(record, self.request.worker_id)
            if record is not None and ours and record.head["version"] == version:
                self._held.keep(record)
                self.claims.append(to_claim(record))
        self._in_doubt.clear()


async def read_records(kv: KeyValueStore, ids: list[UUID]) -> dict[UUID, Record]:
    entries = await kv.read_all(map(keys.task, ids))
    found = {}
    for task_id in ids:
        entry = entries.get(keys.task(task_id))
        if entry is not None and not entry.deleted:
            found[task_id] = decode(entry.data, entry.revision)
    return found


def write_of(record: Record) -> Write:
    return Write(f"{keys.TASK}{record.head['id']}", record.revision, record.encode(), record.note())


def _marked(record: Record, worker_id: str, now: datetime, lease_seconds: float) -> Record:
    moment = written(max(now, record.due_at))  # it may have been submitted by a clock that is a little ahead
    return record.changed(
        state=TaskState.RUNNING.value,
        worker_id=worker_id,
        locked_until=written(later(now, lease_seconds)),
        started_at=moment,
        updated_at=moment,
        next_retry_at=None,
        cancel_requested_at=None,
        unique_key=key_after_claim(record.head.get("unique_key"), record.head.get("unique_until")),
        version=record.head["version"] + 1,
    )


def _runs_under(record: Record, worker_id: str) -> bool:
    return bool(record.head["state"] == TaskState.RUNNING and record.head["worker_id"] == worker_id)


class _Snapshot:
    """The controls and what runs, both as of one revision."""

    def __init__(self, cache: TaskCache, now: datetime) -> None:
        self._controls = dict(cache.controls)
        controls = [control for _, control in self._controls.values()]
        counted = any(control.concurrency is not None for control in controls)
        self.limits = Limits(controls, now, cache.index.running_by_name() if counted else {})

    def limit_writes(self, taken: Mapping[str, int]) -> list[Write]:
        """The control entries that a claim under limits changes: it excludes all others at that revision."""
        writes = []
        for control in self.limits.spend(taken):
            revision, _ = self._controls[control.name]
            text = limits.encode(control)
            writes.append(Write(keys.control(control.name), revision, text.encode(), text))
        return writes
