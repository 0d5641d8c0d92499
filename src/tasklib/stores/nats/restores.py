"""Whole records from another queue."""

from __future__ import annotations

from collections.abc import Sequence

from tasklib.core.decide import Verdict
from tasklib.core.task import Task
from tasklib.stores.nats import keys
from tasklib.stores.nats.bucket import LARGEST_BATCH, Bucket, Write
from tasklib.stores.nats.claims import read_records, write_of
from tasklib.stores.nats.failures import Conflict
from tasklib.stores.nats.record import of_task, to_task
from tasklib.stores.nats.submits import idem_entry

_TASKS_AT_ONCE = LARGEST_BATCH // 2
"""With a key each, that fills an atomic batch."""


async def restore(bucket: Bucket, tasks: Sequence[Task]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for start in range(0, len(tasks), _TASKS_AT_ONCE):
        part = tasks[start : start + _TASKS_AT_ONCE]
        verdicts += await bucket.run(lambda part=part: _restore(bucket, part))  # type: ignore[misc]
    return verdicts


async def _restore(bucket: Bucket, tasks: Sequence[Task]) -> list[Verdict]:
    """All at once, or one by one where something is there already."""
    try:
        await bucket.write([write for task in tasks for write in _writes(bucket, task)])
        return [Verdict.APPLIED] * len(tasks)
    except Conflict:
        if len(tasks) > 1:
            return [verdict for task in tasks for verdict in await _restore(bucket, [task])]
    [task] = tasks
    there = (await read_records(bucket, [task.id])).get(task.id)
    same = (
        there is not None and (found := to_task(there)).version == task.version and found.updated_at == task.updated_at
    )
    return [Verdict.ALREADY if same else Verdict.LOST]


def _writes(bucket: Bucket, task: Task) -> list[Write]:
    write = write_of(of_task(task))
    bucket.check_size(len(write.data), "payload")
    key = task.idempotency_key
    return [write] if key is None else [Write(keys.idem(key), 0, idem_entry(task.id)), write]
