"""Submitting tasks with unique keys, and tasks that wait for others: all or none, in one atomic batch.

The entry of a key names the task that has it. Whether that task has given the key up is said by its record alone, so
that a claim and a settle write no more than the record. A task never takes a key again: an entry whose task has given
it up is free for whoever changes it first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from tasklib.core.errors import Unsupported
from tasklib.core.flows import resolved
from tasklib.core.task import NewTask, TaskState
from tasklib.core.unique import Holder
from tasklib.stores.nats import keys
from tasklib.stores.nats.access import audit_writes
from tasklib.stores.nats.claim import read_records, write_of
from tasklib.stores.nats.clock import instant
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.flow_reads import add_to_flows, tasks_of_flow
from tasklib.stores.nats.flows import check_before, link, linked_to
from tasklib.stores.nats.idempotency import half_written, id_entry
from tasklib.stores.nats.kv import LARGEST_BATCH, KeyValueStore, Write
from tasklib.stores.nats.record import Record, decode, new_record
from tasklib.stores.values import Audit, Inserted

FLOW_LIMIT = LARGEST_BATCH
MOST = LARGEST_BATCH // 3
"""Each is a record and the entries of two keys."""


class BatchSubmit:
    def __init__(
        self,
        kv: KeyValueStore,
        tasks: Sequence[NewTask],
        now: datetime,
        copy_of: UUID | None = None,
        audit: Audit[UUID] | None = None,
        also: Callable[[Sequence[Inserted]], list[Write]] | None = None,
    ) -> None:
        """`also`: what goes into the same batch, of the answers. A Conflict is the caller's then, who knows of it."""
        if len(tasks) > MOST and any(task.unique_rule is not None for task in tasks):
            raise Unsupported(f"on NATS at most {MOST} tasks with unique keys go in by one submit, got {len(tasks)}")
        if len(tasks) > FLOW_LIMIT:
            raise Unsupported(f"on NATS a flow has at most {FLOW_LIMIT:,} tasks, got {len(tasks):,}")
        self._kv = kv
        self._tasks = tasks
        self._now = now
        self._copy_of = copy_of
        self._audit = audit
        self._also = also
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
            known = await self._known_flows()
            answers = [known.get(task.id) or await self._answer(task) for task in self._tasks]
            await self._link(answers)
            writes = [*self._entries.values(), *(write_of(self._records[task_id]) for task_id in self._changed)]
            made = [answer.id for answer in answers if answer.created and answer.id in self._changed]
            if self._audit is not None and made:
                writes += audit_writes(self._kv, self._audit(made))
            if self._also is not None:
                writes += self._also(answers)
            if len(writes) > LARGEST_BATCH:
                text = f"these {len(self._tasks):,} tasks, their keys and what they wait for are {len(writes):,} writes"
                raise Unsupported(f"{text}; on NATS at most {LARGEST_BATCH:,} go in together")
            try:
                if writes:
                    await self._kv.write(writes)
            except Conflict:
                if self._also is not None:
                    raise
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

    async def _known_flows(self) -> dict[UUID, Inserted]:
        """Of flows whose key is taken: the tasks that are there answer for those that were given, one for one, as long
        as all of them are there; otherwise the first."""
        answers: dict[UUID, Inserted] = {}
        for first in self._tasks:
            if first.flow_id != first.id or first.idempotency_key is None:
                continue
            owner = await self._owner(first.idempotency_key)
            if owner is None or owner == first.id:
                continue
            given = [task.id for task in self._tasks if task.flow_id == first.id]
            there = sorted(await read_records(self._kv, await tasks_of_flow(self._kv, owner)))
            stand = there if len(there) == len(given) else [owner] * len(given)
            answers.update((task_id, Inserted(each, False)) for task_id, each in zip(given, stand, strict=True))
        return answers

    async def _link(self, answers: Sequence[Inserted]) -> None:
        """Those that are new, to what they wait for."""
        known = {task.id: answer.id for task, answer in zip(self._tasks, answers, strict=True)}
        new = [
            task._replace(
                after=resolved(task.after, known), before=tuple(known.get(child, child) for child in task.before)
            )
            for task in self._tasks
            if known[task.id] == task.id and task.id in self._changed and task.is_linked
        ]
        if new:
            wanted = [each for each in dict.fromkeys(linked_to(new)) if each not in self._records]
            self._records.update(await read_records(self._kv, wanted))
            await check_before(self._kv, new)
            for record in link(new, self._records, self._now).values():
                self._write(record)
            await add_to_flows(self._kv, new)

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
            started=head["started_at"] is not None,
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
