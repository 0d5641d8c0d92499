"""Reading flows. Which tasks a flow has is kept in an entry of its own: a bucket has no other way to find them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from tasklib.core.flows import NEVER, After, Feeds, FlowSummary, FlowTask, Parent, inputs_of, on_of
from tasklib.core.task import NewTask, TaskState
from tasklib.stores.nats import keys
from tasklib.stores.nats.cache import TaskCache
from tasklib.stores.nats.claim import read_records
from tasklib.stores.nats.clock import instant, micros
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.flows import children_of, is_unfinished, parents_of
from tasklib.stores.nats.kv import Entry, KeyValueStore, Write
from tasklib.stores.nats.record import Record


async def add_to_flows(kv: KeyValueStore, tasks: Sequence[NewTask]) -> None:
    """Before the tasks themselves: those that are never stored are left out by who reads."""
    names: dict[UUID, str | None] = {}
    added: defaultdict[UUID, list[str]] = defaultdict(list)
    for task in tasks:
        if task.flow_id is not None:
            added[task.flow_id].append(str(task.id))
            names.setdefault(task.flow_id, None)
            names[task.flow_id] = names[task.flow_id] or task.flow_name

    for flow_id, ids in added.items():

        def change(entry: Entry | None, flow_id: UUID = flow_id, ids: list[str] = ids) -> bytes | None:
            said = {"name": names[flow_id], "ids": []} if entry is None else json.loads(entry.data)
            said["ids"] = list(dict.fromkeys([*said["ids"], *ids]))
            return json.dumps(said).encode()

        await kv.update(keys.flow(flow_id), change)


async def forget_tasks(kv: KeyValueStore, gone: Mapping[UUID, Sequence[UUID]]) -> None:
    """Of these flows. One that has no more tasks goes with the last."""
    for flow_id, ids in gone.items():
        deleted = {str(task_id) for task_id in ids}
        while True:
            entry = (await kv.read([keys.flow(flow_id)])).get(keys.flow(flow_id))
            if entry is None or entry.deleted:
                break
            said = json.loads(entry.data)
            said["ids"] = [each for each in said["ids"] if each not in deleted]
            try:
                await kv.write([Write(entry.key, entry.revision, json.dumps(said).encode(), deletes=not said["ids"])])
            except Conflict:
                continue
            break


async def tasks_of_flow(kv: KeyValueStore, flow_id: UUID) -> list[UUID]:
    entry = (await kv.read([keys.flow(flow_id)])).get(keys.flow(flow_id))
    return [] if entry is None or entry.deleted else [UUID(each) for each in json.loads(entry.data)["ids"]]


class FlowReads:
    def __init__(self, kv: KeyValueStore, cache: TaskCache) -> None:
        self._kv = kv
        self._cache = cache

    async def parents(self, ids: Sequence[UUID]) -> list[Parent]:
        records = await self._records(list(dict.fromkeys(ids)))
        return [_parent(record) for record in records.values()]

    async def after_of(self, task_id: UUID) -> After | None:
        record = (await self._records([task_id])).get(task_id)
        if record is None or record.after is None or not parents_of(record):
            return None
        return After(tuple(parents_of(record)), on_of(record.after), inputs_of(record.after))

    async def feeds(self, task_id: UUID, limit: int) -> Feeds:
        record = (await self._records([task_id])).get(task_id)
        children = await self._records([] if record is None else children_of(record))
        unfinished = [child for child, found in children.items() if is_unfinished(found)]
        ids = dict.fromkeys([*unfinished, *children])
        return Feeds(list(ids)[:limit], len(children), len(unfinished))

    async def flows(self, limit: int, cursor: UUID | None) -> list[FlowSummary]:
        entries = await self._kv.run(lambda: self._kv.under(keys.FLOW))
        by_id = {UUID(entry.key.removeprefix(keys.FLOW)): json.loads(entry.data) for entry in entries}
        found: list[FlowSummary] = []
        for flow_id in sorted(by_id, reverse=True):
            if len(found) == limit:
                break
            if cursor is not None and flow_id >= cursor:
                continue
            records = await self._records([UUID(each) for each in by_id[flow_id]["ids"]])
            if records:  # else a process died before it had stored them
                created = min(instant(record.head["created_at"]) for record in records.values())
                counts = dict(Counter(_standing(record) for record in records.values()))
                found.append(FlowSummary(flow_id, by_id[flow_id]["name"], created, counts))
        return found

    async def flow_graph(self, flow_id: UUID, limit: int) -> list[FlowTask]:
        ids = sorted(await self._kv.run(lambda: tasks_of_flow(self._kv, flow_id)))[:limit]
        return [_flow_task(record) for record in (await self._records(ids)).values()]

    async def blocked(self) -> list[UUID]:
        """The tasks that wait for others."""
        await self._kv.run(self._cache.sync)
        never = micros(NEVER)
        return [UUID(bytes=each.id) for each in self._cache.index.waiting() if each.due >= never]

    async def _records(self, ids: Sequence[UUID]) -> dict[UUID, Record]:
        return await self._kv.run(lambda: read_records(self._kv, list(ids)))


def _parent(record: Record) -> Parent:
    head = record.head
    result = json.loads(record.result)
    completed = head["state"] == TaskState.COMPLETED
    value = json.dumps(result.get("value"), ensure_ascii=False) if completed and isinstance(result, dict) else None
    return Parent(UUID(head["id"]), head["name"], head["state"], not is_unfinished(record), value, head["error"])


def _standing(record: Record) -> str:
    """As `FlowSummary` counts it."""
    state: str = record.head["state"]
    if state == TaskState.PENDING and record.waits:
        return "waiting"
    return "retrying" if state == TaskState.FAILED and is_unfinished(record) else state


def _flow_task(record: Record) -> FlowTask:
    head = record.head
    return FlowTask(
        UUID(head["id"]),
        head["name"],
        head["state"],
        not is_unfinished(record),
        record.waits,
        tuple(parents_of(record)),
        tuple(children_of(record)),
    )
