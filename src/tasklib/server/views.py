"""From records of the queue to the JSON of the API, with secrets masked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from tasklib.core import codec
from tasklib.core.errors import InvalidInput
from tasklib.core.flows import NEVER, as_ids, parent_ids
from tasklib.core.outputs import masked_place
from tasklib.core.redact import mask_text, redact
from tasklib.core.task import Task, last_line
from tasklib.engine.diagnose import Reason, WorkerState, is_live, worker_state
from tasklib.engine.linked import Linked, Links
from tasklib.server.control_schemas import ControlView
from tasklib.server.problems import shown_status
from tasklib.server.schemas import (
    AfterView,
    Attempt,
    AuditView,
    Counts,
    LargeField,
    LinkedTask,
    LinkedTasks,
    ListedTask,
    Stats,
    TaskDetail,
    TaskView,
    TypeCounts,
    WaitingReason,
    WorkerDetail,
    WorkerView,
)
from tasklib.stores.values import AuditEntry, Controls, NameStats, WorkerInfo

Redact = Callable[[Any], Any]

PREVIEW_LENGTH = 200
"""Characters of a payload, result or error that a list shows."""
MASKED_LENGTH = 10_000
"""Characters of one text that are searched for secrets before it is cut for a list: no secret is so long."""


def task_view(task: Task, redact: Redact) -> TaskView:
    return TaskView(**_fields(task, redact))


def listed_view(task: Task, redact: Redact, whole: Collection[LargeField]) -> ListedTask:
    """For a list: what is large is cut, unless asked for. It is masked first: half a secret would not be known."""
    texts = {
        LargeField.PAYLOAD: to_json(task.kwargs).decode(),
        LargeField.RESULT: "" if task.result is None else to_json(_unwrapped(task.result)).decode(),
        LargeField.ERROR: task.error or "",
    }
    cut = [name for name, text in texts.items() if len(text) > PREVIEW_LENGTH and name not in whole]
    kwargs = _shortened(task.kwargs) if LargeField.PAYLOAD in cut else task.kwargs
    result = _shortened(task.result) if LargeField.RESULT in cut else task.result
    fields = _fields(replace(task, kwargs=kwargs, result=result), redact)
    for name in cut:
        text = fields[name] if name is LargeField.ERROR else to_json(fields[name]).decode()
        fields |= {name: None, f"{name}_preview": text[:PREVIEW_LENGTH]}
    for name, text in texts.items():
        fields[f"{name}_bytes"] = len(text.encode())
    if task.error is not None:
        fields["error_line"] = mask_text(last_line(task.error))[:PREVIEW_LENGTH]
    if LargeField.HISTORY not in whole:
        fields["history"] = fields["history"][-1:]
        for entry in fields["history"]:
            entry.error = entry.error and entry.error[:PREVIEW_LENGTH]
    return ListedTask(**fields)


def _shortened(value: Any) -> Any:
    """With its long texts cut, far behind what a preview shows of them: to mask megabytes takes long."""
    if isinstance(value, str):
        return value[:MASKED_LENGTH]
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return {key: _shortened(item) for key, item in value.items()} if isinstance(value, dict) else value


def detail_view(task: Task, redact: Redact, reasons: Iterable[Reason], linked: Linked) -> TaskDetail:
    waiting_for = [WaitingReason(cause=each.cause, text=mask_text(each.text), until=each.until) for each in reasons]
    parents, feeds = (_links(each) for each in linked)
    return TaskDetail(**_fields(task, redact), waiting_for=waiting_for, parents=parents, feeds=feeds)


def _links(links: Links) -> LinkedTasks:
    tasks = [LinkedTask(id=each.id, type=each.name, status=shown_status(each.state)) for each in links.tasks]
    return LinkedTasks(tasks=tasks, total=links.total, unfinished=links.unfinished)


def _after(said: Mapping[str, Any] | None) -> AfterView | None:
    """A row may have been edited by hand: what is not of its kind is left out."""
    if said is None or "parents" not in said:
        return None
    parents, inputs = parent_ids(said), said.get("inputs")
    delay, run_at = said.get("delay"), said.get("runAt")
    return AfterView(
        on="end" if said.get("on") == "end" else "success",
        parents=said["parents"] if parents is None else list(parents),
        inputs={masked_place(path): ids[0] for path, each in _items(inputs) if (ids := as_ids([each]))},
        delay=delay if isinstance(delay, int | float) else None,
        run_at=run_at if isinstance(run_at, str) else None,
        cut_by=next(iter(as_ids([said.get("cutBy")])), None),
    )


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ()


def _fields(task: Task, redact: Redact) -> dict[str, Any]:
    return {
        "id": task.id,
        "type": task.name,
        "payload": redact(task.kwargs),
        "status": shown_status(task.state),
        "attempts": task.attempts,
        "max_attempts": task.max_attempts,
        "last_attempt_at": task.started_at,
        "next_retry_at": task.next_retry_at,
        "result": _unwrapped(redact(task.result)),
        "error": None if task.error is None else mask_text(task.error),
        "run_after": None if task.scheduled_at in (task.created_at, NEVER) else task.scheduled_at,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "completed_at": task.completed_at,
        "worker_id": task.worker_id,
        "last_worker_id": task.last_worker_id,
        "run_ms": task.run_ms,
        "locked_until": task.locked_until,
        "timeout_seconds": task.timeout_seconds,
        "priority": task.priority,
        "tags": redact(task.tags),
        "cancel_requested_at": task.cancel_requested_at,
        "version": task.version,
        "idempotency_key": task.idempotency_key,
        "unique_key": task.unique_key,
        "copy_of": task.copy_of,
        "waits": task.waits,
        "after": _after(task.after),
        "flow_id": task.flow_id,
        "history": [_attempt(entry) for entry in task.history],
    }


def stats_view(stats: Mapping[str, NameStats], workers: Iterable[WorkerInfo], dead_after: float) -> Stats:
    handled = names_handled(workers, dead_after)
    by_type = {
        name: TypeCounts(
            **counts_of(each).model_dump(), oldest_due_seconds=each.oldest_due_seconds, handled=name in handled
        )
        for name, each in stats.items()
    }
    totals = {field: sum(getattr(each, field) for each in by_type.values()) for field in Counts.model_fields}
    return Stats(**totals, by_type=by_type)


def counts_of(stats: NameStats) -> Counts:
    return Counts(
        pending=stats.pending,
        processing=stats.running,
        completed=stats.completed,
        failed=stats.failed + stats.waiting,
        cancelled=stats.cancelled,
        waiting=stats.waiting,
    )


def names_handled(workers: Iterable[WorkerInfo], dead_after: float) -> set[str]:
    return {name for worker in workers if is_live(worker, dead_after) for name in worker.names}


def worker_view(worker: WorkerInfo, dead_after: float) -> WorkerView:
    state = worker_state(worker, dead_after)
    return WorkerView(
        id=worker.id,
        hostname=worker.hostname,
        pid=worker.pid,
        version=worker.version,
        types=sorted(worker.names),
        queues=sorted({worker.queue_of(name) for name in worker.names}),
        concurrency=worker.concurrency,
        running=worker.running if state in (WorkerState.LIVE, WorkerState.STOPPING) else 0,
        started_at=worker.started_at,
        seen_at=worker.seen_at,
        stopped_at=worker.stopped_at,
        seconds_since_seen=worker.seconds_since_seen,
        state=state,
        live=state is WorkerState.LIVE,
        drain_requested_at=None if worker.drain is None else worker.drain.at,
        drain_requested_by=None if worker.drain is None else worker.drain.by,
    )


def worker_detail(worker: WorkerInfo, workers: Iterable[WorkerInfo], dead_after: float) -> WorkerDetail:
    ended = [
        each
        for each in workers
        if _label(each) == _label(worker)
        and worker_state(each, dead_after) in (WorkerState.STOPPED, WorkerState.LOST)
        and (each.stopped_at or each.seen_at) <= worker.started_at
    ]
    earlier = sorted(ended, key=lambda each: each.started_at, reverse=True)
    return WorkerDetail(
        **dict(worker_view(worker, dead_after)), earlier=[worker_view(each, dead_after) for each in earlier]
    )


def _label(worker: WorkerInfo) -> str:
    """What stays from one start to the next: the configured name, else the host. The end of an id is of one start."""
    label = worker.id.rpartition("-")[0]
    return worker.hostname if label in ("", f"{worker.hostname}-{worker.pid}") else label


def control_fields(controls: Controls) -> dict[str, Any]:
    return {
        "paused": controls.paused,
        "rate_limit": controls.rate,
        "operator_rate_limit": controls.operator_rate,
        "default_rate_limit": controls.default_rate,
        "concurrency": controls.concurrency,
        "paused_by": controls.paused_by,
        "paused_at": controls.paused_at,
    }


def control_view(controls: Controls) -> ControlView:
    return ControlView(**control_fields(controls))


def audit_view(entry: AuditEntry) -> AuditView:
    try:
        detail = codec.decode(entry.detail)
    except InvalidInput:
        detail = entry.detail
    return AuditView(
        at=entry.at,
        actor=entry.actor,
        action=entry.action,
        task_id=entry.task_id,
        type=entry.name,
        detail=redact(detail),
        bulk_id=entry.bulk_id,
        done=entry.done,
    )


def _attempt(entry: Any) -> Attempt:
    """A row may have been edited by hand: what is not of its kind is left out."""
    if not isinstance(entry, dict):
        return Attempt()
    fields: dict[str, Any] = {
        name: mask_text(value)
        for name in ("worker", "started", "ended", "error", "type")
        if isinstance(value := entry.get(name), str)
    }
    fields |= {name: value for name in ("attempt", "run_ms") if isinstance(value := entry.get(name), int)}
    fields |= {name: value for name in ("snoozed",) if isinstance(value := entry.get(name), int | float)}
    return Attempt(lost=entry.get("lost") is True, **fields)


def _unwrapped(result: Any) -> Any:
    return result.get("value") if isinstance(result, dict) and set(result) == {"value"} else result
