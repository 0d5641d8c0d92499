"""What a list may be asked for: text that no task can hold is refused, on every backend alike."""

from typing import Any

import pytest

import tasklib
from tasklib import TaskManager
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"name": "a\0b"}, "name"),
        ({"name": "\ud800"}, "name"),
        ({"name": 5}, "name"),
        ({"tags": {"k": "\ud800"}}, "tags.k"),
        ({"tags": {"k": float("nan")}}, "tags.k"),
        ({"tags": {1: "x"}}, "tags"),
        ({"tags": ["k"]}, "tags"),
    ],
)
async def test_a_list_refuses(engine: Engine, asked: dict[str, Any], field: str):
    with pytest.raises(tasklib.InvalidInput) as caught:
        await tasklib.list_tasks_async(**asked)
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["name_prefix", "worker_id", "error_text"])
async def test_every_text_of_a_filter_is_checked(memory: Engine, field: str):
    for text in ("\0", "\ud800", 5):
        given: dict[str, Any] = {field: text}
        for asked in (memory.page(Filter(**given), limit=1), memory.count(Filter(**given), 1)):
            with pytest.raises(tasklib.InvalidOption) as caught:
                await asked
            assert caught.value.field == field


def test_a_manager_refuses_too(memory: Engine):
    with pytest.raises(tasklib.InvalidOption, match="surrogate"):
        TaskManager(memory).list(name="\ud800")
