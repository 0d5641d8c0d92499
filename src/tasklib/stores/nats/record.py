"""The record of a task as it lies in the bucket, and the note on its envelope.

A record is one JSON object with the columns' names. Its longer parts stand on lines of their own (inside JSON text
there is never a raw line break), so that a claim or an outcome rewrites the first line and passes the payload on as is.

The note is a message header with what the index of waiting tasks needs; so watchers never receive payloads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from tasklib.core.checks import LONGEST_DELAY_SECONDS
from tasklib.core.decide import HISTORY_LIMIT
from tasklib.core.durations import in_seconds
from tasklib.core.flows import after_json, as_ids
from tasklib.core.task import Claim, NewTask, Task, TaskState, waited_ms
from tasklib.core.unique import Unique
from tasklib.stores.nats.clock import instant, later, micros, written

NOTE = "Tasklib-Note"

_PARTS = (b',"kwargs":', b',"tags":', b',"retry_policy":', b',"history":', b',"result":')
_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_note = json.JSONEncoder(separators=(",", ":")).encode
CLAIMABLE = (TaskState.PENDING.value, TaskState.FAILED.value)


class Note(NamedTuple):
    """What the envelope says. Times are microseconds since 1970."""

    state: str
    name: str
    priority: int
    created: int
    due: int
    no_prefetch: bool
    worker: str | None
    locked: int | None
    completed: int | None
    cancel_requested: bool = False
    """Of a running task."""

    @property
    def claimable(self) -> bool:
        return self.completed is None and self.state in CLAIMABLE

    def is_due(self, earliest: int) -> bool:
        """Whether its time has come for sure, by the earliest time that it can be now. What was never put off is due as
        soon as it is there, whoever's clock it was submitted by."""
        return self.due <= max(self.created, earliest)


class Record:
    """A task on its way from one revision to the next."""

    __slots__ = ("head", "history", "kwargs", "result", "retry_policy", "revision", "tags")

    def __init__(
        self,
        head: dict[str, Any],
        kwargs: bytes,
        tags: bytes,
        retry_policy: bytes,
        history: bytes,
        result: bytes,
        revision: int = 0,
    ) -> None:
        self.head = head
        self.kwargs = kwargs
        self.tags = tags
        self.retry_policy = retry_policy
        self.history = history
        self.result = result
        self.revision = revision

    @property
    def claimable(self) -> bool:
        return self.head["completed_at"] is None and self.head["state"] in CLAIMABLE

    @property
    def waits(self) -> int:
        """How many tasks it still waits for. The record has the set of them in place of their number."""
        waits_for = self.head.get("waits_for")
        return len(waits_for) if isinstance(waits_for, list) else 0

    @property
    def after(self) -> dict[str, Any] | None:
        """What it waits for. None also where somebody wrote something else there."""
        after = self.head.get("after")
        return after if isinstance(after, dict) else None

    @property
    def due_at(self) -> datetime:
        return instant(self.head["next_retry_at"] or self.head["scheduled_at"])

    def is_due(self, earliest: datetime) -> bool:
        """As of its note."""
        return self.due_at <= max(instant(self.head["created_at"]), earliest)

    @property
    def no_prefetch(self) -> bool:
        """Its last allowed attempt, or its latest attempt lost its worker."""
        return self._is_last or self._lost(1)

    @property
    def isolated(self) -> bool:
        """Its latest two attempts lost their workers, or its latest one did and this is the last."""
        return self._lost(1) and (self._is_last or self._lost(2))

    @property
    def _is_last(self) -> bool:
        return bool(0 <= self.head["max_retries"] <= self.head["retry_count"])

    def _lost(self, back: int) -> bool:
        """So many attempts back, the worker was lost."""
        if not self.head["retry_count"] or self.history == b"[]":
            return False
        entries = json.loads(self.history)
        return len(entries) >= back and bool(entries[-back].get("lost"))

    def changed(self, **fields: Any) -> Record:
        head = {**self.head, **fields}
        return Record(head, self.kwargs, self.tags, self.retry_policy, self.history, self.result, self.revision)

    def replaced_by(self, new: Record, rule: Unique) -> Record:
        """With what a newer submit says. What waits for a retry keeps its time."""
        taken = ("priority", "max_retries", "timeout_seconds", "trace", "unique_until", "updated_at")
        head = {**self.head, **{name: new.head[name] for name in taken}, "version": self.head["version"] + 1}
        if head["state"] == TaskState.PENDING:
            due = instant(new.head["scheduled_at"])
            if rule.at_most is not None:
                due = min(due, later(instant(head["created_at"]), in_seconds(rule.at_most)))
            head["scheduled_at"] = written(due)
        return Record(head, new.kwargs, new.tags, new.retry_policy, self.history, self.result, self.revision)

    def append(self, entry: str, ended: str) -> None:
        """One more attempt that did not complete; the first and the latest are kept."""
        entries = json.loads(self.history)
        entries.append({**json.loads(entry), "ended": ended})
        if len(entries) > HISTORY_LIMIT:
            entries = [entries[0], *entries[-HISTORY_LIMIT + 1 :]]
        self.history = _dump(entries).encode()

    def encode(self) -> bytes:
        parts = (self.kwargs, self.tags, self.retry_policy, self.history, self.result)
        lines = [mark + part for mark, part in zip(_PARTS, parts, strict=True)]
        return b"\n".join([_dump(self.head)[:-1].encode(), *lines, b"}"])

    def note(self) -> str:
        head = self.head
        said = (
            head["state"],
            head["name"],
            head["priority"],
            micros(instant(head["created_at"])),
            micros(self.due_at),
            self.no_prefetch,
            head["worker_id"],
            _micros(head["locked_until"]),
            _micros(head["completed_at"]),
        )
        asked = head["cancel_requested_at"] is not None and head["state"] == TaskState.RUNNING
        return _note((*said, True) if asked else said)


