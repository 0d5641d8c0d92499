"""Inserting tasks, on our own connection or on a caller's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

import apsw

from tasklib.core.errors import StoreRefused
from tasklib.core.task import NewTask
from tasklib.stores.sql import upkeep
from tasklib.stores.sqlite.batches import SQL, Target, chunks, rows_of, run_batch
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.looking import now
from tasklib.stores.sqlite.rows import new_row, seconds
from tasklib.stores.sqlite.statements import play
from tasklib.stores.values import Inserted


def insert(target: Target, tasks: Sequence[NewTask], clock_offset: float) -> list[Inserted]:
    """Inside the caller's transaction, or a transaction of its own where `is_one_statement` says so."""
    stored = 0
    if is_one_statement(tasks):
        target.execute(SQL["insert_one"], (*new_row(tasks[0]), seconds(clock_offset)))
        stored = _changes(target)
    else:
        # The tasks of one call are created at one instant; a lone one reads the clock in its own statement.
        created = None if len(tasks) == 1 else now(target, clock_offset)
        for chunk in chunks([new_row(task) for task in tasks]):
            run_batch(target, "insert", (created, seconds(clock_offset)), chunk)
            stored += _changes(target)
    keys = [task.idempotency_key for task in tasks if task.idempotency_key is not None]
    owners = _owners(target, keys) if keys else {}
    if stored < len(tasks):
        _check_all_there(target, [task for task in tasks if task.idempotency_key not in owners])
    return _answers(tasks, owners) if keys else [Inserted(task.id, True) for task in tasks]


def is_one_statement(tasks: Sequence[NewTask]) -> bool:
    return len(tasks) == 1 and tasks[0].idempotency_key is None


def names_due(tasks: Sequence[NewTask]) -> list[str]:
    """Names of which something may be claimable at once. Only the database knows whether an instant has come."""
    return [task.name for task in tasks if not task.delay_seconds]


def _changes(target: Target) -> int:
    """Rows that the last statement stored."""
    return (target if isinstance(target, apsw.Connection) else target.connection).changes()


def _check_all_there(target: Target, tasks: Sequence[NewTask]) -> None:
    """What was there before is well; what is not there after its insert was dropped."""
    ids = {task.id for task in tasks}
    dropped = len(ids - play(target, upkeep.existing(list(ids)), Clock(0.0)).result)
    if dropped:
        raise StoreRefused(f"nothing was stored: a trigger on the table tasks dropped {dropped} of the tasks")


def _owners(target: Target, keys: list[str]) -> dict[str | None, UUID]:
    return {key: UUID(task_id) for key, task_id in rows_of(target, SQL["ids_of_keys"], {"keys": json.dumps(keys)})}


def _answers(tasks: Sequence[NewTask], owners: dict[str | None, UUID]) -> list[Inserted]:
    inserted = []
    answered: set[str] = set()
    for task in tasks:
        key = task.idempotency_key
        if key is None:
            inserted.append(Inserted(task.id, True))
        else:
            # Without the key, a row with this very id was there before, and has another key.
            created = owners.get(key) == task.id and key not in answered
            inserted.append(Inserted(owners.get(key, task.id), created))
            answered.add(key)
    return inserted
