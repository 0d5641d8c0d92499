"""`retry_for` and `no_retry_for`: which exceptions are worth another attempt."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tasklib import Fail, Retry, TaskDefinitionError, TaskOptions, TaskTimedOut, is_terminal, task
from tasklib.core.published import publish
from tasklib.core.registry import Registry, define
from tasklib.testing import QueueForTests, drain
from tests.worker import app

RAISED: dict[str, BaseException] = {
    "connection": ConnectionResetError(),
    "missing": FileNotFoundError(),
    "value": ValueError(),
    "exit": SystemExit(3),
    "retry": Retry(),
    "fail": Fail(),
}


def explode(kind: str) -> None:
    raise RAISED[kind]


async def explode_async(kind: str) -> None:
    raise RAISED[kind]


@pytest.mark.parametrize("function", [explode, explode_async])
@pytest.mark.parametrize(
    ("lists", "retried"),
    [
        ({}, {"connection", "missing", "value", "exit", "retry"}),
        ({"retry_for": (OSError,)}, {"connection", "missing", "retry"}),
        ({"retry_for": OSError, "no_retry_for": {FileNotFoundError}}, {"connection", "retry"}),
        ({"no_retry_for": [ValueError, SystemExit]}, {"connection", "missing", "retry"}),
        ({"no_retry_for": Exception}, {"exit", "retry"}),
    ],
)
def test_only_what_the_lists_allow_is_tried_again(
    tasklib_queue: QueueForTests,
    registry: Registry,
    function: Callable[..., Any],
    lists: dict[str, Any],
    retried: set[str],
):
    """What a handler decides itself, by Retry and Fail, is in no list."""
    exploding = task(registry=registry, **lists)(function)
    handles = {kind: exploding.submit(kind) for kind in RAISED}
    drain(tasklib_queue.engine, registry=registry)
    assert {kind for kind, handle in handles.items() if not is_terminal(handle.get())} == retried


def test_in_a_child_process_too(tasklib_queue: QueueForTests):
    handles = {kind: app.picky.submit(kind) for kind in ("connection", "missing", "value")}
    drain(tasklib_queue.engine, names=["picky"])
    assert {kind for kind, handle in handles.items() if not is_terminal(handle.get())} == {"connection"}


def test_a_timeout_is_one_of_the_exceptions(tasklib_queue: QueueForTests, registry: Registry):
    def slow() -> None:
        threading.Event().wait(1.2)

    lists: dict[str, dict[str, Any]] = {
        "all": {},
        "named": {"retry_for": TaskTimedOut},
        "others": {"retry_for": OSError},
        "excluded": {"no_retry_for": TaskTimedOut},
    }
    types = {name: task(registry=registry, name=name, timeout_seconds=1, **each)(slow) for name, each in lists.items()}
    handles = {name: each.submit() for name, each in types.items()}
    drain(tasklib_queue.engine, registry=registry, concurrency=4)
    assert all("TaskTimedOut" in (handle.get().error or "") for handle in handles.values())
    assert {name for name, handle in handles.items() if not is_terminal(handle.get())} == {"all", "named"}


@pytest.mark.parametrize("field", ["retry_for", "no_retry_for"])
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("OSError", "takes classes of exceptions, got 'O'"),
        ([OSError()], r"takes classes of exceptions, got OSError\(\)"),
        (int, "takes classes of exceptions, got <class 'int'>"),
        (7, "takes classes of exceptions, got 7"),
        ((OSError, Fail), "a handler decides by raising Fail"),
        ([], "names no exception; max_retries=0"),
    ],
)
def test_what_is_no_list_of_exceptions_is_refused_where_it_is_said(
    registry: Registry, field: str, given: Any, reason: str
):
    with pytest.raises(TaskDefinitionError, match=f"^{field}: {reason}") as refused:
        task(registry=registry, **{field: given})
    assert refused.value.field == field
    with pytest.raises(TaskDefinitionError, match=f"^{field}: "):
        TaskOptions(**{field: given})


def test_they_are_published_as_names():
    """For people; and whoever submits by what is published is not disturbed by them."""
    lists = TaskOptions(max_retries=4, retry_for=(OSError,), no_retry_for=(json.JSONDecodeError,))
    [told] = publish([define(explode, name="explode", options=lists)])
    options = json.loads(told.options)
    assert (options["retry_for"], options["no_retry_for"]) == (["builtins.OSError"], ["json.decoder.JSONDecodeError"])
    assert told.task_options() == TaskOptions(max_retries=4)
