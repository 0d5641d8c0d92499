"""OpenTelemetry spans from submit to run, where the extra `otel` is installed; nothing at all where it is not.

The trace context travels in the task's row, so a run on another machine is a child of the submit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple
from uuid import UUID

from tasklib.core.outcome import Snooze
from tasklib.engine.current import RunningTask
from tasklib.engine.middleware import Middleware


class _Api(NamedTuple):
    """OpenTelemetry's API."""

    trace: Any
    propagate: Any
    context: Any
    tracer: Any


@cache
def _api() -> _Api | None:
    """Imported at the first submit or run: what only reads, as most commands do, starts the sooner."""
    try:
        trace, propagate, context = (
            import_module(f"opentelemetry.{name}") for name in ("trace", "propagate", "context")
        )
    except ImportError:
        return None
    return _Api(trace, propagate, context, trace.get_tracer("tasklib"))


def _active() -> _Api | None:
    """None where nobody traces. OpenTelemetry's API is often installed by something else: without a provider, and
    outside of a trace that came from elsewhere, there is nothing to tell and nothing to hand on."""
    api = _api()
    if api is None:
        return None
    nobody = (
        isinstance(api.tracer, api.trace.ProxyTracer)
        and _has_no_provider(api.trace)
        and (not api.context.get_current() or api.trace.get_current_span() is api.trace.INVALID_SPAN)
    )
    return None if nobody else api


def _has_no_provider(trace: Any) -> bool:
    """`get_tracer_provider` knows, but looks into the environment each time, which takes longer than validating a call.
    So its own variable is read, as long as it is there."""
    provider = getattr(trace, "_TRACER_PROVIDER", trace)
    if provider is trace:
        return isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    return provider is None


def submitted(name: str, ids: Sequence[UUID]) -> list[str | None]:
    """Makes the span of each submit; returns the contexts to keep in the rows: JSON text, or None if nobody traces."""
    api = _active()
    if api is None:
        return [None] * len(ids)
    return [_submitted(api, name, task_id) for task_id in ids]


def _submitted(api: _Api, name: str, task_id: UUID) -> str | None:
    attributes = {"messaging.system": "tasklib", "messaging.destination.name": name, "tasklib.task_id": str(task_id)}
    with api.tracer.start_as_current_span(f"submit {name}", kind=api.trace.SpanKind.PRODUCER, attributes=attributes):
        carrier: dict[str, str] = {}
        api.propagate.inject(carrier)
    return json.dumps(carrier) if carrier else None


class RunSpan(Middleware):
    """The span of one attempt, a child of its submit's, whose context is given."""

    def __init__(self, context: str) -> None:
        self._context = context

    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        api = _api()
        if api is None:
            yield
            return
        try:
            parent = api.propagate.extract(json.loads(self._context))
        except ValueError:  # edited by hand
            parent = None
        attributes = {"messaging.system": "tasklib", "tasklib.task_id": str(task.id), "tasklib.attempt": task.attempt}
        with api.tracer.start_as_current_span(
            f"run {task.name}",
            context=parent,
            kind=api.trace.SpanKind.CONSUMER,
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
                    span.set_status(api.trace.Status(api.trace.StatusCode.ERROR, f"{type(error).__name__}: {error}"))
                raise