def decode(data: bytes, revision: int) -> Record:
    """Also reads a record that somebody wrote by hand, as far as it is one."""
    head, *parts = data.split(b"\n")
    if len(parts) == 6 and all(map(bytes.startswith, parts, _PARTS)):
        texts = [part[len(mark) :] for part, mark in zip(parts, _PARTS, strict=False)]
        return _of(json.loads(head + b"}"), texts, revision)
    return _foreign(data, revision)


def _foreign(data: bytes, revision: int) -> Record:
    whole = json.loads(data)
    texts = [
        _dump(whole.pop(name, default)).encode()
        for name, default in (("kwargs", {}), ("tags", {}), ("retry_policy", None), ("history", []), ("result", None))
    ]
    created = whole.get("created_at") or "1970-01-01T00:00:00Z"
    return _of({**_EMPTY, "scheduled_at": created, "updated_at": created, **whole}, texts, revision)


def _of(head: dict[str, Any], texts: list[bytes], revision: int) -> Record:
    kwargs, tags, retry_policy, history, result = texts
    return Record(head, kwargs, tags, retry_policy, history, result, revision)


_EMPTY: dict[str, Any] = {
    "name": "",
    "state": "",
    "priority": 0,
    "version": 0,
    "created_at": "1970-01-01T00:00:00Z",
    "started_at": None,
    "completed_at": None,
    "next_retry_at": None,
    "error": None,
    "retry_count": 0,
    "max_retries": 3,
    "worker_id": None,
    "locked_until": None,
    "timeout_seconds": None,
    "cancel_requested_at": None,
    "idempotency_key": None,
    "trace": None,
    "args": {},
    "last_worker_id": None,
    "run_ms": None,
    "unique_key": None,
    "unique_until": None,
    "copy_of": None,
    "after": None,
    "flow_id": None,
}


def new_record(task: NewTask, now: datetime) -> Record:
    created = written(now)
    scheduled = created
    if task.run_at is not None:
        scheduled = written(task.run_at)
    elif task.delay_seconds is not None:
        scheduled = written(later(now, min(task.delay_seconds, LONGEST_DELAY_SECONDS)))
    head = {
        "id": str(task.id),
        **_EMPTY,
        "name": task.name,
        "state": TaskState.PENDING.value,
        "priority": task.priority,
        "created_at": created,
        "updated_at": created,
        "scheduled_at": scheduled,
        "max_retries": task.max_retries,
        "timeout_seconds": task.timeout_seconds,
        "idempotency_key": task.idempotency_key,
        "trace": task.trace,
    }
    if task.is_linked:
        head |= {"after": after_column(task), "flow_id": None if task.flow_id is None else str(task.flow_id)}
    if task.unique_rule is not None:
        key, until = task.unique_rule.key, task.unique_rule.until
        # `unique_entry` stays when the key is given up: its entry goes with the task.
        head |= {"unique_key": key, "unique_until": until, "unique_entry": key}
    policy = b"null" if task.retry_policy is None else _line(task.retry_policy)
    return Record(head, _line(task.kwargs), _line(task.tags), policy, b"[]", b"null")


