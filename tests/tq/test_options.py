"""Options of a task and settings of a queue, in both spellings, and what is refused."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

import tasklib
from tasklib import (
    Config,
    InvalidConfig,
    InvalidInput,
    InvalidOption,
    InvalidValue,
    TaskNotFound,
    TaskQueue,
)
from tasklib.api.sync import run_sync
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tests.tq.reads import need

LATER = 3600.0


class CrawlPayload(BaseModel):
    url: str
    depth: int = 1


def test_options_in_both_spellings(queue: TaskQueue):
    at = datetime(2100, 1, 1, tzinfo=UTC)
    tags = {"team": "search"}
    snake = queue.enqueue(
        "test", 1, max_attempts=5, run_after=at, priority=3, tags=tags, timeout_seconds=9, idempotency_key="one"
    )
    camel = queue.enqueue(
        "test",
        2,
        {"maxAttempts": 5, "runAfter": "2100-01-01T00:00:00Z", "priority": 3, "tags": tags, "timeoutSeconds": 9},
        idempotencyKey="two",
    )
    for task_id, key in ((snake, "one"), (camel, "two")):
        task = need(queue, task_id)
        assert (task.max_attempts, task.scheduled_at, task.priority, task.tags) == (5, at, 3, tags)
        assert (task.timeout_seconds, task.idempotency_key) == (9, key)
    assert queue.enqueue("test", 3, idempotency_key="one") == snake
    assert need(queue, queue.enqueue("test", 4, {"maxAttempts": 5}, max_attempts=6, priority=None)).max_attempts == 6


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_attempts": -1}, "max_attempts"),
        ({"maxAttempts": 2.5}, "max_attempts"),
        ({"max_attempts": True}, "max_attempts"),
        ({"max_attempts": 2**31}, "max_attempts"),
        ({"run_after": datetime(2030, 1, 1)}, "run_after"),  # noqa: DTZ001
        ({"runAfter": "2030-01-01T00:00:00"}, "run_after"),
        ({"runAfter": "tomorrow"}, "run_after"),
        ({"run_after": 5}, "run_after"),
        ({"priority": "high"}, "priority"),
        ({"priority": 2**31}, "priority"),
        ({"tags": ["a"]}, "tags"),
        ({"tags": {"a": {1}}}, "tags.a"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"retries": 3}, "retries"),
        ({"maxAttempts": 1, "max_attempts": 1}, "max_attempts"),
        ([("max_attempts", 1)], "options"),
    ],
    ids=str,
)
def test_bad_options_are_refused_by_name(local_queue: TaskQueue, options: Any, field: str):
    with pytest.raises(InvalidInput) as caught:
        local_queue.enqueue("test", {}, options)
    assert caught.value.field == field
    assert field in str(caught.value)
    assert local_queue.stats()["pending"] == 0


@pytest.mark.parametrize(
    "payload",
    [{1: "a"}, {"a": float("nan")}, object(), {"a": b"x"}, "\0", CrawlPayload(url="u")],
    ids=["key", "nan", "object", "bytes", "nul", "model"],
)
def test_payloads_that_are_no_json_are_refused(local_queue: TaskQueue, payload: Any):
    with pytest.raises(InvalidValue, match="payload"):
        local_queue.enqueue("test", payload)
    local_queue.register_handler("test", abs)
    with pytest.raises(InvalidValue, match="payload"):
        local_queue.enqueue("test", payload)


def test_the_size_limit_of_payloads_is_a_setting(memory_url: str):
    engine = Engine(Config(database_url=memory_url, max_payload_bytes=100))
    queue = TaskQueue(engine=engine, enable_worker=False)
    queue.register_handler("checked", len, payload_type=str)
    for name in ("unchecked", "checked"):
        queue.enqueue(name, "x" * 98)
        with pytest.raises(InvalidValue, match="the limit is 100"):
            queue.enqueue(name, "x" * 99)
    assert queue.stats()["pending"] == 2
    queue.stop()
    run_sync(engine.close())


@pytest.mark.parametrize("name", ["", "x" * 256, 5, None, "a\0"])
def test_bad_types_are_refused_everywhere(local_queue: TaskQueue, name: Any):
    calls: list[Callable[[], object]] = [
        lambda: local_queue.enqueue(name, {}),
        lambda: local_queue.register_handler(name, abs),
        lambda: local_queue.unregister_handler(name),
        lambda: local_queue.set_rate_limit(name, 1),
        lambda: local_queue.set_timeout(name, 1),
        lambda: local_queue.set_worker_count(name, 1),
    ]
    for call in calls:
        with pytest.raises(InvalidOption) as caught:
            call()
        assert caught.value.field == "type"


@pytest.mark.parametrize("value", [0, -1, "1", True, float("nan"), float("inf"), 1e7])
def test_bad_limits_are_refused(local_queue: TaskQueue, value: Any):
    with pytest.raises(InvalidOption, match="rate_limit"):
        local_queue.set_rate_limit("test", value)
    if value != 1e7:
        with pytest.raises(InvalidOption, match="timeout_seconds"):
            local_queue.set_timeout("test", value)
    with pytest.raises(InvalidOption, match="worker_count"):
        local_queue.set_worker_count("test", value)


def test_settings_in_both_spellings(memory_url: str):
    queue = TaskQueue(memory_url, pollInterval=2000, batchSize=5, enableWorker=False, taskTimeout=60)
    assert (queue.poll_interval, queue.batch_size, queue.enable_worker) == (2.0, 5, False)
    assert queue.engine.config.lock_timeout_seconds == 60
    plain_queue = TaskQueue(memory_url)
    assert (plain_queue.poll_interval, plain_queue.batch_size, plain_queue.enable_worker) == (1.0, 10, True)
    assert plain_queue.engine.config.lock_timeout_seconds == 300
    assert not plain_queue.is_running(), "without a handler there is nothing to run"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"poll_interval": 0}, "poll_interval"),
        ({"pollInterval": "1"}, "poll_interval"),
        ({"batch_size": 0}, "batch_size"),
        ({"batchSize": True}, "batch_size"),
        ({"enableWorker": "no"}, "enable_worker"),
        ({"task_timeout": -1}, "task_timeout"),
        ({"database_url": "nonsense"}, "database_url"),
    ],
    ids=str,
)
def test_bad_settings_are_refused_by_name(memory_url: str, settings: dict[str, Any], field: str):
    with pytest.raises(InvalidInput) as caught:
        TaskQueue(**{"database_url": memory_url, **settings}).stats()
    assert caught.value.field == field


def test_unknown_settings_and_contradictions_are_refused(engine: Engine, memory_url: str):
    with pytest.raises(TypeError, match="threads"):
        TaskQueue(memory_url, threads=4)  # type: ignore[call-arg]
    with pytest.raises(InvalidConfig, match="not both"):
        TaskQueue(memory_url, engine=engine)
    with pytest.raises(InvalidConfig, match="lease"):
        TaskQueue(engine=engine, task_timeout=5)


def test_without_a_url_it_is_the_librarys_queue(memory_url: str):
    before = use_engine(Engine(Config(database_url=memory_url, max_payload_bytes=100)))
    try:
        queue = TaskQueue(enable_worker=False)
        task_id = queue.enqueue("test", 1)
        found = tasklib.get_task(task_id)
        assert found is not None
        assert found.name == "test"
        assert queue.engine.config.max_payload_bytes == 100
    finally:
        use_engine(before)


def test_ids_may_be_text_and_unknown_ones_give_none(queue: TaskQueue):
    task_id = queue.enqueue("test", 1)
    assert queue.getTask(str(task_id)) == queue.get_task(task_id)
    assert queue.get_task(uuid.uuid4()) is None
    with pytest.raises((InvalidInput, TaskNotFound)):
        queue.get_task("not an id")


def test_stats_are_in_the_words_of_this_api(queue: TaskQueue):
    def broken(payload: object) -> None:
        raise RuntimeError

    queue.register_handler("good", abs)
    queue.register_handler("bad", broken)
    queue.enqueue("good", 1)
    queue.enqueue("bad", 1, max_attempts=1)
    queue.enqueue("bad", 1)
    queue.process_batch()
    queue.enqueue("good", 2)
    nothing = {"pending": 0, "processing": 0, "completed": 0, "failed": 0, "cancelled": 0}
    assert queue.stats() == {
        **nothing,
        "pending": 1,
        "completed": 1,
        "failed": 2,
        "byType": {"good": {**nothing, "pending": 1, "completed": 1}, "bad": {**nothing, "failed": 2}},
    }
