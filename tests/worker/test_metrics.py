"""A worker's own metrics: what it counts, and who is answered."""

import asyncio
import http.client
import re
from datetime import timedelta
from pathlib import Path

import pytest

from tasklib import Config, Fail, RetryPolicy, TaskWorker, task
from tasklib.core.errors import InvalidConfig
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.engine.listeners import flush
from tasklib.engine.submission import Call
from tasklib.testing import drain_async
from tasklib.worker.metrics import MetricsPort, WorkerMetrics
from tests.queues import as_default
from tests.server.test_live import samples


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()
    finally:
        connection.close()


async def test_attempts_run_times_waits_and_submits(backend_url: str, registry: Registry):
    metrics = WorkerMetrics()
    config = Config(database_url=backend_url, middleware=[metrics])

    @task(registry=registry)
    async def ship(order: int) -> None:
        if order == 1:
            await label.submit_async()

    @task(registry=registry, max_retries=1, retry=RetryPolicy.AT_ONCE)
    def label() -> None:
        raise ValueError

    @task(registry=registry)
    def weigh() -> None:
        raise Fail("too heavy")

    async with as_default(Engine(config)) as engine:

        async def submit(name: str, **arguments: object) -> None:
            await engine.submit(Call(name, arguments, task_type=registry.get(name)))

        await submit("ship", order=1)
        await submit("weigh")
        engine.advance(timedelta(seconds=40))
        await submit("ship", order=2)
        await drain_async(engine, registry=registry)
        await flush()
        worker = TaskWorker(engine=engine, registry=registry, concurrency=3)
        port = MetricsPort("127.0.0.1", 0, lambda: metrics.lines(worker))
        status, kind, text = await asyncio.to_thread(ask, port.port, "/metrics?x=1")
        elsewhere = await asyncio.to_thread(ask, port.port, "/")
        posted = await asyncio.to_thread(ask, port.port, "/metrics", "POST")
        with pytest.raises(InvalidConfig, match=f"metrics_port: cannot listen on 127.0.0.1:{port.port}: Address alr"):
            MetricsPort("127.0.0.1", port.port, list)
        port.close()
    assert (status, kind.split(";")[0], elsewhere[0], posted[0]) == (200, "text/plain", 404, 501)
    found = samples(text)
    manual = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()
    assert {line.split()[2] for line in text.splitlines() if "# TYPE" in line} <= set(re.findall(r"`(\w+)`", manual))
    assert found['tasklib_worker_attempts_total{type="ship",outcome="completed"}'] == 2
    assert found['tasklib_worker_attempts_total{type="weigh",outcome="failed"}'] == 1
    assert found['tasklib_worker_attempts_total{type="label",outcome="retried"}'] == 1
    assert found['tasklib_worker_attempts_total{type="label",outcome="failed"}'] == 1
    assert found['tasklib_worker_handler_duration_seconds_count{type="label"}'] == 2
    waits = "tasklib_worker_wait_seconds"
    assert found[f'{waits}_count{{type="label"}}'] == 1, "of first attempts"
    assert (found[f'{waits}_bucket{{type="ship",le="30"}}'], found[f'{waits}_bucket{{type="ship",le="60"}}']) == (1, 2)
    assert 40 <= found[f'{waits}_sum{{type="weigh"}}'] < 70
    submits = {name: found[f'tasklib_worker_submits_total{{type="{name}"}}'] for name in ("ship", "weigh", "label")}
    assert submits == {"ship": 2, "weigh": 1, "label": 1}
    assert (found["tasklib_worker_slots"], found["tasklib_worker_slots_used"]) == (3, 0)
