"""OpenTelemetry spans from submit to run, where the extra `otel` is installed; nothing at all where it is not.

The trace context travels in the task's row, so a run on another machine is a child of the submit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from uuid import UUID

from tasklib.core.outcome import Completed, Failed, Outcome


def _load(module: str) -> Any:
    try:
        return import_module(f"opentelemetry.{module}")
    except ImportError:
        return None


_trace, _propagate, _context = _load("trace"), _load("propagate"), _load("context")
_tracer: Any = None if _trace is None else _trace.get_tracer("tasklib")


class RunSpan:
    """The span of one attempt."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def ended(self, outcome: Outcome) -> Outcome:
        """Notes what the attempt came to, and hands it on."""
        if self._span is not None and not isinstance(outcome, Completed):
            self._span.set_attribute("tasklib.outcome", type(outcome).__name__.lower())
            if isinstance(outcome, Failed):
                self._span.set_status(_trace.Status(_trace.StatusCode.ERROR, outcome.error.rsplit("\n", 1)[-1]))
        return outcome


_NO_SPAN = RunSpan(None)


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


@contextmanager
def run_span(name: str, task_id: UUID | str, attempt: int, context: str | None) -> Iterator[RunSpan]:
    """The span of a run, a child of its submit."""
    if _tracer is None or context is None:
        yield _NO_SPAN
        return
    try:
        parent = _propagate.extract(json.loads(context))
    except ValueError:  # edited by hand
        parent = None
    attributes = {"messaging.system": "tasklib", "tasklib.task_id": str(task_id), "tasklib.attempt": attempt}
    with _tracer.start_as_current_span(
        f"run {name}", context=parent, kind=_trace.SpanKind.CONSUMER, attributes=attributes
    ) as span:
        yield RunSpan(span)
