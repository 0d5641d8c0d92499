"""OpenTelemetry spans from submit to run, where the extra `otel` is installed; nothing at all where it is not.

The trace context travels in the task's row, so a run on another machine is a child of the submit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any
from uuid import UUID

from tasklib.core.outcome import Snooze
from tasklib.engine.current import RunningTask
from tasklib.engine.middleware import Middleware


def _load(module: str) -> Any:
    try:
        return import_module(f"opentelemetry.{module}")
    except ImportError:
        return None


_trace, _propagate, _context = _load("trace"), _load("propagate"), _load("context")
_tracer: Any = None if _trace is None else _trace.get_tracer("tasklib")


def _nobody_traces() -> bool:
    """OpenTelemetry's API is often installed by something else: without a provider, and outside of a trace that came
    from elsewhere, there is nothing to tell and nothing to hand on."""
    return _trace is None or (
        isinstance(_tracer, _trace.ProxyTracer)
        and _has_no_provider()
        and (not _context.get_current() or _trace.get_current_span() is _trace.INVALID_SPAN)
    )


def _has_no_provider() -> bool:
    """`get_tracer_provider` knows, but looks into the environment each time, which takes longer than validating a call.
    So its own variable is read, as long as it is there."""
    provider = getattr(_trace, "_TRACER_PROVIDER", _trace)
    if provider is _trace:
        return isinstance(_trace.get_tracer_provider(), _trace.ProxyTracerProvider)
    return provider is None


def submitted(name: str, ids: Sequence[UUID]) -> list[str | None]:
    """Makes the span of each submit; returns the contexts to keep in the rows: JSON text, or None if nobody traces."""
    if _nobody_traces():
        return [None] * len(ids)
    return [_submitted(name, task_id) for task_id in ids]


def _submitted(name: str, task_id: UUID) -> str | None:
    attributes = {"messaging.system": "tasklib", "messaging.destination.name": name, "tasklib.task_id": str(task_id)}
    with _tracer.start_as_current_span(f"submit {name}", kind=_trace.SpanKind.PRODUCER, attributes=attributes):
        carrier: dict[str, str] = {}
        _propagate.inject(carrier)
    return json.dumps(carrier) if carrier else None


class RunSpan(Middleware):
    """The span of one attempt, a child of its submit's, whose context is given."""

    def __init__(self, context: str) -> None:
        self._context = context

    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        if _tracer is None:
            yield
            return
        try:
            parent = _propagate.extract(json.loads(self._context))
        except ValueError:  # edited by hand
            parent = None
        attributes = {"messaging.system": "tasklib", "tasklib.task_id": str(task.id), "tasklib.attempt": task.attempt}
        with _tracer.start_as_current_span(
            f"run {task.name}",
            context=parent,
            kind=_trace.SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except Snooze:
                span.set_attribute("tasklib.outcome", "snoozed")
                raise
            except BaseException as error:
                span.set_attribute("tasklib.outcome", "failed")
                with suppress(Exception):  # its text may not be had
                    span.record_exception(error)
                    span.set_status(_trace.Status(_trace.StatusCode.ERROR, f"{type(error).__name__}: {error}"))
                raise
