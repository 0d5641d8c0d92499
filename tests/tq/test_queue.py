"""TaskQueue: handlers, batches, options."""

import asyncio
import functools
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

import tasklib
from tasklib import (
    Config,
    Fail,
    InvalidConfig,
    InvalidInput,
    InvalidOption,
    InvalidValue,
    TaskDefinitionError,
    TaskNotFound,
    TaskQueue,
    TaskState,
    TaskValidationError,
    current_task,
)
from tasklib.core.retry import RetryPolicy
from tasklib.doors.blocking import run_blocking
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.stores.base import ClaimRequest, ControlChange
from tests.waiting import eventually

LATER = 3600.0


class CrawlPayload(BaseModel):
    url: str
    depth: int = 1


def need(queue: TaskQueue, task_id: uuid.UUID) -> tasklib.Task:
    task = queue.get_task(task_id)
    assert task is not None
    return task


# -- the example test of the specification ------------------------------------------------------------------------------


def test_should_retry_failed_task_with_exponential_backoff(queue: TaskQueue):
    attempts = 0

    async def handler():
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise RuntimeError("Fail")

    queue.registerHandler("test", handler)
    task_id = queue.enqueue("test", {}, {"maxAttempts": 3})

    assert queue.processBatch() == 1  # attempt 1: fail
    assert need(queue, task_id).state == TaskState.FAILED
    assert queue.processBatch() == 0, "its retry is not due yet"

    queue.engine.advance(12.1)  # the longest first delay
    assert queue.processBatch() == 1  # attempt 2: fail
    assert need(queue, task_id).attempts == 2

    queue.engine.advance(48.1)
    assert queue.processBatch() == 1  # attempt 3: success
    assert need(queue, task_id).state == TaskState.COMPLETED
    assert attempts == 3


def test_a_task_without_attempts_left_has_failed_for_good(queue: TaskQueue):
    def broken(payload: object) -> None:
        raise RuntimeError("always")

    queue.register_handler("test", broken)
    once, twice, thrice = (queue.enqueue("test", n, max_attempts=n) for n in (1, 2, 3))
    default, unlimited = queue.enqueue("test", 0), queue.enqueue("test", 0, max_attempts=0)
    for _ in range(5):
        queue.process_batch()
        queue.engine.advance(LATER)
    assert [need(queue, each).attempts for each in (once, twice, thrice, default, unlimited)] == [1, 2, 3, 3, 5]
    assert need(queue, unlimited).completed_at is None
    assert need(queue, default).completed_at is not None
    assert need(queue, default).max_attempts == 3
    assert len(need(queue, default).history) == 3


def test_the_retry_policy_is_kept_in_the_row(queue: TaskQueue):
    task = need(queue, queue.enqueue("test", None))
    assert task.retry_policy is not None
    assert RetryPolicy(**task.retry_policy) == RetryPolicy.QUEUE


# -- batches ------------------------------------------------------------------------------------------------------------


def test_a_batch_is_at_most_so_large(engine: Engine):
    queue = TaskQueue(engine=engine, batch_size=4, enable_worker=False)
    done: list[int] = []
    queue.register_handler("count", done.append)
    queue.register_handler("other", done.append)
    for number in range(9):
        queue.enqueue("count" if number % 2 else "other", number, max_attempts=1)
    assert [queue.process_batch() for _ in range(4)] == [4, 4, 1, 0]
    assert sorted(done) == list(range(9))


async def test_batches_run_in_the_callers_loop_too(queue: TaskQueue):
    loops = set()

    async def note(payload: object) -> None:
        loops.add(asyncio.get_running_loop())

    queue.register_handler("note", note)
    await queue.enqueue_async("note", None)
    assert await queue.process_batch_async() == 1
    assert loops == {asyncio.get_running_loop()}
    queue.enqueue("note", None)
    assert queue.process_batch() == 1, "the blocking form, inside a loop"
    assert len(loops) == 2


def test_tasks_of_unknown_types_wait(queue: TaskQueue):
    task_id = queue.enqueue("nobody", {"a": 1})
    assert queue.process_batch() == 0
    queue.register_handler("somebody", print)
    assert queue.process_batch() == 0
    assert need(queue, task_id).state == TaskState.PENDING
    queue.register_handler("nobody", lambda payload: payload["a"])
    assert queue.process_batch() == 1
    assert queue.unregister_handler("nobody")
    assert not queue.unregisterHandler("nobody")
    queue.enqueue("nobody", {"a": 1})
    assert queue.process_batch() == 0


