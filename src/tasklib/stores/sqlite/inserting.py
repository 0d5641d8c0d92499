"""Inserting tasks, on our own connection or on a caller's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

from tasklib.core.task import NewTask
from tasklib.stores.sqlite.batches import SQL, Target, chunks, rows_of, run_batch
from tasklib.stores.sqlite.looking import now
from tasklib.stores.sqlite.rows import new_row, seconds
from tasklib.stores.values import Inserted


def insert(target: Target, tasks: Sequence[NewTask], clock_offset: float) -> list[Inserted]:
    """Inside the caller's transaction, or a transaction of its own where `is_one_statement` says so."""
    if is_one_statement(tasks):
        target.execute(SQL["insert_one"], (*new_row(tasks[0]), seconds(clock_offset)))
        return [Inserted(tasks[0].id, True)]
    # The tasks of one call are created at one instant; a lone one reads the clock in its own statement.
    created = None if len(tasks) == 1 else now(target, clock_offset)
    for chunk in chunks([new_row(task) for task in tasks]):
        run_batch(target, "insert", (created, seconds(clock_offset)), chunk)
    keys = [task.idempotency_key for task in tasks if task.idempotency_key is not None]
    if not keys:
        return [Inserted(task.id, True) for task in tasks]
    return _resolved(target, tasks, keys)


def is_one_statement(tasks: Sequence[NewTask]) -> bool:
    return len(tasks) == 1 and tasks[0].idempotency_key is None


def names_due(tasks: Sequence[NewTask]) -> list[str]:
    """Names of which something may be claimable at once. Only the database knows whether an instant has come."""
    return [task.name for task in tasks if not task.delay_seconds]


def _resolved(target: Target, tasks: Sequence[NewTask], keys: list[str]) -> list[Inserted]:
    found = {key: UUID(task_id) for key, task_id in rows_of(target, SQL["ids_of_keys"], {"keys": json.dumps(keys)})}
    inserted = []
    answered: set[str] = set()
    for task in tasks:
        key = task.idempotency_key
        if key is None:
            inserted.append(Inserted(task.id, True))
        else:
            # Without the key, a row with this very id was there before, and has another key.
            created = found.get(key) == task.id and key not in answered
            inserted.append(Inserted(found.get(key, task.id), created))
            answered.add(key)
    return inserted
