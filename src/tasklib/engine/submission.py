"""From a call to a NewTask: ids, defaults, limits."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import Any
from uuid import UUID

from tasklib.core.ids import uuid7
from tasklib.core.options import SubmitOptions, check_tags
from tasklib.core.registry import TaskType
from tasklib.core.retry import RetryPolicy
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

    def next(self) -> UUID:
        with self._lock:
            millisecond = time.time_ns() // 1_000_000
            if millisecond > self._last:
                self._last, self._sequence = millisecond, 0
            else:
                self._sequence += 1
                if self._sequence > 0xFFF:  # more than 4096 within one millisecond: borrow from the next
                    self._last, self._sequence = self._last + 1, 0
            last, sequence = self._last, self._sequence
        return uuid7(last, sequence, int.from_bytes(os.urandom(8), "big"))


_ids = IdSource()
new_id = _ids.next

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.forget_lock)

NO_OPTIONS = SubmitOptions()


def new_task(
    name: str, payload: str, options: SubmitOptions, *, max_retries: int, timeout: int | None, retry: RetryPolicy | None
) -> NewTask:
    """A task from its payload and what the caller said; the rest are the defaults that apply to it."""
    kept = options.retry or retry
    task_id = new_id()
    return NewTask(
        id=task_id,
        name=name,
        kwargs=payload,
        max_retries=max_retries if options.max_retries is None else options.max_retries,
        delay_seconds=options.delay_seconds,
        run_at=options.run_at,
        timeout_seconds=timeout if options.timeout_seconds is None else options.timeout_seconds,
        priority=options.priority or 0,
        tags="{}" if not options.tags else check_tags(options.tags),
        idempotency_key=options.idempotency_key,
        retry_policy=None if kept is None else kept.to_json(),
        trace=tracing.submitted(name, task_id),
    )


def prepare_call(
    task_type: TaskType, args: tuple[Any, ...], kwargs: dict[str, Any], options: SubmitOptions, config: Config
) -> NewTask:
    """A task from a call of a task type. Raises before anything is stored."""
    own = task_type.options
    payload = task_type.encode_call(args, kwargs, config.max_payload_bytes)
    if own.priority or own.tags:
        options = replace(
            options,
            priority=own.priority if options.priority is None else options.priority,
            tags={**own.tags, **(options.tags or {})},
        )
    return new_task(
        task_type.name,
        payload,
        options,
        max_retries=config.max_retries if own.max_retries is None else own.max_retries,
        timeout=config.default_task_timeout_seconds if own.timeout_seconds is None else own.timeout_seconds,
        retry=own.retry,
    )