def test_a_batch_recovers_what_dead_workers_hold(queue: TaskQueue):
    task_id = queue.enqueue("test", 5)

    async def claim_and_vanish() -> None:
        store = await queue.engine.store()
        await store.claim(ClaimRequest(worker_id="gone", names=["test"], slots=1, lease_seconds=30))

    run_blocking(claim_and_vanish())
    queue.register_handler("test", lambda payload: payload + 1)
    assert queue.process_batch() == 0
    queue.engine.advance(31)
    assert queue.process_batch() == 1
    task = need(queue, task_id)
    assert (task.state, task.attempts, task.result) == (TaskState.COMPLETED, 2, {"value": 6})


def test_timeouts_are_enforced_in_a_batch(queue: TaskQueue):
    queue.register_handler("hangs", lambda payload: threading.Event().wait())
    queue.set_timeout("hangs", 1)
    task_id = queue.enqueue("hangs", None, max_attempts=1)
    assert need(queue, task_id).timeout_seconds == 1
    assert need(queue, queue.enqueue("hangs", None, timeout_seconds=7, run_after="2100-01-01T00:00Z")).timeout_seconds == 7
    assert queue.process_batch() == 1
    assert "TaskTimedOut" in (need(queue, task_id).error or "")


def test_nothing_runs_while_all_is_paused(queue: TaskQueue):
    queue.register_handler("test", print)
    queue.enqueue("test", None)
    queue.pause()
    assert queue.is_paused()
    assert queue.process_batch() == 0
    queue.resume()
    assert not queue.isPaused()
    assert queue.process_batch() == 1


def test_a_batch_keeps_to_the_worker_count(queue: TaskQueue):
    lock, running, most = threading.Lock(), 0, 0
    both = threading.Barrier(2, timeout=20)

    def work(payload: object) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait()
        with lock:
            running -= 1

    queue.register_handler("work", work)
    queue.set_worker_count("work", 2)
    for _ in range(6):
        queue.enqueue("work", None, max_attempts=1)
    assert queue.process_batch() == 6
    assert most == 2


def test_a_rate_limit_holds_in_batches_and_its_bucket_refills(queue: TaskQueue):
    queue.register_handler("limited", lambda payload: None)
    queue.set_rate_limit("limited", 2)
    for _ in range(8):
        queue.enqueue("limited", None)
    assert queue.process_batch() == 2, "the bucket holds one second's worth"
    assert queue.process_batch() == 0
    assert queue.stats()["byType"]["limited"]["pending"] == 6, "a deferred task uses no attempt"
    queue.engine.advance(LATER)
    assert queue.process_batch() == 2


def test_an_operators_rate_wins_until_it_is_cleared(queue: TaskQueue):
    def rate() -> float | None:
        return run_blocking(queue.engine.controls())["limited"].rate

    queue.set_rate_limit("limited", 5)
    assert rate() == 5
    run_blocking(queue.engine.control(ControlChange(name="limited", operator_rate=1)))
    assert rate() == 1
    queue.set_rate_limit("limited", 7)
    assert rate() == 1
    run_blocking(queue.engine.control(ControlChange(name="limited", operator_rate=0)))
    assert not rate(), "no limit, whatever the code says"
    run_blocking(queue.engine.control(ControlChange(name="limited", operator_rate=None)))
    assert rate() == 7
    queue.set_rate_limit("limited", None)
    assert rate() is None


# -- handlers and payloads ----------------------------------------------------------------------------------------------


def plain(payload: Any) -> Any:
    return payload


async def native(payload: Any) -> Any:
    await asyncio.to_thread(str)
    return payload


class Callables:
    def __call__(self, payload: Any) -> Any:
        return payload

    def method(self, payload: Any) -> Any:
        return payload

    async def async_method(self, payload: Any) -> Any:
        return payload


class AsyncCallable:
    async def __call__(self, payload: Any) -> Any:
        return payload


FORMS: dict[str, Callable[..., Any]] = {
    "def": plain,
    "async def": native,
    "lambda": lambda payload: payload,
    "partial": functools.partial(plain),
    "async partial": functools.partial(native),
    "object": Callables(),
    "async object": AsyncCallable(),
    "method": Callables().method,
    "async method": Callables().async_method,
    "more parameters": lambda payload, again=1: payload,
    "builtin": functools.partial(max, [0]),
}


