"""From a call to a NewTask: ids, defaults, limits."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from tasklib.core.durations import in_seconds
from tasklib.core.errors import InvalidOption
from tasklib.core.ids import SEQUENCE_BITS, uuid7s
from tasklib.core.options import SubmitOptions, check_tags
from tasklib.core.registry import TaskType
from tasklib.core.retry import RetryPolicy
from tasklib.core.rows import Rows
from tasklib.core.task import NewTask
from tasklib.engine import tracing
from tasklib.engine.config import Config


class IdSource:
    """UUIDv7s that grow within this process, also inside one millisecond."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._sequence = 0

    def forget_lock(self) -> None:
        """In a forked child: a thread that is not there may have held it."""
        self._lock = threading.Lock()

    def next(self, count: int) -> list[UUID]:
        with self._lock:
            millisecond = time.time_ns() // 1_000_000
            if millisecond > self._last:
                self._last, self._sequence = millisecond, 0
            else:
                self._sequence += 1
            first = (self._last << SEQUENCE_BITS) + self._sequence
            # More than 4096 within one millisecond borrow from the next.
            self._last, self._sequence = divmod(first + count - 1, 1 << SEQUENCE_BITS)
        return uuid7s(range(first, first + count), struct.unpack(f"{count}Q", os.urandom(8 * count)))


_ids = IdSource()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.forget_lock)

NO_OPTIONS = SubmitOptions()


def new_task(
    name: str, payload: str, options: SubmitOptions, *, max_retries: int, timeout: int | None, retry: RetryPolicy | None
) -> NewTask:
    """A task from its payload and what the caller said; the rest are the defaults that apply to it."""
    alike = _alike(options, max_retries, timeout, retry)
    ids = _ids.next(1)
    return NewTask(ids[0], name, payload, *alike, tracing.submitted(name, ids)[0])


def new_tasks(
    name: str,
    payloads: Sequence[str],
    options: SubmitOptions,
    *,
    max_retries: int,
    timeout: int | None,
    retry: RetryPolicy | None,
) -> Sequence[NewTask]:
    """Tasks that differ in their payloads alone."""
    alike = _alike(options, max_retries, timeout, retry)
    if not payloads:
        return []
    ids = _ids.next(len(payloads))
    traces = tracing.submitted(name, ids)
    first = NewTask(ids[0], name, payloads[0], *alike, traces[0])
    if any(traces):
        return Rows(first, id=ids, kwargs=payloads, trace=traces)
    return Rows(first, id=ids, kwargs=payloads)


def _alike(
    options: SubmitOptions, max_retries: int, timeout: int | None, retry: RetryPolicy | None
) -> tuple[int, float | None, datetime | None, int | None, int, str, str | None, str | None]:
    """The fields of a NewTask between its payload and its trace."""
    kept = options.retry or retry
    return (
        max_retries if options.max_retries is None else options.max_retries,
        in_seconds(options.delay_seconds),
        options.run_at,
        timeout if options.timeout_seconds is None else in_seconds(options.timeout_seconds),
        options.priority or 0,
        "{}" if not options.tags else check_tags(options.tags),
        options.idempotency_key,
        None if kept is None else kept.to_json(),
    )


def prepare_call(
    task_type: TaskType, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: SubmitOptions, config: Config
) -> NewTask:
    """A task from a call of a task type. Raises before anything is stored."""
    payload = task_type.encode_call(args, kwargs, config.max_payload_bytes)
    return prepare_payload(task_type, payload, options, config)


def prepare_payload(task_type: TaskType, payload: str, options: SubmitOptions, config: Config) -> NewTask:
    """A task of a type that this process knows, from a payload that fits it, under the type's own options:
    the same through every API."""
    options, max_retries, timeout, retry = _with_defaults(task_type, options, config)
    return new_task(task_type.name, payload, options, max_retries=max_retries, timeout=timeout, retry=retry)


def prepare_calls(
    task_type: TaskType, calls: Iterable[Mapping[str, Any]], options: SubmitOptions, config: Config
) -> Sequence[NewTask]:
    """Checks every call before any is stored."""
    payloads = task_type.encode_calls(calls, config.max_payload_bytes)
    if options.idempotency_key is not None and len(payloads) > 1:
        raise InvalidOption("idempotency_key: one key cannot stand for several calls", field="idempotency_key")
    options, max_retries, timeout, retry = _with_defaults(task_type, options, config)
    return new_tasks(task_type.name, payloads, options, max_retries=max_retries, timeout=timeout, retry=retry)


def _with_defaults(
    task_type: TaskType, options: SubmitOptions, config: Config
) -> tuple[SubmitOptions, int, int | None, RetryPolicy | None]:
    """What the caller said, joined with what the task type says; and for the rest, what the type or else the
    configuration says of retries and timeout."""
    own = task_type.options
    if own.priority or own.tags:
        options = replace(
            options,
            priority=own.priority if options.priority is None else options.priority,
            tags={**own.tags, **(options.tags or {})},
        )
    max_retries = config.max_retries if own.max_retries is None else own.max_retries
    timeout = config.default_task_timeout_seconds if own.timeout_seconds is None else own.timeout_seconds
    return options, max_retries, timeout, own.retry
