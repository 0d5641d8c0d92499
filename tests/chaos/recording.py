"""A store that notes what passes through it: what was asked before the call, what was answered after it.

It stands between the library and the engine's own store, so that the library is the one that ships. A process that is
killed between the two lines leaves the question without its answer: then the checker takes both as possible.
"""

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from tasklib import Config
from tasklib.core.decide import Change, WriteResult
from tasklib.core.schedules import ScheduleWrite
from tasklib.core.task import Claim, NewTask, Task
from tasklib.engine.backends import Backend
from tasklib.engine.engine import Engine
from tasklib.stores.values import Audit, Claimed, ClaimRequest, Extension, Held, Inserted
from tests.chaos.history import History


class RecordingEngine(Engine):
    def __init__(self, config: Config, history: History) -> None:
        super().__init__(config)
        self._history = history

    def new_store(self) -> Backend:
        return cast(Backend, RecordingStore(super().new_store(), self._history))


class RecordingStore:
    """Everything else is the store's own."""

    def __init__(self, store: Backend, history: History) -> None:
        self._store = store
        self._history = history

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def insert(self, tasks: Sequence[NewTask], **more: Any) -> Sequence[Inserted]:
        self._submitting(tasks)
        links = [
            [str(task.id), [str(each) for each in task.after.parents], task.after.on] for task in tasks if task.after
        ]
        if links:
            self._history.note("links", tasks=links, batch=[str(task.id) for task in tasks])
        inserted = await self._store.insert(tasks, **more)
        self._submitted(tasks, inserted)
        return inserted

    def _submitting(self, tasks: Sequence[NewTask]) -> None:
        rows = [
            [str(task.id), task.idempotency_key, task.max_retries, task.delay_seconds, _rule(task)] for task in tasks
        ]
        self._history.note("submitting", tasks=rows)

    def _submitted(self, tasks: Sequence[NewTask], inserted: Sequence[Inserted]) -> None:
        pairs = zip(tasks, inserted, strict=True)
        rows = [[str(kept.id), task.idempotency_key, kept.created, str(task.id), kept.replaced] for task, kept in pairs]
        self._history.note("submitted", tasks=rows)

    async def write_schedules(self, writes: Sequence[ScheduleWrite], **more: Any) -> list[Sequence[Inserted] | None]:
        """Each is stored or not for itself."""
        for write in writes:
            if write.tasks:
                self._submitting(write.tasks)
        answers = await self._store.write_schedules(writes, **more)
        for write, inserted in zip(writes, answers, strict=True):
            if inserted:
                self._submitted(write.tasks, inserted)
                slots = zip(write.tasks, write.slots, inserted, strict=True)
                rows = [
                    [write.schedule.name, slot.isoformat(), str(kept.id), kept.created]
                    for task, slot, kept in slots
                    if task.idempotency_key is not None
                ]
                self._history.note("fired", slots=rows)
        return answers

    async def claim(self, request: ClaimRequest) -> Claimed:
        claimed = await self._store.claim(request)
        self._claimed(claimed.claims, "claim")
        return claimed

    async def claim_by_id(self, task_id: UUID, version: int, worker_id: str, lease_seconds: float) -> Claim | None:
        taken = await self._store.claim_by_id(task_id, version, worker_id, lease_seconds)
        if taken is not None:
            self._claimed([taken], "claim")
        return taken

    async def claims_of_worker(self, worker_id: str) -> list[Claim]:
        held = await self._store.claims_of_worker(worker_id)
        self._claimed(held, "adopt")
        return held

    def _claimed(self, claims: Sequence[Claim], how: str) -> None:
        if claims:
            rows = [[str(c.id), c.version, c.attempt, c.max_retries, c.started_at.isoformat()] for c in claims]
            self._history.note(how, worker=claims[0].worker_id, claims=rows)

    async def settle(self, changes: Sequence[Change], *, audit: Audit[UUID] | None = None) -> list[WriteResult]:
        forms = [form for change in changes for form in (change, change.if_asked) if form is not None]
        asked = [[str(c.id), c.version, c.worker_id, c.state, c.terminal, _kind(c), c.result] for c in forms]
        self._history.note("settling", changes=asked)
        write_results = await self._store.settle(changes, audit=audit)
        told = [[str(c.id), c.version, c.worker_id, v, _kind(c)] for c, v in zip(changes, write_results, strict=True)]
        self._history.note("settled", changes=told)
        return write_results

    async def extend(self, worker_id: str, leases: Sequence[Held], lease_seconds: float) -> list[Extension]:
        answers = await self._store.extend(worker_id, leases, lease_seconds)
        versions = {lease.id: lease.version for lease in leases}
        rows = [[str(each.id), versions[each.id], each.held] for each in answers]
        if rows:
            self._history.note("extend", worker=worker_id, leases=rows)
        return answers

    async def lost_leases(self, dead_after_seconds: float, limit: int) -> list[Task]:
        found = await self._store.lost_leases(dead_after_seconds, limit)
        if found:
            self._history.note("lost", tasks=[[str(task.id), task.version, task.worker_id] for task in found])
        return found

    async def delete(
        self, guards: Sequence[tuple[UUID, int]], *, audit: Audit[UUID] | None = None
    ) -> list[WriteResult]:
        self._history.note("deleting", guards=[[str(task_id), version] for task_id, version in guards])
        write_results = await self._store.delete(guards, audit=audit)
        told = [
            [str(task_id), version, write_result]
            for (task_id, version), write_result in zip(guards, write_results, strict=True)
        ]
        self._history.note("deleted", guards=told)
        return write_results


def _rule(task: NewTask) -> list[str] | None:
    rule = task.unique_rule
    return None if rule is None else [task.name, rule.key, rule.until, rule.conflict]


def _kind(change: Change) -> str:
    """Who wants the change: the holder of the claim, one who says that the holder is gone, or an operator."""
    if change.locked_until is not None:
        return "expire"
    return "operator" if change.worker_id is None else "holder"
