"""Whole records from another queue."""

from __future__ import annotations

from collections.abc import Sequence

from tasklib.core.decide import WriteResult
from tasklib.core.task import Task
from tasklib.stores.nats import keys
from tasklib.stores.nats.claim import read_records, write_of
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.idempotency import id_entry
from tasklib.stores.nats.kv import LARGEST_BATCH, KeyValueStore, Write
from tasklib.stores.nats.record import of_task, to_task

_TASKS_AT_ONCE = LARGEST_BATCH // 3
"""With two keys each, that fills an atomic batch."""


async def restore(kv: KeyValueStore, tasks: Sequence[Task]) -> list[WriteResult]:
    write_results: list[WriteResult] = []
    for start in range(0, len(tasks), _TASKS_AT_ONCE):
        part = tasks[start : start + _TASKS_AT_ONCE]
        write_results += await kv.run(lambda part=part: _restore(kv, part))  # type: ignore[misc]
    return write_results


async def _restore(kv: KeyValueStore, tasks: Sequence[Task]) -> list[WriteResult]:
    """All at once, or one by one where something is there already."""
    try:
        await kv.write([write for task in tasks for write in _writes(kv, task)])
        return [WriteResult.APPLIED] * len(tasks)
    except Conflict:
        if len(tasks) > 1:
            return [write_result for task in tasks for write_result in await _restore(kv, [task])]
    [task] = tasks
    there = (await read_records(kv, [task.id])).get(task.id)
    same = (
        there is not None and (found := to_task(there)).version == task.version and found.updated_at == task.updated_at
    )
    return [WriteResult.DUPLICATE if same else WriteResult.STALE]


def _writes(kv: KeyValueStore, task: Task) -> list[Write]:
    write = write_of(of_task(task))
    kv.check_size(len(write.data), "payload")
    entries = []
    if task.idempotency_key is not None:
        entries.append(keys.idem(task.idempotency_key))
    if task.unique_key is not None:
        entries.append(keys.unique(task.name, task.unique_key))
    return [*(Write(entry, 0, id_entry(task.id)) for entry in entries), write]