def after_column(task: NewTask) -> dict[str, Any] | None:
    said = after_json(task.after, delay_seconds=task.delay_seconds, run_at=task.run_at, flow_name=task.flow_name)
    return None if said is None else dict(json.loads(said))


def of_task(task: Task) -> Record:
    """A whole record of another queue."""
    values = {field.name: getattr(task, field.name) for field in fields(task) if field.name not in ("fed", "waits")}
    texts = [_dump(values.pop(name)).encode() for name in ("kwargs", "tags", "retry_policy", "history", "result")]
    head = {name: written(value) if isinstance(value, datetime) else value for name, value in values.items()}
    if task.unique_key is not None:
        head["unique_entry"] = task.unique_key
    ids = {name: None if values[name] is None else str(values[name]) for name in ("id", "copy_of", "flow_id")}
    return _of({**head, **ids}, texts, 0)


def _line(text: str) -> bytes:
    """JSON text without line breaks; they can only stand between its parts."""
    return text.replace("\n", " ").encode() if "\n" in text else text.encode()


def line_or_null(text: str | None) -> bytes:
    return b"null" if text is None else _line(text)


def to_task(record: Record) -> Task:
    head = record.head
    return Task(
        id=UUID(head["id"]),
        name=head["name"],
        state=head["state"],
        scheduled_at=instant(head["scheduled_at"]),
        created_at=instant(head["created_at"]),
        updated_at=instant(head["updated_at"]),
        started_at=_instant(head["started_at"]),
        completed_at=_instant(head["completed_at"]),
        next_retry_at=_instant(head["next_retry_at"]),
        args=head["args"],
        kwargs=json.loads(record.kwargs),
        result=json.loads(record.result),
        error=head["error"],
        retry_count=head["retry_count"],
        max_retries=head["max_retries"],
        worker_id=head["worker_id"],
        locked_until=_instant(head["locked_until"]),
        timeout_seconds=head["timeout_seconds"],
        priority=head["priority"],
        tags=json.loads(record.tags),
        cancel_requested_at=_instant(head["cancel_requested_at"]),
        version=head["version"],
        idempotency_key=head["idempotency_key"],
        retry_policy=json.loads(record.retry_policy),
        history=json.loads(record.history),
        trace=head["trace"],
        # Records of version 1 do not have these.
        last_worker_id=head.get("last_worker_id"),
        run_ms=head.get("run_ms"),
        unique_key=head.get("unique_key"),
        unique_until=head.get("unique_until"),
        copy_of=UUID(head["copy_of"]) if head.get("copy_of") else None,
        waits=record.waits,
        after=record.after,
        flow_id=next(iter(as_ids([head.get("flow_id")])), None),
        fed=bool(head.get("feeds")),
    )


def to_claim(record: Record) -> Claim:
    head = record.head
    started_at = instant(head["started_at"])
    return Claim(
        UUID(head["id"]),
        head["name"],
        head["version"],
        head["worker_id"],
        record.kwargs.decode(),
        head["retry_count"],
        head["max_retries"],
        head["timeout_seconds"],
        None if record.retry_policy == b"null" else record.retry_policy.decode(),
        started_at,
        record.tags.decode(),
        head["trace"],
        record.no_prefetch,
        record.isolated,
        waited_ms(head["retry_count"], instant(head["scheduled_at"]), started_at),
        _in_flow(head),
    )


def _in_flow(head: dict[str, Any]) -> str | None:
    """As `Claim.flow` says it."""
    said = {"id": head.get("flow_id"), "after": head.get("after"), "feeds": bool(head.get("feeds"))}
    return _dump({name: value for name, value in said.items() if value}) if any(said.values()) else None


def read_note(headers: Mapping[str, str] | None) -> Note | None:
    """None: nobody of us wrote this."""
    text = headers.get(NOTE) if headers else None
    if text is None:
        return None
    try:
        return Note(*json.loads(text))
    except (ValueError, TypeError):
        return None


def _instant(text: str | None) -> datetime | None:
    return None if text is None else instant(text)


def _micros(text: str | None) -> int | None:
    return None if text is None else micros(instant(text))