@pytest.mark.parametrize("payload", [{"a": [1, {"b": None}]}, [1, "2"], "text", 5, 1.5, True, None, {}, []], ids=repr)
def test_any_json_value_is_a_payload_and_a_result(memory_url: str, payload: Any):
    queue = TaskQueue(memory_url, enable_worker=False)
    queue.register_handler("echo", plain)
    task_id = queue.enqueue("echo", payload)
    assert queue.process_batch() == 1
    task = need(queue, task_id)
    assert (task.kwargs, task.result) == (payload, {"value": payload})
    queue.stop()


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_handlers(memory_url: str, form: str):
    queue = TaskQueue(memory_url, enable_worker=False)
    queue.register_handler("echo", FORMS[form])
    task_id = queue.enqueue("echo", [1])
    assert queue.process_batch() == 1
    task = need(queue, task_id)
    assert (task.result, task.error) == ({"value": [1]}, None)
    queue.stop()


def no_generator(payload: object) -> Any:
    yield payload


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (5, "a handler is a function"),
        (None, "a handler is a function"),
        (dict, "a handler is a function"),
        (no_generator, "generator"),
        (lambda one, two: None, "only argument"),
        (lambda *, payload: None, "only argument"),
    ],
    ids=str,
)
def test_what_cannot_be_a_handler_is_refused(queue: TaskQueue, handler: Any, text: str):
    with pytest.raises(TaskDefinitionError, match=text) as caught:
        queue.register_handler("test", handler)
    assert caught.value.field == "handler"


def test_a_later_handler_takes_the_place_of_an_earlier_one(queue: TaskQueue):
    queue.register_handler("test", lambda payload: "first")
    queue.register_handler("test", lambda payload: "second")
    task_id = queue.enqueue("test", None)
    queue.process_batch()
    assert need(queue, task_id).result == {"value": "second"}


def test_results_of_any_type_pydantic_knows_are_stored(queue: TaskQueue):
    def answer(payload: object) -> dict[str, Any]:
        return {"at": datetime(2030, 1, 1, tzinfo=UTC), "sum": Decimal("1.5"), "id": current_task().id, "n": {1}}

    queue.register_handler("answer", answer)
    queue.register_handler("model", lambda payload: CrawlPayload(url="https://example.com"))
    queue.register_handler("stranger", lambda payload: object())
    ids = [queue.enqueue(name, None, max_attempts=1) for name in ("answer", "model", "stranger")]
    assert queue.process_batch() == 3
    answered, model, stranger = (need(queue, each) for each in ids)
    assert answered.result == {"value": {"at": "2030-01-01T00:00:00Z", "sum": "1.5", "id": str(ids[0]), "n": [1]}}
    assert model.result == {"value": {"url": "https://example.com", "depth": 1}}
    assert (stranger.state, stranger.result) == (TaskState.FAILED, None)
    assert "cannot be stored as JSON" in (stranger.error or "")


class Page(TypedDict):
    url: str
    depth: int


@pytest.mark.parametrize(
    ("kind", "good", "bad", "field"),
    [
        (CrawlPayload, {"url": "u"}, {"wrong": "field"}, "url"),
        (CrawlPayload, CrawlPayload(url="u", depth=2), {"url": "u", "depth": "deep"}, "depth"),
        (Page, {"url": "u", "depth": 1}, {"url": "u"}, "depth"),
        (list[int], [1, 2], [1, "two"], "1"),
        (datetime, datetime(2030, 1, 1, tzinfo=UTC), "tomorrow", "datetime"),
        (bytes, b"\xff\x00", 5, "bytes"),
    ],
    ids=str,
)
def test_a_typed_payload_arrives_as_that_type_or_is_refused(queue: TaskQueue, kind: Any, good: Any, bad: Any, field: str):
    arrived: list[Any] = []
    queue.register_handler("typed", arrived.append, kind)
    with pytest.raises(TaskValidationError) as caught:
        queue.enqueue("typed", bad)
    assert caught.value.field == field
    assert field in str(caught.value)
    queue.enqueue("typed", good)
    assert queue.process_batch() == 1, "and nothing was stored of the wrong one"
    expected = CrawlPayload(**good) if kind is CrawlPayload and isinstance(good, dict) else good
    assert arrived == [expected]


def test_a_stored_payload_that_does_not_fit_fails_without_retries(queue: TaskQueue):
    task_id = queue.enqueue("typed", {"wrong": 1})
    queue.register_handler("typed", plain, CrawlPayload)
    assert queue.process_batch() == 1
    task = need(queue, task_id)
    assert (task.state, task.attempts, task.completed_at is not None) == (TaskState.FAILED, 1, True)
    assert "url: Field required" in (task.error or "")


