"""What a worker says of itself in the log: whom it serves, outages and their end, and handlers that hold it up."""

import asyncio
import logging
import threading

import pytest

from tasklib import Config, TaskWorker, task
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.worker.outage import Reminder
from tests.queues import as_default
from tests.stores.proxy import Proxy
from tests.waiting import eventually_async, pause
from tests.worker.conftest import Serve


def said(caplog: pytest.LogCaptureFixture, words: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if words in record.getMessage()]


async def test_the_first_line_names_the_queue_and_the_types(
    serve: Serve, engine: Engine, registry: Registry, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, logger="tasklib.worker")

    @task(registry=registry)
    def weigh() -> None: ...

    async with serve(concurrency=3) as worker:
        (line,) = await eventually_async(lambda: said(caplog, " serves "))
    text = line.getMessage()
    assert text.startswith(f"worker {worker.worker_id} starts: serves {engine.config.shown_url}, 3 at once")
    assert "weigh" in text


async def test_a_handler_that_blocks_the_event_loop_is_named(
    serve: Serve, registry: Registry, caplog: pytest.LogCaptureFixture
):
    freed = threading.Event()

    class Freeing(logging.Handler):
        """The line itself ends what it is about."""

        def emit(self, record: logging.LogRecord) -> None:
            if "blocked the event loop" in record.getMessage():
                freed.set()

    @task(registry=registry)
    async def stubborn() -> bool:
        return freed.wait(30)

    @task(registry=registry)
    async def patient() -> None:
        await pause(1.5)

    handler, log = Freeing(), logging.getLogger("tasklib.worker")
    log.addHandler(handler)
    try:
        async with serve():
            handle, other = await stubborn.submit_async(), await patient.submit_async()
            assert await handle.result_async(30) is True
            await other.result_async(30)
    finally:
        log.removeHandler(handler)
    (line,) = said(caplog, "blocked the event loop")
    assert line.levelname == "WARNING"
    assert f"task {handle.id} (stubborn) has blocked the event loop for longer than a second" in line.getMessage()


def test_what_lasts_is_repeated_less_and_less_often(monkeypatch: pytest.MonkeyPatch):
    now = 1000.0
    monkeypatch.setattr("tasklib.worker.outage.time.monotonic", lambda: now)
    reminder, said = Reminder(3.0), []
    while now < 1000 + 600:
        if reminder.is_due():
            said.append(now - 1000)
        now += 1
    assert said[:6] == [0, 3, 9, 21, 45, 93]
    assert said[6:] == list(range(153, 600, 60))


async def test_the_end_of_an_outage_is_told(postgres_url: str, caplog: pytest.LogCaptureFixture, registry: Registry):
    caplog.set_level(logging.INFO, logger="tasklib.worker")

    @task(registry=registry)
    def weigh() -> int:
        return 7

    async with Proxy(postgres_url) as proxy:
        config = Config(database_url=proxy.url, heartbeat_seconds=0.2, dead_after_seconds=30, call_timeout_seconds=1)
        async with as_default(Engine(config)) as engine:
            worker = TaskWorker(engine=engine, registry=registry, handle_signals=False, poll_interval_seconds=0.1)
            running = asyncio.create_task(worker.run())
            await eventually_async(lambda: said(caplog, " serves "))
            proxy.freeze()
            await eventually_async(lambda: said(caplog, "cannot claim"), 30)
            await eventually_async(lambda: said(caplog, "heartbeat not confirmed"), 30)
            assert not said(caplog, "connected again")
            proxy.thaw()
            await eventually_async(lambda: len(said(caplog, "connected again to")) == 2, 30)
            assert await (await weigh.submit_async()).result_async(30) == 7
            worker.stop()
            await asyncio.wait_for(running, 20)
    lines = [record.getMessage() for record in said(caplog, "connected again to")]
    assert sum("(heartbeat)" in line for line in lines) == 1
