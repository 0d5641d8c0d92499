"""Submitting tasks with unique keys: all or none, in one atomic batch.

The entry of a key names the task that has it. Whether that task has given the key up is said by its record alone, so
that a claim and a settle write no more than the record. A task never takes a key again: an entry whose task has given
it up is free for whoever changes it first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from tasklib.core.errors import Unsupported
from tasklib.core.task import NewTask, TaskState
from tasklib.core.unique import Holder
from tasklib.stores.nats import keys
from tasklib.stores.nats.access import audit_writes
from tasklib.stores.nats.claim import write_of
from tasklib.stores.nats.clock import instant
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.idempotency import half_written, id_entry
from tasklib.stores.nats.kv import LARGEST_BATCH, KeyValueStore, Write
from tasklib.stores.nats.record import Record, decode, new_record
from tasklib.stores.values import Audit, Inserted

MOST = LARGEST_BATCH // 3
"""Each is a record and the entries of two keys."""


class UniqueSubmit:
    def __init__(
        self,
        kv: KeyValueStore,
        tasks: Sequence[NewTask],
        now: datetime,
        copy_of: UUID | None = None,
        audit: Audit[UUID] | None = None,
    ) -> None:
        if len(tasks) > MOST:
            raise Unsupported(f"on NATS at most {MOST} tasks with unique keys go in by one submit, got {len(tasks)}")
        self._kv = kv
        self._tasks = tasks
        self._now = now
        self._copy_of = copy_of
        self._audit = audit
        self._tries = 0
        self._records: dict[UUID, Record] = {}
        """What is to be written, and what was read."""
        self._changed: set[UUID] = set()
        self._slots: dict[str, UUID | None] = {}
        """Who has a key, by the name of its entry."""
        self._revisions: dict[str, int] = {}
        self._entries: dict[str, Write] = {}

    async def run(self) -> list[Inserted]:
        while True:
            self._tries += 1
            for seen in (self._records, self._changed, self._slots, self._revisions, self._entries):
                seen.clear()
            answers = [await self._answer(task) for task in self._tasks]
            writes = [*self._entries.values(), *(write_of(self._records[task_id]) for task_id in self._changed)]
            made = [answer.id for answer in answers if answer.created and answer.id in self._changed]
            if self._audit is not None and made:
                writes += audit_writes(self._kv, self._audit(made))
            try:
                if writes:
                    await self._kv.write(writes)
            except Conflict:
                continue
            return answers

    async def _answer(self, task: NewTask) -> Inserted:
        if self._tries > 1 and await self._is_there(task.id):
            return Inserted(task.id, True)
        owner = None if task.idempotency_key is None else await self._owner(task.idempotency_key)
        if owner is not None:
            return Inserted(owner, owner == task.id)
        rule = task.unique_rule
        if rule is not None:
            slot = keys.unique(task.name, rule.key)
            held = await self._held(slot, rule.key)
            if held is not None:
                holder = self._holder(held)
                if await self._is_there(task.id):
                    return Inserted(task.id, True)
                if not holder.gives_way_to(rule):
                    replaced = holder.is_replaced_by(rule)
                    if replaced:
                        self._write(held.replaced_by(new_record(task, self._now), rule))
                    return Inserted(holder.id, False, replaced=replaced)
                self._write(held.changed(unique_key=None))
            self._claim_entry(slot, task.id)
        if task.idempotency_key is not None:
            self._claim_entry(keys.idem(task.idempotency_key), task.id)
        record = new_record(task, self._now)
        if self._copy_of is not None:
            record = record.changed(copy_of=str(self._copy_of))
        self._kv.check_size(len(record.encode()), "payload")
        self._write(record)
        return Inserted(task.id, True)

    async def _is_there(self, task_id: UUID) -> bool:
        """This very submit, whose reply was lost."""
        return task_id not in self._records and await self._kv.leader_read(keys.task(task_id)) is not None

    async def _owner(self, key: str) -> UUID | None:
        """The task that an idempotency key stands for."""
        name = keys.idem(key)
        if name in self._slots:
            return self._slots[name]
        entry = await self._kv.leader_read(name)
        self._revisions[name] = 0 if entry is None else entry.revision
        if entry is None or entry.deleted:
            return None
        owner = UUID(json.loads(entry.data)["id"])
        record = await self._kv.leader_read(keys.task(owner))
        if record is None and (half := half_written(entry)) is not None:
            self._write(decode(half.data, 0))
        elif record is None or record.deleted:
            return None
        self._slots[name] = owner
        return owner

    async def _held(self, slot: str, key: str) -> Record | None:
        """The record of the task that has the key."""
        if slot not in self._slots:
            entry = await self._kv.leader_read(slot)
            self._revisions[slot] = 0 if entry is None else entry.revision
            gone = entry is None or entry.deleted
            self._slots[slot] = None if gone or entry is None else UUID(json.loads(entry.data)["id"])
        holder = self._slots[slot]
        if holder is None:
            return None
        if holder not in self._records:
            found = await self._kv.leader_read(keys.task(holder))
            if found is None or found.deleted:
                return None
            self._records[holder] = decode(found.data, found.revision)
        record = self._records[holder]
        return record if record.head.get("unique_key") == key else None

    def _holder(self, record: Record) -> Holder:
        head = record.head
        return Holder(
            id=UUID(head["id"]),
            name=head["name"],
            unique_key=head["unique_key"],
            unique_until=head["unique_until"],
            created_at=instant(head["created_at"]),
            running=head["state"] == TaskState.RUNNING,
            over=head["completed_at"] is not None,
            now=self._now,
        )

    def _claim_entry(self, name: str, task_id: UUID) -> None:
        self._slots[name] = task_id
        self._entries[name] = Write(name, self._revisions.get(name, 0), id_entry(task_id))

    def _write(self, record: Record) -> None:
        task_id = UUID(record.head["id"])
        self._records[task_id] = record
        self._changed.add(task_id)
