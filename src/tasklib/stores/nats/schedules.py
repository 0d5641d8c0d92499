"""Schedules: an entry for each, written under its revision, in one batch with the tasks that it submits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tasklib.core.schedules import Definition, Run, Schedule, ScheduleWrite, definition_of
from tasklib.stores.nats import keys
from tasklib.stores.nats.access import audit_writes
from tasklib.stores.nats.batch_submit import BatchSubmit
from tasklib.stores.nats.clock import instant, written
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.kv import Entry, KeyValueStore, Write
from tasklib.stores.nats.submit import task_writes
from tasklib.stores.values import AuditEntry, DueSchedules, Inserted

_AT_ONCE = 300
"""Messages of one batch."""
_TIMES = ("next_at", "declared_at", "code_at", "created_at", "updated_at")
_CHANGED = "changed"
"""The note on an entry that tells listeners to look anew."""


class Schedules:
    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv

    async def all(self, names: Sequence[str] | None) -> list[Schedule]:
        if names is None:
            entries = await self._kv.run(lambda: self._kv.under(keys.SCHEDULE))
        else:
            wanted = [keys.schedule(name) for name in dict.fromkeys(names)]
            found = await self._kv.run(lambda: self._kv.read_all(wanted))
            entries = [entry for entry in found.values() if not entry.deleted]
        return sorted(map(_decode, entries), key=lambda schedule: schedule.name)

    async def due(self, limit: int) -> DueSchedules:
        await self._kv.run(self._kv.info)  # the clock learns from it
        now = self._kv.clock.earliest()
        known = [each for each in await self.all(None) if each.next_at is not None and not each.is_orphaned(now)]
        known.sort(key=lambda schedule: (schedule.next_at or now, schedule.name))
        due = [each for each in known if each.next_at is not None and each.next_at <= now]
        left = known[len(due) :]
        wait = max(timedelta(0), left[0].next_at - now).total_seconds() if left and left[0].next_at else None
        return DueSchedules(due[:limit], now, 0.0 if len(due) > limit else wait)

    async def write(
        self, writes: Sequence[ScheduleWrite], audit: Sequence[AuditEntry]
    ) -> list[Sequence[Inserted] | None]:
        answers: list[Sequence[Inserted] | None] = []
        part: list[ScheduleWrite] = []
        size = 0
        for write in writes:
            if part and size + 1 + 2 * len(write.tasks) > _AT_ONCE:
                answers += await self._kv.run(_Part(self._kv, part, audit).run)
                part, size = [], 0
            part.append(write)
            size += 1 + 2 * len(write.tasks)
        return answers + (await self._kv.run(_Part(self._kv, part, audit).run) if part else [])

    async def delete(self, name: str, version: int, audit: Sequence[AuditEntry]) -> bool:
        key = keys.schedule(name)

        async def work() -> bool:
            entry = (await self._kv.read([key])).get(key)
            if entry is None or entry.deleted or _decode(entry).version != version:
                return False
            try:
                deletion = Write(key, entry.revision, deletes=True)
                await self._kv.write([deletion, *audit_writes(self._kv, audit)])
            except Conflict:
                return False
            return True

        return await self._kv.run(work)

    async def keep(self, names: Sequence[str]) -> None:
        for name in names:

            def change(entry: Entry | None) -> bytes | None:
                about = None if entry is None else json.loads(entry.data)
                if about is None or about["declared_at"] is None:
                    return None
                return json.dumps({**about, "declared_at": written(self._kv.clock.now())}).encode()

            await self._kv.update(keys.schedule(name), change)


class _Part:
    """Writes that go together in one batch; one by one where another was first with any of them."""

    def __init__(self, kv: KeyValueStore, writes: Sequence[ScheduleWrite], audit: Sequence[AuditEntry]) -> None:
        self._kv = kv
        self._writes = writes
        self._audit = audit

    async def run(self) -> list[Sequence[Inserted] | None]:
        found = await self._kv.read_all([keys.schedule(write.schedule.name) for write in self._writes])
        entries = [self._entry(found, write) for write in self._writes]
        fitting = [(write, entry) for write, entry in zip(self._writes, entries, strict=True) if _fits(write, entry)]
        unique = any(task.unique_rule is not None for write in self._writes for task in write.tasks)
        if len(fitting) == len(self._writes) and not unique:
            try:
                return await self._together(fitting)
            except Conflict:
                pass
        return [
            await self._alone(write, entry) if _fits(write, entry) else self._earlier(write, entry)
            for write, entry in zip(self._writes, entries, strict=True)
        ]

    @staticmethod
    def _entry(found: dict[str, Entry], write: ScheduleWrite) -> Entry | None:
        return found.get(keys.schedule(write.schedule.name))

    async def _together(self, fitting: Sequence[tuple[ScheduleWrite, Entry | None]]) -> list[Sequence[Inserted] | None]:
        answers = [[Inserted(task.id, True) for task in write.tasks] for write, _ in fitting]
        messages: list[Write] = []
        for (write, entry), inserted in zip(fitting, answers, strict=True):
            messages.append(self._message(write, entry, inserted))
            messages += [message for task in write.tasks for message in task_writes(self._kv, task)]
        await self._kv.write([*messages, *audit_writes(self._kv, self._audit)])
        return list(answers)

    async def _alone(self, write: ScheduleWrite, entry: Entry | None) -> Sequence[Inserted] | None:
        """A task of this very time may be there already, or it depends on others whether one is made: those are looked
        at first, and the batch holds only as long as they and the schedule are as they were seen."""

        def also(inserted: Sequence[Inserted]) -> list[Write]:
            return [self._message(write, entry, inserted), *audit_writes(self._kv, self._audit)]

        while True:
            try:
                return await BatchSubmit(self._kv, write.tasks, self._kv.clock.now(), also=also).run()
            except Conflict:
                now = await self._kv.leader_read(keys.schedule(write.schedule.name))
                if (0 if now is None else now.revision) != (0 if entry is None else entry.revision):
                    return self._earlier(write, now)

    def _earlier(self, write: ScheduleWrite, entry: Entry | None) -> Sequence[Inserted] | None:
        """This write itself may have been first, and its answer lost: then the schedule tells of its tasks."""
        if entry is None or entry.deleted or not write.tasks:
            return None
        known = {run.task_id for run in _decode(entry).runs}
        if not known.issuperset(task.id for task in write.tasks):
            return None
        return [Inserted(task.id, True) for task in write.tasks]

    def _message(self, write: ScheduleWrite, entry: Entry | None, inserted: Sequence[Inserted]) -> Write:
        schedule = write.schedule.ran(write.runs([(each.id, each.created) for each in inserted]))
        moment = written(self._kv.clock.now())
        about = {
            "name": schedule.name,
            "declared": _written_definition(schedule.declared),
            "operator": _written_definition(schedule.operator),
            "paused": schedule.paused,
            "version": schedule.version + 1,
            "next_at": _written_time(schedule.next_at),
            "declared_at": _written_time(schedule.declared_at),
            "code_at": _written_time(schedule.code_at),
            "runs": [
                [written(run.slot), str(run.task_id), written(run.fired_at), run.created] for run in schedule.runs
            ],
            "fired": schedule.fired,
            "missed": schedule.missed,
            "created_at": moment if schedule.created_at is None else written(schedule.created_at),
            "updated_at": moment,
        }
        data = json.dumps(about).encode()
        self._kv.check_size(len(data), "schedule")
        revision = 0 if entry is None else entry.revision
        return Write(keys.schedule(schedule.name), revision, data, None if write.slots else _CHANGED)


def _fits(write: ScheduleWrite, entry: Entry | None) -> bool:
    if entry is None or entry.deleted:
        return write.schedule.version == 0
    return _decode(entry).version == write.schedule.version


def _decode(entry: Entry) -> Schedule:
    about: dict[str, Any] = json.loads(entry.data)
    times = {name: None if about[name] is None else instant(about.pop(name)) for name in _TIMES}
    runs = tuple(
        Run(instant(slot), UUID(task_id), instant(fired_at), created)
        for slot, task_id, fired_at, created in about.pop("runs")
    )
    declared, operator = definition_of(about.pop("declared")), definition_of(about.pop("operator"))
    return Schedule(**{**about, **times}, declared=declared, operator=operator, runs=runs)


def _written_definition(definition: Definition | None) -> Any:
    return None if definition is None else json.loads(definition.as_json())


def _written_time(moment: datetime | None) -> str | None:
    return None if moment is None else written(moment)
