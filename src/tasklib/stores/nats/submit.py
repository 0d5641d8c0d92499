"""Submitting: all or none, and one task for a key: whoever creates the key's entry decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from tasklib.core.task import NewTask
from tasklib.stores.nats import keys
from tasklib.stores.nats.access import audit_writes
from tasklib.stores.nats.batch_submit import BatchSubmit
from tasklib.stores.nats.claim import write_of
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.idempotency import half_written, id_entry
from tasklib.stores.nats.kv import LARGEST_BATCH, KeyValueStore, Write
from tasklib.stores.nats.record import new_record
from tasklib.stores.values import Audit, Inserted

_LARGEST_BYTES = 64 * 1024 * 1024

_Pair = tuple[NewTask, Write]


class Submits:
    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv
        self._writing: set[asyncio.Task[list[Inserted]]] = set()

    async def insert(
        self, tasks: Sequence[NewTask], copy_of: UUID | None = None, audit: Audit[UUID] | None = None
    ) -> list[Inserted]:
        if not tasks:
            return []
        now = self._kv.clock.now()
        if any(task.unique_rule is not None or task.is_linked for task in tasks):
            return await self._finish(self._kv.run(BatchSubmit(self._kv, tasks, now, copy_of, audit).run))
        pairs: list[_Pair] = []
        for task in tasks:
            record = new_record(task, now)
            write = write_of(record if copy_of is None else record.changed(copy_of=str(copy_of)))
            self._kv.check_size(len(write.data), "payload")
            pairs.append((task, write))
        slices = list(_slices(pairs))
        if len(slices) == 1 and (len(tasks) > 1 or tasks[0].idempotency_key is None):
            return await self._kv.run(_Slice(self._kv, slices[0], audit).run)
        return await self._finish(self._insert_slices(slices, audit))

    async def _finish(self, inserts: Coroutine[Any, Any, list[Inserted]]) -> list[Inserted]:
        """More than one write: a caller that goes away must not stop it half-way."""
        writing = asyncio.ensure_future(inserts)
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        return await asyncio.shield(writing)

    async def _insert_slices(self, slices: list[list[_Pair]], audit: Audit[UUID] | None) -> list[Inserted]:
        inserted: list[Inserted] = []
        seen: set[str] = set()
        for part in slices:
            answers = await self._kv.run(_Slice(self._kv, part, audit).run)
            for (task, _), answer in zip(part, answers, strict=True):
                again = task.idempotency_key is not None and task.idempotency_key in seen
                inserted.append(Inserted(answer.id, answer.created and not again))
                if task.idempotency_key is not None:
                    seen.add(task.idempotency_key)
        return inserted

    async def close(self) -> None:
        if self._writing:
            await asyncio.wait(self._writing)


def _slices(pairs: list[_Pair]) -> Iterator[list[_Pair]]:
    """As many in one atomic batch as it can hold; a task with a key is two messages, or three where it takes over a key
    whose task is gone."""
    part: list[_Pair] = []
    messages = size = 0
    for task, write in pairs:
        count = 1 if task.idempotency_key is None else 3
        if part and (messages + count > LARGEST_BATCH or size + len(write.data) > _LARGEST_BYTES):
            yield part
            part, messages, size = [], 0, 0
        part.append((task, write))
        messages += count
        size += len(write.data)
    yield part


class _Slice:
    """Tasks that go in together."""

    def __init__(self, kv: KeyValueStore, pairs: list[_Pair], audit: Audit[UUID] | None) -> None:
        self._kv = kv
        self._pairs = pairs
        self._audit = audit
        self._first: dict[str, UUID] = {}
        """Two tasks of the batch with one key become one: the first."""
        self._left: dict[UUID, _Pair] = {}
        self._answers: dict[UUID, Inserted] = {}
        self._takeovers: dict[str, tuple[int, list[Write]]] = {}
        """Keys whose entries are there but free: their revision, and what proves it."""
        self._tries = 0
        for task, write in pairs:
            key = task.idempotency_key
            if key is None or self._first.setdefault(key, task.id) == task.id:
                self._left[task.id] = (task, write)

    async def run(self) -> list[Inserted]:
        while self._left:
            self._tries += 1
            try:
                for writes in self._steps():
                    await self._kv.write(writes)
            except Conflict:
                await self._resolve()
                continue
            self._answers.update({task_id: Inserted(task_id, True) for task_id in self._left})
            self._left.clear()
        return [self._answer(task) for task, _ in self._pairs]

    def _answer(self, task: NewTask) -> Inserted:
        key = task.idempotency_key
        if key is None or self._first[key] == task.id:
            return self._answers[task.id]
        return Inserted(self._answers[self._first[key]].id, False)

    def _steps(self) -> list[list[Write]]:
        """One atomic batch. But a lone task with a new key is two single writes, which take a tenth of the time: the
        key's entry comes first and holds the whole record, and whoever finds it without its task writes the task."""
        if len(self._left) == 1 and self._audit is None:
            [(task, write)] = self._left.values()
            key = task.idempotency_key
            if key is not None and key not in self._takeovers:
                return [[Write(keys.idem(key), 0, write.data)], [write]]
        return [self._writes()]

    def _writes(self) -> list[Write]:
        writes: list[Write] = []
        for task, write in self._left.values():
            key = task.idempotency_key
            if key is not None:
                revision, proofs = self._takeovers.get(key, (0, []))
                writes += proofs
                writes.append(Write(keys.idem(key), revision, id_entry(task.id)))
            writes.append(write)
        return writes if self._audit is None else [*audit_writes(self._kv, self._audit(list(self._left))), *writes]

    async def _resolve(self) -> None:
        """Something is there already: a key, or this very task, whose reply was lost."""
        found = await self._kv.read_all(
            [
                *map(keys.task, self._left),
                *(keys.idem(key) for key, first in self._first.items() if first in self._left),
            ]
        )
        owners: dict[str | None, UUID] = {
            key: UUID(json.loads(entry.data)["id"])
            for key in self._first
            if (entry := found.get(keys.idem(key))) is not None and not entry.deleted
        }
        there = [task_id for task_id in self._left if keys.task(task_id) in found]
        if there:
            # There, or deleted since. If it was sent before, it is this very slice whose reply was lost, and was stored
            # whole; otherwise another call has submitted these.
            for task_id in list(self._left) if self._tries > 1 else there:
                owner = owners.get(self._left[task_id][0].idempotency_key, task_id)
                self._done(task_id, Inserted(owner, owner == task_id))
            return
        found.update(await self._kv.read_all({keys.task(owner) for owner in owners.values()} - found.keys()))
        for task, _ in list(self._left.values()):
            key = task.idempotency_key
            if key is None:
                continue  # another's key was in the way
            entry = found.get(keys.idem(key))
            if entry is None:
                self._takeovers.pop(key, None)
            elif entry.deleted:
                self._takeovers[key] = (entry.revision, [])
            else:
                owner = owners[key]
                held = found.get(keys.task(owner))
                if held is None and (half := half_written(entry)) is not None:
                    with suppress(Conflict):
                        await self._kv.write([half])
                    self._done(task.id, Inserted(owner, owner == task.id))
                elif held is not None and not held.deleted:
                    self._done(task.id, Inserted(owner, owner == task.id))
                else:  # the task was deleted by hand, its key was not: the key is free, if that is still so
                    proof = Write(keys.task(owner), 0 if held is None else held.revision, deletes=True)
                    self._takeovers[key] = (entry.revision, [proof])

    def _done(self, task_id: UUID, answer: Inserted) -> None:
        self._answers[task_id] = answer
        del self._left[task_id]


def task_writes(kv: KeyValueStore, task: NewTask) -> list[Write]:
    """A task and its key, both new, for somebody else's batch."""
    write = write_of(new_record(task, kv.clock.now()))
    kv.check_size(len(write.data), "payload")
    key = task.idempotency_key
    return [write] if key is None else [Write(keys.idem(key), 0, id_entry(task.id)), write]
