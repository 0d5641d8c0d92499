"""Spans from submit to run: the context travels in the row."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tasklib import task
from tasklib.core.registry import Registry
from tasklib.engine import tracing
from tasklib.engine.engine import Engine
from tasklib.testing import drain_async


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    api = tracing._api()
    assert api is not None
    monkeypatch.setattr(tracing, "_api", lambda: api._replace(tracer=provider.get_tracer("tasklib")))
    yield exporter
    provider.shutdown()


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_run_is_the_child_of_its_submit(
    engine: Engine, registry: Registry, spans: InMemorySpanExporter, kind: str
):
    inside = []

    @task(registry=registry, name="traced", max_retries=0)
    def threaded() -> None:
        inside.append(trace.get_current_span().get_span_context().trace_id)
        raise RuntimeError("seen in the span")

    native = Registry()

    @task(registry=native, name="traced", max_retries=0)
    async def in_loop() -> None:
        inside.append(trace.get_current_span().get_span_context().trace_id)
        raise RuntimeError("seen in the span")

    if kind == "def":
        await threaded.submit_async()
    else:
        await in_loop.submit_async()
    await drain_async(engine, registry=registry if kind == "def" else native)
    submit, run = sorted(spans.get_finished_spans(), key=lambda span: span.start_time or 0)
    assert (submit.name, run.name) == ("submit traced", "run traced")
    assert submit.context is not None
    assert run.parent is not None
    assert run.parent.span_id == submit.context.span_id
    assert inside == [submit.context.trace_id]
    assert run.status.status_code is trace.StatusCode.ERROR
    assert "seen in the span" in (run.status.description or "")


async def test_each_call_of_many_has_its_own_span(engine: Engine, registry: Registry, spans: InMemorySpanExporter):
    @task(registry=registry)
    def traced(number: int) -> None: ...

    ids = await traced.submit_many_async({"number": number} for number in range(3))
    kept = [(await engine.get_or_raise(task_id)).trace or "" for task_id in ids]
    made = [span.context.span_id for span in spans.get_finished_spans() if span.context is not None]
    assert [f"{span_id:016x}" in text for span_id, text in zip(made, kept, strict=True)] == [True] * 3


async def test_nothing_is_stored_when_nobody_traces(engine: Engine, registry: Registry):
    @task(registry=registry)
    def plain() -> None: ...

    handle = await plain.submit_async()
    assert (await engine.get_or_raise(handle.id)).trace is None
