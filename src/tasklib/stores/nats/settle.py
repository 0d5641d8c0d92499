"""Settling: guarded changes, all under way at once, and a result for each.

The guard of a change is checked on the record that was read; the record's revision guards the write. Where somebody
came in between, nothing is written: the record is read again and judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from tasklib.core.decide import UNTIMED, Change, WriteResult, explain_miss, split_by_task
from tasklib.core.task import TaskState
from tasklib.core.unique import key_after_end
from tasklib.stores.nats.access import audit_writes
from tasklib.stores.nats.claim import read_records, write_of
from tasklib.stores.nats.claim_cache import ClaimCache
from tasklib.stores.nats.clock import instant, later, written
from tasklib.stores.nats.counts import Counts
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.flows import recount, release
from tasklib.stores.nats.kv import LARGEST_BATCH, KeyValueStore, Write
from tasklib.stores.nats.record import Record, line_or_null, to_task
from tasklib.stores.values import Audit, Extension, Held

_AT_ONCE = LARGEST_BATCH // 2
_FEEDING_AT_ONCE = LARGEST_BATCH // 4
_AUDITED_AT_ONCE = LARGEST_BATCH // 4
"""In one atomic batch, an entry for each and some for all."""


class Settles:
    def __init__(self, kv: KeyValueStore, counts: Counts, held: ClaimCache) -> None:
        self._kv = kv
        self._counts = counts
        self._held = held

    async def settle(self, changes: Sequence[Change], audit: Audit[UUID] | None = None) -> list[WriteResult]:
        write_results = [WriteResult.APPLIED] * len(changes)
        at_once = _AT_ONCE if audit is None else _AUDITED_AT_ONCE
        for places in split_by_task(changes):
            for start in range(0, len(places), at_once):
                part = {place: changes[place] for place in places[start : start + at_once]}
                settling = _Settling(self._kv, self._counts, self._held, part, audit)
                for place, write_result in (await self._kv.run(settling.run)).items():
                    write_results[place] = write_result
        return write_results

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        wanted = {lease.id: lease.version for lease in leases}

        def prolonged(record: Record, now: datetime) -> Record | None:
            head = record.head
            holds = head["worker_id"] == worker_id and head["version"] == wanted[UUID(head["id"])]
            if not holds:
                return None
            return record.changed(locked_until=written(later(now, lease_seconds)))

        if leases:
            await self._kv.run(self._kv.info)  # the clock: a lease is counted from the server's now
        changed = await self._rewrite(list(wanted), prolonged)
        return [
            Extension(
                lease.id,
                lease.id in changed and wanted[lease.id] == lease.version,
                lease.id in changed and changed[lease.id].head["cancel_requested_at"] is not None,
            )
            for lease in leases
        ]

    async def request_cancel(self, ids: Sequence[UUID], audit: Audit[UUID] | None = None) -> list[UUID]:
        def asked(record: Record, now: datetime) -> Record | None:
            if record.head["state"] != TaskState.RUNNING:
                return None
            moment = written(now)
            return record.changed(cancel_requested_at=record.head["cancel_requested_at"] or moment, updated_at=moment)

        changed = await self._rewrite(list(dict.fromkeys(ids)), asked, audit)
        return [task_id for task_id in ids if task_id in changed]

    async def release_stranded(self, ids: Sequence[UUID]) -> int:
        """Of these, which wait for others: how many it helped."""

        async def work() -> int:
            while True:
                now = self._kv.clock.now()
                released = await recount(self._kv, ids, now)
                writes = [write_of(record) for record in released.records.values()]
                if not all(await self._kv.write_each(writes)):
                    continue
                for change, name in released.changes:
                    self._counts.note(change, name, None)
                return len(writes)

        return await self._kv.run(work) if ids else 0

    async def _rewrite(
        self,
        ids: list[UUID],
        change: Callable[[Record, datetime], Record | None],
        audit: Audit[UUID] | None = None,
    ) -> dict[UUID, Record]:
        """Changes that leave the version alone. Those that were changed."""
        done: dict[UUID, Record] = {}
        at_once = _AT_ONCE if audit is None else _AUDITED_AT_ONCE
        for start in range(0, len(ids), at_once):
            part = ids[start : start + at_once]

            async def work(part: list[UUID] = part) -> dict[UUID, Record]:
                cached = True
                while True:
                    known = {task_id: self._held.get(task_id) for task_id in part} if cached else {}
                    records = {task_id: record for task_id, record in known.items() if record is not None}
                    records.update(await read_records(self._kv, [each for each in part if each not in records]))
                    now = self._kv.clock.now()
                    changed = {}
                    for task_id, record in records.items():
                        new = change(record, now)
                        if new is not None:
                            changed[task_id] = new
                    if cached and any(task_id not in changed for task_id in known):
                        cached = False  # what is remembered may be old
                        continue
                    writes = {task_id: write_of(record) for task_id, record in changed.items()}
                    sequences = await _write(self._kv, writes, audit)
                    if not all(sequences):  # those that went through go through again: nothing is lost by it
                        cached = False
                        continue
                    for task_id, sequence in zip(changed, sequences, strict=True):
                        changed[task_id].revision = sequence
                        self._held.drop(task_id)
                    return changed

            done.update(await self._kv.run(work))
        return done


class _Settling:
    """A few hundred changes of different tasks on their way. Run again after a lost answer it finds its own writes, and
    says *already*."""

    def __init__(
        self,
        kv: KeyValueStore,
        counts: Counts,
        held: ClaimCache,
        changes: dict[int, Change],
        audit: Audit[UUID] | None,
    ) -> None:
        self._kv = kv
        self._counts = counts
        self._held = held
        self._left = changes
        self._audit = audit
        self._cached = True
        self._write_results: dict[int, WriteResult] = {}

    async def run(self) -> dict[int, WriteResult]:
        while self._left:
            records = await self._records()
            self._cached = False
            await self._try(records)
        return self._write_results

    async def _try(self, records: dict[UUID, Record]) -> None:
        now = self._kv.clock.now()
        places: list[int] = []
        writes: dict[UUID, Write] = {}
        changes: list[Change] = []
        feeding: dict[int, tuple[Change, Record]] = {}
        for place, change in list(self._left.items()):
            record = records.get(change.id)
            if record is None or not _holds(change, record):
                self._end(place, explain_miss(change, None if record is None else to_task(record)))
                continue
            if change.if_asked is not None and record.head["cancel_requested_at"] is not None:
                change = change.if_asked
            settled = _settled(record, change, now)
            write = write_of(settled)
            self._kv.check_size(len(write.data), "result")
            revived = change.leaves is not None
            if ((change.terminal or revived) and settled.head.get("feeds")) or (
                revived and settled.head.get("waits_for")
            ):
                feeding[place] = (change, settled)
                continue
            places.append(place)
            writes[change.id] = write
            changes.append(change)
        # What stands by itself comes first: an end may cut off others of them, and these are to end as they were told.
        sequences = await _write(self._kv, writes, self._audit)
        for place, change, sequence in zip(places, changes, sequences, strict=True):
            if sequence:
                self._applied(place, change, records[change.id])
        await self._release(feeding, records, now)

    async def _release(
        self, feeding: dict[int, tuple[Change, Record]], records: dict[UUID, Record], now: datetime
    ) -> None:
        """Those that others wait for, with what becomes of the others, all or none. What does not fit into one batch is
        written in several, those that ended first: `release_stranded` goes on where a process dies in between."""
        while feeding:
            part = dict(list(feeding.items())[:_FEEDING_AT_ONCE])
            feeding = dict(list(feeding.items())[_FEEDING_AT_ONCE:])
            ended = {change.id: settled for change, settled in part.values()}
            released = await release(self._kv, ended, now)
            writes = [write_of(record) for record in (ended | released.records).values()]
            if self._audit is not None:
                writes = [*audit_writes(self._kv, self._audit(list(ended))), *writes]
            try:
                for start in range(0, len(writes), LARGEST_BATCH):
                    await self._kv.write(writes[start : start + LARGEST_BATCH])
            except Conflict:
                continue  # it is left, and judged again
            for place, (change, _) in part.items():
                self._applied(place, change, records[change.id])
            for change, name in released.changes:
                self._counts.note(change, name, None)

    def _applied(self, place: int, change: Change, record: Record) -> None:
        self._counts.note(change, record.head["name"], self._left[place].waited_ms)
        self._end(place, WriteResult.APPLIED)

    def _end(self, place: int, write_result: WriteResult) -> None:
        self._write_results[place] = write_result
        self._held.drop(self._left.pop(place).id)

    async def _records(self) -> dict[UUID, Record]:
        found: dict[UUID, Record] = {}
        wanted = []
        for change in self._left.values():
            record = self._held.get(change.id) if self._cached else None
            if record is not None and _holds(change, record):
                found[change.id] = record
            else:
                wanted.append(change.id)
        if wanted:
            found.update(await read_records(self._kv, wanted))
        return found


async def _write(kv: KeyValueStore, writes: dict[UUID, Write], audit: Audit[UUID] | None) -> list[int]:
    """Each under its own guard. With an audit, all or none, in one batch with its entries. Their sequences, 0 for those
    that are to be judged again."""
    if audit is None or not writes:
        return await kv.write_each(list(writes.values()))
    entries = audit_writes(kv, audit(list(writes)))
    try:
        last = await kv.write([*entries, *writes.values()])
    except Conflict:
        return [0] * len(writes)
    return list(range(last - len(writes) + 1, last + 1))


def _holds(change: Change, record: Record) -> bool:
    head = record.head
    return bool(
        (change.version is None or head["version"] == change.version)
        and head["worker_id"] == change.worker_id
        and (change.locked_until is None or _same(head["locked_until"], change.locked_until))
    )


def _same(text: str | None, moment: datetime) -> bool:
    return text is not None and instant(text) == moment


def _error(change: Change, before: str | None) -> str | None:
    if change.state == TaskState.COMPLETED:
        return None
    return before if change.error is None else change.error


def _settled(record: Record, change: Change, now: datetime) -> Record:
    moment = written(now)
    due = None if change.due_in is None else written(later(now, change.due_in))
    waits = change.state == TaskState.FAILED and not change.terminal
    pending = change.state == TaskState.PENDING
    head = record.head
    settled = record.changed(
        state=str(change.state),
        retry_count=change.retry_count,
        version=head["version"] + 1,
        updated_at=moment,
        worker_id=None,
        last_worker_id=head["worker_id"] or head.get("last_worker_id"),
        run_ms=None if change.bucket == UNTIMED else change.run_ms,
        locked_until=None,
        completed_at=moment if change.terminal else None,
        next_retry_at=(due or moment) if waits else None,
        scheduled_at=due if pending and due is not None else head["scheduled_at"],
        error=_error(change, head["error"]),
        cancel_requested_at=None if pending else head["cancel_requested_at"],
    )
    if change.terminal and head.get("unique_key") is not None:
        settled.head["unique_key"] = key_after_end(head["unique_key"], head["unique_until"])
    settled.result = line_or_null(change.result)
    if change.entry is not None:
        settled.append(change.entry, moment)
    return settled
