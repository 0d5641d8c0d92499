"""Deleting and pruning; workers and their task types; the controls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tasklib.core.decide import WriteResult
from tasklib.core.limits import Control
from tasklib.core.published import PublishedType
from tasklib.core.task import Task, TaskState
from tasklib.stores.nats import keys, limits
from tasklib.stores.nats.access import audit_writes
from tasklib.stores.nats.cache import TaskCache
from tasklib.stores.nats.claim import read_records
from tasklib.stores.nats.clock import instant, micros, written
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.flow_reads import forget_tasks
from tasklib.stores.nats.flows import children_of, is_unfinished
from tasklib.stores.nats.kv import LARGEST_BATCH, Entry, KeyValueStore, Write
from tasklib.stores.nats.record import Record, to_task
from tasklib.stores.values import Audit, AuditEntry, ControlChange, Controls, Drain, WorkerHeartbeat, WorkerInfo

WORKERS_KEPT = timedelta(days=1)
_AT_ONCE = LARGEST_BATCH // 5
"""A task with two keys is three messages, and its audit entry a fourth."""


class Deletes:
    """In atomic batches: a task and its key go together."""

    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv

    async def delete(self, guards: Sequence[tuple[UUID, int]], audit: Audit[UUID] | None = None) -> list[WriteResult]:
        write_results: list[WriteResult] = []
        for start in range(0, len(guards), _AT_ONCE):
            part = guards[start : start + _AT_ONCE]
            done: set[UUID] = set()

            async def work(part: Sequence[tuple[UUID, int]] = part, done: set[UUID] = done) -> list[WriteResult]:
                while True:
                    try:
                        return await self._delete(part, done, audit)
                    except Conflict:
                        continue

            write_results += await self._kv.run(work)
        return write_results

    async def _delete(
        self, guards: Sequence[tuple[UUID, int]], sent: set[UUID], audit: Audit[UUID] | None
    ) -> list[WriteResult]:
        records = await read_records(self._kv, list(dict.fromkeys(task_id for task_id, _ in guards)))
        named = [entry for record in records.values() for entry in _entries(record)]
        found = await self._kv.read_all(named) if named else {}
        children = await read_records(self._kv, [child for each in records.values() for child in children_of(each)])
        writes: list[Write] = []
        doubt: set[UUID] = set()
        flows: dict[UUID, list[UUID]] = {}
        write_results = []
        for task_id, version in guards:
            record = records.get(task_id)
            if record is None:
                # Gone: by us, if this is the second look after a lost answer.
                write_results.append(WriteResult.APPLIED if task_id in sent else WriteResult.MISSING)
                sent.discard(task_id)
            elif record.head["version"] != version or record.head["completed_at"] is None:
                write_results.append(WriteResult.STALE)
            elif any(is_unfinished(children.get(child)) for child in children_of(record)):
                write_results.append(WriteResult.AWAITED)
            else:
                write_results.append(WriteResult.APPLIED)
                if record.head.get("flow_id"):
                    flows.setdefault(UUID(record.head["flow_id"]), []).append(task_id)
                del records[task_id]  # a second guard on the same task finds nothing
                doubt.add(task_id)
                writes += _deletions(record, found)
        if writes:
            sent |= doubt
            if audit is not None:
                writes += audit_writes(self._kv, audit(list(doubt)))
            try:
                await self._kv.write(writes)
            except Conflict:
                sent -= doubt
                raise
            await forget_tasks(self._kv, flows)
        return write_results


def _deletions(record: Record, found: dict[str, Entry]) -> list[Write]:
    head = record.head
    writes = [Write(f"{keys.TASK}{head['id']}", record.revision, deletes=True)]
    for name in _entries(record):
        entry = found.get(name)
        if entry is not None and not entry.deleted and json.loads(entry.data)["id"] == head["id"]:
            writes.append(Write(entry.key, entry.revision, deletes=True))
    return writes


def _entries(record: Record) -> list[str]:
    """Of the keys that it has or had."""
    head, names = record.head, []
    if head["idempotency_key"]:
        names.append(keys.idem(head["idempotency_key"]))
    if head.get("unique_entry"):
        names.append(keys.unique(head["name"], head["unique_entry"]))
    return names


class Workers:
    def __init__(self, kv: KeyValueStore, cache: TaskCache) -> None:
        self._kv = kv
        self._cache = cache

    async def heartbeat(self, worker: WorkerHeartbeat) -> Drain | None:
        await self._kv.run(self._kv.info)

        def change(entry: Entry | None) -> bytes:
            moment = written(self._kv.clock.now())
            before = {} if entry is None else json.loads(entry.data)
            about = {**asdict(worker), "names": list(worker.names), "stopped_at": None, "drain": before.get("drain")}
            return json.dumps({**about, "started_at": before.get("started_at", moment), "seen_at": moment}).encode()

        data = await self._kv.update(keys.worker(worker.id), change)
        return None if data is None else _drain(json.loads(data))

    async def request_drain(self, worker_id: str, by: str, audit: Sequence[AuditEntry]) -> bool:
        def change(entry: Entry | None) -> bytes | None:
            about = None if entry is None else json.loads(entry.data)
            if about is None or about["stopped_at"] is not None or about.get("drain") is not None:
                return None
            return json.dumps({**about, "drain": {"by": by, "at": written(self._kv.clock.now())}}).encode()

        # Noted, as no heartbeat is: those who listen know it by that.
        key, beside = keys.worker(worker_id), lambda: audit_writes(self._kv, audit)
        return await self._kv.update(key, change, noted=True, beside=beside) is not None

    async def deregister_worker(self, worker_id: str) -> None:
        def change(entry: Entry | None) -> bytes | None:
            if entry is None:
                return None
            moment = written(self._kv.clock.now())
            return json.dumps({**json.loads(entry.data), "stopped_at": moment}).encode()

        await self._kv.update(keys.worker(worker_id), change)

    async def all(self) -> list[WorkerInfo]:
        entries = await self._kv.run(lambda: self._kv.under(keys.WORKER))
        now = self._kv.clock.now()
        return sorted((_worker(json.loads(entry.data), now) for entry in entries), key=lambda found: found.started_at)

    async def forget(self) -> None:
        async def work() -> None:
            await self._cache.sync()
            now = self._kv.clock.now()
            # Those that hold something are kept: their silence is how the janitor knows.
            lock_owners = {running.worker for running in self._cache.index.running.values()}
            for entry in await self._kv.under(keys.WORKER):
                about = json.loads(entry.data)
                if about["id"] not in lock_owners and now - instant(about["seen_at"]) > WORKERS_KEPT:
                    try:
                        await self._kv.write([Write(entry.key, entry.revision, deletes=True)])
                    except Conflict:
                        continue  # it lives

        await self._kv.run(work)

    async def lost_leases(self, dead_after_seconds: float, limit: int) -> list[Task]:
        async def work() -> list[Task]:
            await self._cache.sync()  # also sets the clock by the server's
            now = micros(self._kv.clock.earliest())
            running = self._cache.index.running
            dead = await self._dead({found.worker for found in running.values()}, dead_after_seconds)
            ids = [
                UUID(bytes=task)
                for task, found in running.items()
                if found.locked is None or found.locked <= now or found.worker in dead
            ]
            records = await read_records(self._kv, ids[:limit])
            return [to_task(record) for record in records.values() if record.head["state"] == TaskState.RUNNING]

        return await self._kv.run(work)

    async def _dead(self, ids: set[str | None], dead_after_seconds: float) -> set[str]:
        """Those that registered, and then were silent for too long or said goodbye. Asked of the leader where a replica
        says so: it may be cut off and know only old beats."""
        silent: set[str] = set()
        named = {keys.worker(worker_id): worker_id for worker_id in ids if worker_id is not None}
        entries = await self._kv.read_all(named)
        for key, worker_id in named.items():
            if self._is_dead(entries.get(key), dead_after_seconds):
                silent.add(worker_id)
        if self._kv.replicas == 1 or not silent:
            return silent
        asked = list(silent)
        latest = await asyncio.gather(*(self._kv.leader_read(keys.worker(each)) for each in asked))
        return {
            worker_id
            for worker_id, entry in zip(asked, latest, strict=True)
            if self._is_dead(entry, dead_after_seconds)
        }

    def _is_dead(self, entry: Entry | None, dead_after_seconds: float) -> bool:
        if entry is None or entry.deleted:
            return False
        about = json.loads(entry.data)
        silence = self._kv.clock.earliest() - instant(about["seen_at"])
        return about["stopped_at"] is not None or silence > timedelta(seconds=dead_after_seconds)


def _worker(about: dict[str, Any], now: datetime) -> WorkerInfo:
    seen = instant(about["seen_at"])
    return WorkerInfo(
        id=about["id"],
        hostname=about["hostname"],
        pid=about["pid"],
        names=tuple(about["names"]),
        queues=about.get("queues", {}),
        version=about.get("version"),
        concurrency=about["concurrency"],
        running=about["running"],
        started_at=instant(about["started_at"]),
        seen_at=seen,
        stopped_at=None if about["stopped_at"] is None else instant(about["stopped_at"]),
        seconds_since_seen=max(0.0, (now - seen).total_seconds()),
        drain=_drain(about),
    )


def _drain(about: dict[str, Any]) -> Drain | None:
    asked = about.get("drain")
    return None if asked is None else Drain(asked["by"], instant(asked["at"]))


async def publish(kv: KeyValueStore, types: Sequence[PublishedType]) -> None:
    for each in types:
        data = json.dumps({"options": each.options, "schema": each.schema}).encode()
        await kv.update(keys.task_type(each.name), lambda entry, data=data: data)  # type: ignore[misc]


async def published(kv: KeyValueStore) -> list[PublishedType]:
    entries = await kv.run(lambda: kv.under(keys.TYPE))
    return sorted(
        PublishedType(keys.text_of(entry.key[len(keys.TYPE) :]), **json.loads(entry.data)) for entry in entries
    )


async def controls(kv: KeyValueStore) -> dict[str, Controls]:
    entries = await kv.run(lambda: kv.under(keys.CONTROL))
    found = [limits.decode(keys.text_of(entry.key[len(keys.CONTROL) :]), entry.data).public() for entry in entries]
    return {control.name: control for control in found if control != Controls(name=control.name)}


async def control(kv: KeyValueStore, change: ControlChange, audit: Sequence[AuditEntry]) -> Controls:
    new = Control(change.name)

    def changed(entry: Entry | None) -> bytes:
        nonlocal new
        old = Control(change.name) if entry is None else limits.decode(change.name, entry.data)
        new = old.changed(change, kv.clock.now())
        return limits.encode(new).encode()

    await kv.update(keys.control(change.name), changed, noted=True, beside=lambda: audit_writes(kv, audit))
    return new.public()
