"""`tq`: chains, the worker beside the application, and its life."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from tasklib import Config, InvalidConfig, TaskQueue, TaskState, TaskValidationError, tq
from tasklib.api.fluent import FluentQueue
from tasklib.api.sync import run_sync
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.stores.values import ControlChange
from tests.tq.reads import need
from tests.waiting import eventually, eventually_async


class CrawlPayload(BaseModel):
    url: str
    depth: int = 1


class Mail(TypedDict):
    to: str


def test_the_chain_of_the_specification(fluent: FluentQueue):
    crawled: list[str] = []

    async def crawl(payload: dict[str, str]) -> None:
        crawled.append(payload["url"])

    setup = fluent("crawl").set_worker(crawl).set_worker_count(3).set_rate_limit(100).set_timeout(300)
    added = fluent("crawl").add({"url": "https://example.com/1"}).add({"url": "https://example.com/2"}, priority=1)
    assert setup.ids == []
    assert len(set(added.ids)) == 2
    eventually(lambda: len(crawled) == 2)
    eventually(lambda: fluent.stats()["completed"] == 2)
    tasks = [need(fluent.queue, each) for each in added.ids]
    assert [task.timeout_seconds for task in tasks] == [300, 300]
    assert [task.max_attempts for task in tasks] == [3, 3]
    assert run_sync(fluent.queue.engine.controls())["crawl"].default_rate == 100


def test_the_chain_in_camel_case(fluent: FluentQueue):
    done = threading.Event()
    chain = (
        fluent("email")
        .setWorker(lambda payload: done.set())
        .setWorkerCount(1)
        .setRateLimit(5)
        .setTimeout(9)
        .add({"to": "user@example.com"}, {"maxAttempts": 5})
        .add({"to": "user@example.com"}, runAfter="2100-01-01T00:00:00Z", maxAttempts=0)
    )
    assert done.wait(10)
    first, second = (need(fluent.queue, each) for each in chain.ids)
    assert (first.max_attempts, first.timeout_seconds, second.max_attempts) == (5, 9, 0)
    assert second.state == TaskState.PENDING


def test_payload_types_are_checked_when_added_and_arrive_as_they_are(fluent: FluentQueue):
    got: list[Any] = []
    fluent("crawl", CrawlPayload).set_worker(got.append).add(CrawlPayload(url="u", depth=2))
    fluent("mail", Mail).set_worker(got.append).add({"to": "user@example.com"})
    eventually(lambda: len(got) == 2)
    assert CrawlPayload(url="u", depth=2) in got
    assert {"to": "user@example.com"} in got
    wrong: Any = {"wrong": "field"}
    with pytest.raises(TaskValidationError, match="url: Field required") as caught:
        fluent("crawl", CrawlPayload).add(wrong)
    assert caught.value.field == "url"
    with pytest.raises(TaskValidationError, match="url"):
        fluent("crawl").add(wrong)  # its handler in this process says what it takes
    with pytest.raises(TaskValidationError, match="to"):
        fluent("elsewhere", Mail).add(wrong)  # no handler here: the chain says it
    assert "elsewhere" not in fluent.stats()["byType"]


async def test_tasks_can_be_added_without_blocking_a_loop(fluent: FluentQueue):
    got: list[int] = []
    chain = await fluent("number", int).set_worker(got.append).add_async(5, priority=1)
    await eventually_async(lambda: got == [5])
    assert need(fluent.queue, chain.ids[0]).priority == 1
    await fluent.stop_async()
    assert not fluent.queue.is_running()


def test_handlers_added_later_are_served_at_once_and_removed_ones_no_more(engine: Engine):
    fluent = FluentQueue()
    fluent.init(engine=engine, poll_interval=3600)  # only what is told to the worker can wake it
    try:
        first, second = threading.Event(), threading.Event()
        fluent("first").set_worker(lambda payload: first.set()).add(1)
        assert first.wait(20)
        waiting = fluent("second").add(1)  # there before its handler
        fluent("second").set_worker(lambda payload: second.set())
        assert second.wait(20)
        eventually(lambda: need(fluent.queue, waiting.ids[0]).state == TaskState.COMPLETED)

        def served() -> set[str]:
            return {name for worker in run_sync(engine.workers()) for name in worker.names}

        eventually(lambda: served() == {"first", "second"})
        fluent.queue.unregister_handler("first")
        eventually(lambda: served() == {"second"})
        left = fluent("first").add(1)
        done = fluent("second").add(1)
        eventually(lambda: need(fluent.queue, done.ids[0]).state == TaskState.COMPLETED)
        assert need(fluent.queue, left.ids[0]).state == TaskState.PENDING
    finally:
        fluent.stop()


class Gauge:
    """How many run at once, and a gate that holds them."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.running = self.most = self.ended = 0
        self._lock = threading.Lock()

    def __call__(self, payload: object) -> None:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.gate.wait()
        with self._lock:
            self.running -= 1
            self.ended += 1


