"""What may be a handler, a payload and a result."""

import asyncio
import functools
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from tasklib import (
    Fail,
    TaskDefinitionError,
    TaskQueue,
    TaskState,
    TaskValidationError,
    current_task,
)
from tests.tq.reads import need

LATER = 3600.0


class CrawlPayload(BaseModel):
    url: str
    depth: int = 1


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
    ids=["number", "none", "class", "generator", "two parameters", "keyword only"],
)
def test_what_cannot_be_a_handler_is_refused(local_queue: TaskQueue, handler: Any, text: str):
    with pytest.raises(TaskDefinitionError, match=text) as caught:
        local_queue.register_handler("test", handler)
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
def test_a_typed_payload_arrives_or_is_refused(local_queue: TaskQueue, kind: Any, good: Any, bad: Any, field: str):
    arrived: list[Any] = []
    local_queue.register_handler("typed", arrived.append, kind)
    with pytest.raises(TaskValidationError) as caught:
        local_queue.enqueue("typed", bad)
    assert caught.value.field == field
    assert field in str(caught.value)
    local_queue.enqueue("typed", good)
    assert local_queue.process_batch() == 1, "and nothing was stored of the wrong one"
    expected = CrawlPayload(**good) if kind is CrawlPayload and isinstance(good, dict) else good
    assert arrived == [expected]


def test_a_stored_payload_that_does_not_fit_fails_without_retries(queue: TaskQueue):
    task_id = queue.enqueue("typed", {"wrong": 1})
    queue.register_handler("typed", plain, CrawlPayload)
    assert queue.process_batch() == 1
    task = need(queue, task_id)
    assert (task.state, task.attempts, task.completed_at is not None) == (TaskState.FAILED, 1, True)
    assert "url: Field required" in (task.error or "")


def test_a_payload_type_that_pydantic_cannot_handle_is_refused(local_queue: TaskQueue):
    class Stranger:
        pass

    with pytest.raises(TaskDefinitionError) as caught:
        local_queue.register_handler("typed", plain, Stranger)
    assert caught.value.field == "payload_type"


def test_a_handler_may_give_up_at_once(queue: TaskQueue):
    def gives_up(payload: object) -> None:
        raise Fail("no such user")

    queue.register_handler("test", gives_up)
    task_id = queue.enqueue("test", None)
    queue.process_batch()
    assert need(queue, task_id).completed_at is not None
