"""In which task a log record was made: three fields for every handler, in every executor."""

import asyncio
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tasklib import Config, TaskLogFilter, task
from tasklib.cli.logs import JsonFormatter, TextFormatter
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.testing import QueueForTests, drain_async
from tests.queues import as_default
from tests.worker.middleware_app import NOTES, logs, tells

log = logging.getLogger("shop")
FORMAT = "%(task_name)s %(task_attempt)s %(task_id)s %(message)s"


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.addFilter(TaskLogFilter())
        self.lines: list[str] = []
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter(FORMAT).format(record))
        self.records.append(record)


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler = Kept()
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)


def test_a_record_names_the_task_it_was_made_in(tasklib_queue: QueueForTests, kept: Kept):
    registry = Registry()

    @task(registry=registry, max_retries=1)
    def threaded() -> None:
        log.warning("in a thread")
        raise LookupError

    @task(registry=registry)
    async def native() -> None:
        log.warning("on the loop")
        await asyncio.gather(asyncio.create_task(helper()), asyncio.to_thread(log.warning, "in a thread of its own"))

    async def helper() -> None:
        log.warning("in a task of its own")

    first, second = threaded.submit(), native.submit()
    tasklib_queue.drain(registry=registry)
    tasklib_queue.advance(3600)
    tasklib_queue.drain(registry=registry)
    log.warning("outside")
    assert sorted(kept.lines) == sorted(
        [
            f"threaded 1 {first.id} in a thread",
            f"threaded 2 {first.id} in a thread",
            f"native 1 {second.id} on the loop",
            f"native 1 {second.id} in a task of its own",
            f"native 1 {second.id} in a thread of its own",
            "None None None outside",
        ]
    )


def test_inline_too(tasklib_queue: QueueForTests, kept: Kept):
    registry = Registry()

    @task(registry=registry)
    def inside() -> None:
        log.warning("here")

    with tasklib_queue.inline(registry=registry):
        handle = inside.submit()
    log.warning("outside")
    assert kept.lines == [f"inside 1 {handle.id} here", "None None None outside"]


async def test_in_a_child_process(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(NOTES, str(tmp_path / "notes"))
    async with as_default(Engine(Config(database_url=sqlite_url))) as engine:
        handle = await logs.submit_async()
        await drain_async(engine, names=["logs"])
        await handle.result_async(5)
    assert (tmp_path / "notes").read_text() == f"log logs 1 {handle.id} said inside\n"


async def test_what_a_child_process_says_is_handled_as_the_workers_own_words(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
):
    """To the last word before it is killed."""
    caplog.set_level(logging.INFO)
    async with as_default(Engine(Config(database_url=sqlite_url))) as engine:
        handle = await tells.submit_async()
        await drain_async(engine, names=["tells"])
        assert "SIGKILL" in str((await handle.get_async()).error)
    packed, label = (record for record in caplog.records if record.name == "shop.orders")
    fields = [
        [getattr(record, name) for name in ("task_id", "task_name", "task_attempt")] for record in (packed, label)
    ]
    assert fields == [[str(handle.id), "tells", 1]] * 2
    assert (packed.getMessage(), packed.levelname, vars(packed)["customer"]) == ("packed 2 of 3", "INFO", "ada")
    assert (packed.funcName, packed.process != os.getpid()) == ("tells", True)
    assert TextFormatter().format(label).splitlines()[-1] == "    LookupError: no label"


def test_what_a_record_has_of_its_own_is_kept(tasklib_queue: QueueForTests, kept: Kept):
    registry = Registry()

    @task(registry=registry)
    def inside() -> None:
        log.warning("mine", extra={"task_id": "of another queue"})

    inside.submit()
    tasklib_queue.drain(registry=registry)
    assert kept.lines == ["inside 1 of another queue mine"]


def test_the_json_formatter_shows_the_fields_where_there_are_any(tasklib_queue: QueueForTests, kept: Kept):
    registry = Registry()

    @task(registry=registry)
    def inside() -> None:
        log.warning("here")

    handle = inside.submit()
    tasklib_queue.drain(registry=registry)
    log.warning("outside")
    here, outside = (json.loads(JsonFormatter().format(record)) for record in kept.records)
    assert (UUID(here["task_id"]), here["task_name"], here["task_attempt"]) == (handle.id, "inside", 1)
    assert not [name for name in outside if name.startswith("task_")]