def test_the_worker_count_bounds_each_type_and_may_change_at_any_time(fluent: FluentQueue):
    several, single = Gauge(), Gauge()
    chain = fluent("several").set_worker(several).set_worker_count(3)
    other = fluent("single").set_worker(single)
    for number in range(8):
        chain.add(number)
        other.add(number)
    try:
        eventually(lambda: (several.running, single.running) == (3, 1))
        chain.set_worker_count(5)
        eventually(lambda: several.running == 5)
        other.set_worker_count(2)
        eventually(lambda: single.running == 2)
        assert (several.most, single.most) == (5, 2)
        chain.set_worker_count(1)
        several.most = 0
    finally:
        several.gate.set()
        single.gate.set()
    eventually(lambda: (several.ended, single.ended) == (8, 8))
    assert several.most <= 1, "fewer at once from then on"


def test_pause_holds_the_worker_and_resume_needs_no_restart(fluent: FluentQueue):
    gauge = Gauge()
    chain = fluent("work").set_worker(gauge).add(1)
    eventually(lambda: gauge.running == 1)
    fluent.pause()
    gauge.gate.set()
    eventually(lambda: fluent.stats()["completed"] == 1)  # what runs goes on
    chain.add(2)
    probe = threading.Event()
    fluent("probe").set_worker(lambda payload: probe.set()).add(1)
    assert not probe.wait(0.3)
    assert fluent.stats()["pending"] == 2
    assert fluent.queue.is_running()
    fluent.resume()
    eventually(lambda: fluent.stats()["completed"] == 3)


def test_stop_drains(engine: Engine):
    fluent = FluentQueue()
    fluent.init(engine=engine, poll_interval=0.05)
    gauge = Gauge()
    chain = fluent("work").set_worker(gauge).set_worker_count(2)
    for number in range(5):
        chain.add(number)
    eventually(lambda: gauge.running == 2)
    stopping = threading.Thread(target=fluent.stop)
    stopping.start()
    assert stopping.is_alive()
    gauge.gate.set()
    stopping.join(20)
    assert not stopping.is_alive()
    assert not fluent.queue.is_running()
    stats = fluent.stats()
    assert (stats["completed"], stats["processing"]) == (gauge.ended, 0), (
        "what ran was finished, nothing is left running"
    )
    assert stats["pending"] == 5 - gauge.ended
    chain.add(5)
    fluent("work").set_worker(gauge)
    eventually(lambda: fluent.stats()["completed"] == 6)
    fluent.stop()


async def test_a_handler_may_add_tasks_and_stop_the_queue(fluent: FluentQueue):
    async def first(payload: object) -> None:
        fluent("second").add(payload)
        fluent.stop()

    fluent("first").set_worker(first).add("x")
    await eventually_async(lambda: not fluent.queue.is_running())
    stats = fluent.stats()["byType"]
    assert (stats["first"]["completed"], stats["second"]["pending"]) == (1, 1)


def test_a_worker_that_breaks_starts_anew(fluent: FluentQueue, monkeypatch: pytest.MonkeyPatch):
    broken = threading.Event()
    real = Engine.store

    async def store(self: Engine) -> Any:
        if threading.current_thread().name == "tasklib-worker" and not broken.is_set():
            broken.set()
            raise RuntimeError("broken")
        return await real(self)

    monkeypatch.setattr(Engine, "store", store)
    monkeypatch.setattr("tasklib.worker.background.FIRST_DELAY_SECONDS", 0.05)
    done = threading.Event()
    fluent("work").set_worker(lambda payload: done.set()).add(1)
    assert broken.wait(10)
    assert done.wait(10)


def test_init_comes_first_or_after_a_stop(memory_url: str):
    fluent = FluentQueue()
    fluent.init(memory_url, enable_worker=False, batchSize=3)
    assert (fluent.queue.batch_size, fluent.queue.enable_worker) == (3, False)
    with pytest.raises(InvalidConfig, match="in use"):
        fluent.init(memory_url)
    kept = fluent.queue
    fluent.stop()
    assert fluent.queue is kept, "what is added late goes where the rest went"
    fluent.init(memory_url, enable_worker=False)
    assert fluent.queue is not kept


def test_without_init_it_is_the_librarys_queue(memory_url: str):
    before = use_engine(Engine(Config(database_url=memory_url)))
    try:
        fluent = FluentQueue()
        assert fluent.queue.engine.config.database_url == memory_url
    finally:
        use_engine(before)


def test_tq_is_one_for_the_process():
    assert isinstance(tq, FluentQueue)


def test_rates_set_by_code_leave_the_operators_alone(fluent: FluentQueue):
    run_sync(fluent.queue.engine.control(ControlChange(name="mail", operator_rate=3)))
    fluent("mail").set_rate_limit(50)
    controls = run_sync(fluent.queue.engine.controls())["mail"]
    assert (controls.rate, controls.operator_rate, controls.default_rate) == (3, 3, 50)


SCRIPT = """
import sys, threading
from tasklib import tq
tq.init(sys.argv[1], poll_interval=0.05)
started = threading.Event()
def work(payload):
    started.set()
    threading.Event().wait(0.3)
    return "finished"
print(tq("work").set_worker(work).add(1).ids[0])
started.wait()
"""


def test_an_application_that_just_ends_lets_its_tasks_finish(sqlite_url: str, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, sqlite_url], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    queue = TaskQueue(sqlite_url, enable_worker=False)
    task = need(queue, UUID(done.stdout.strip()))
    queue.stop()
    assert (task.state, task.result) == (TaskState.COMPLETED, {"value": "finished"}), done.stderr