def test_a_payload_type_that_pydantic_cannot_handle_is_refused(queue: TaskQueue):
    class Stranger:
        pass

    with pytest.raises(TaskDefinitionError) as caught:
        queue.register_handler("typed", plain, Stranger)
    assert caught.value.field == "payload_type"


def test_a_handler_may_give_up_at_once(queue: TaskQueue):
    def gives_up(payload: object) -> None:
        raise Fail("no such user")

    queue.register_handler("test", gives_up)
    task_id = queue.enqueue("test", None)
    queue.process_batch()
    assert need(queue, task_id).completed_at is not None


# -- options and settings -----------------------------------------------------------------------------------------------


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
def test_bad_options_are_refused_by_name(queue: TaskQueue, options: Any, field: str):
    with pytest.raises(InvalidInput) as caught:
        queue.enqueue("test", {}, options)
    assert caught.value.field == field
    assert field in str(caught.value)
    assert queue.stats()["pending"] == 0


@pytest.mark.parametrize("payload", [{1: "a"}, {"a": float("nan")}, object(), {"a": b"x"}, "\0", CrawlPayload(url="u")])
def test_payloads_that_are_no_json_are_refused(queue: TaskQueue, payload: Any):
    with pytest.raises(InvalidValue, match="payload"):
        queue.enqueue("test", payload)
    queue.register_handler("test", plain)
    with pytest.raises(InvalidValue, match="payload"):
        queue.enqueue("test", payload)


@pytest.mark.parametrize("name", ["", "x" * 256, 5, None, "a\0"])
def test_bad_types_are_refused_everywhere(queue: TaskQueue, name: Any):
    calls: list[Callable[[], object]] = [
        lambda: queue.enqueue(name, {}),
        lambda: queue.register_handler(name, plain),
        lambda: queue.unregister_handler(name),
        lambda: queue.set_rate_limit(name, 1),
        lambda: queue.set_timeout(name, 1),
        lambda: queue.set_worker_count(name, 1),
    ]
    for call in calls:
        with pytest.raises(InvalidOption) as caught:
            call()
        assert caught.value.field == "type"


@pytest.mark.parametrize("value", [0, -1, "1", True, float("nan"), float("inf"), 1e7])
def test_bad_limits_are_refused(queue: TaskQueue, value: Any):
    with pytest.raises(InvalidOption, match="rate_limit"):
        queue.set_rate_limit("test", value)
    if value != 1e7:
        with pytest.raises(InvalidOption, match="timeout_seconds"):
            queue.set_timeout("test", value)
    with pytest.raises(InvalidOption, match="worker_count"):
        queue.set_worker_count("test", value)


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


def test_stats_are_in_this_doors_words(queue: TaskQueue):
    def broken(payload: object) -> None:
        raise RuntimeError

    queue.register_handler("good", plain)
    queue.register_handler("bad", broken)
    queue.enqueue("good", 1)
    queue.enqueue("bad", 1, max_attempts=1)
    queue.enqueue("bad", 1)
    queue.process_batch()
    queue.enqueue("good", 2)
    nothing = {"pending": 0, "processing": 0, "completed": 0, "failed": 0, "cancelled": 0}
    assert queue.stats() == {
        **{**nothing, "pending": 1, "completed": 1, "failed": 2},
        "byType": {"good": {**nothing, "pending": 1, "completed": 1}, "bad": {**nothing, "failed": 2}},
    }


def test_a_task_whose_type_is_unregistered_during_the_claim_goes_back(queue: TaskQueue):
    """The answer of a claim comes when its handler is gone."""
    task_id = queue.enqueue("test", 1)
    queue.register_handler("test", plain)
    queue.register_handler("other", plain)

    async def batch() -> None:
        store = await queue.engine.store()
        real = store.claim

        async def claim(request: ClaimRequest) -> Any:
            claimed = await real(request)
            queue.unregister_handler("test")
            return claimed

        store.claim = claim  # type: ignore[method-assign]
        assert await queue.process_batch_async() == 0

    asyncio.run(batch())
    task = need(queue, task_id)
    assert (task.state, task.attempts, task.worker_id) == (TaskState.PENDING, 0, None)


def test_the_worker_starts_and_stops_on_demand(queue: TaskQueue):
    queue.register_handler("test", plain)
    assert not queue.is_running()
    task_id = queue.enqueue("test", 1)
    queue.start()
    queue.start()
    assert queue.isRunning()
    eventually(lambda: need(queue, task_id).state == TaskState.COMPLETED)
    queue.stop()
    assert not queue.is_running()
    queue.stop()
