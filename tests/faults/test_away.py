"""A database that is away: an application is told soon, and a worker says why it waits."""

import asyncio
import logging
import time
from pathlib import Path

import apsw
import httpx
import pytest

from tasklib import Config, StoreBusy, StoreUnavailable, TaskWorker, task
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app
from tasklib.stores.values import Filter
from tests.queues import as_default
from tests.waiting import eventually_async

AWAY = ["postgresql://127.0.0.1:1/shop", "nats://127.0.0.1:1"]
SOON = 10.0
"""Far less than the 30 seconds of a worker's call, on a slow machine."""

registry = Registry()


@task(registry=registry)
def double(number: int) -> int:
    return number * 2


def test_an_application_has_five_seconds_unless_it_says_otherwise():
    assert Config(database_url="memory://").submit_timeout_seconds == 5
    assert Engine(Config(database_url="memory://")).call_timeout == 5


@pytest.mark.parametrize("url", AWAY)
async def test_submits_and_reads_come_back_soon(url: str):
    engine = Engine(Config(database_url=url, submit_timeout_seconds=0.5))
    async with as_default(engine):
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await double.submit_async(1)
        with pytest.raises(StoreUnavailable):
            await engine.page(Filter(), limit=1)
        assert time.monotonic() - begun < SOON


@pytest.mark.parametrize("url", AWAY)
async def test_rest_says_when_to_try_again(url: str):
    engine = Engine(Config(database_url=url, submit_timeout_seconds=0.5))
    app = create_app(engine, settings=ServerSettings(authenticate=False))
    begun = time.monotonic()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
        answer = await client.post("/api/tasks", json={"type": "x", "payload": {}})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert time.monotonic() - begun < SOON


async def test_a_locked_file_is_told_soon(sqlite_url: str, tmp_path: Path):
    engine = Engine(Config(database_url=sqlite_url, submit_timeout_seconds=0.3))
    async with as_default(engine):
        await double.submit_async(1)
        other = apsw.Connection(f"{tmp_path}/tasks.db")
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        try:
            with pytest.raises(StoreBusy):
                await double.submit_async(2)
        finally:
            other.close()
        assert time.monotonic() - begun < SOON


async def test_a_worker_says_why_at_its_first_failure(caplog: pytest.LogCaptureFixture):
    worker = TaskWorker(Config(database_url=AWAY[0]), registry=registry, handle_signals=False)
    with caplog.at_level(logging.WARNING, "tasklib"):
        running = asyncio.create_task(worker.run())
        await eventually_async(lambda: "cannot connect, and will try for 30 s" in caplog.text, timeout=SOON)
        assert "127.0.0.1" in caplog.text
        worker.stop()
        await running


async def test_the_log_names_the_queue_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.INFO, "tasklib"):
        async with as_default(Engine(Config(database_url="sqlite:///here.db"))):
            await double.submit_async(1)
            double.submit(2)
    said = [record.getMessage() for record in caplog.records if record.name == "tasklib"]
    assert said == [f"made the queue {tmp_path}/here.db", f"using the queue {tmp_path}/here.db"]
