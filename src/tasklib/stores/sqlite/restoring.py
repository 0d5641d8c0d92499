"""Whole records from another queue."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import apsw

from tasklib.core.decide import UNTIMED, Verdict
from tasklib.core.lifecycle import STATE_OF, TERMINAL
from tasklib.core.task import Task
from tasklib.stores.sqlite.batches import SQL
from tasklib.stores.sqlite.rows import written, written_or_none
from tasklib.stores.sqlite.settling import add_counts

_FINISHED = {STATE_OF[phase] for phase in TERMINAL}


def restore(connection: apsw.Connection, tasks: Sequence[Task]) -> list[Verdict]:
    verdicts = []
    counts: Counter[tuple[str, str, str]] = Counter()
    for task in tasks:
        verdict = _restore(connection, task)
        verdicts.append(verdict)
        if verdict is Verdict.APPLIED and task.completed_at is not None and task.state in _FINISHED:
            counts[f"{written(task.completed_at)[:17]}00.000Z", task.name, task.state] += 1
    add_counts(connection, [(*cell, UNTIMED, count, 0) for cell, count in counts.items()])
    return verdicts


def _restore(connection: apsw.Connection, task: Task) -> Verdict:
    before = connection.total_changes()
    connection.execute(SQL["restore"], _row(task))
    if connection.total_changes() != before:
        return Verdict.APPLIED
    there = connection.execute(SQL["restored"], {"id": str(task.id)}).get
    same = there is not None and json.loads(there) == [task.version, written(task.updated_at)]
    return Verdict.ALREADY if same else Verdict.LOST


def _row(task: Task) -> tuple[Any, ...]:
    """In the order of `task_columns`."""
    return (
        str(task.id),
        task.name,
        task.state,
        written(task.scheduled_at),
        written(task.created_at),
        written(task.updated_at),
        written_or_none(task.started_at),
        written_or_none(task.completed_at),
        written_or_none(task.next_retry_at),
        _json(task.args),
        _json(task.kwargs),
        None if task.result is None else _json(task.result),
        task.error,
        task.retry_count,
        task.max_retries,
        task.worker_id,
        written_or_none(task.locked_until),
        task.timeout_seconds,
        task.priority,
        _json(task.tags),
        written_or_none(task.cancel_requested_at),
        task.version,
        task.idempotency_key,
        None if task.retry_policy is None else _json(task.retry_policy),
        _json(task.history),
        task.trace,
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
