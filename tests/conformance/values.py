"""What goes in comes back: payloads, results, tags and texts, exactly and with their types."""

from __future__ import annotations

from typing import Any

import pytest

from tasklib.core import codec
from tasklib.stores.protocol import Store
from tests.conformance.builders import apply, claim_one, completed, failed, fetch, new_task, same_value, submit


def _nested(depth: int) -> Any:
    value: Any = "deep"
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "negative": -17,
    "beyond 53 bits": 2**53 + 1,
    "beyond 64 bits": -(2**64) - 1,
    "400 digits": 10**399 + 7,
    "4,300 digits": 10**4299 + 7,
    "float zero": 0.0,
    "whole float": 1.0,
    "tenth": 0.1,
    "third": 1 / 3,
    "1e16": 1e16,
    "1e22": 1e22,
    "largest float": 1.7976931348623157e308,
    "1e-7": 1e-7,
    "1e-300": 1e-300,
    "smallest float": 5e-324,
    "negative small": -2.5e-10,
    "empty text": "",
    "text": "plain",
    "quotes": '"it\'s" \\ / `',
    "control characters": "\x01\b\t\n\r\x1b\x7f\x80\u2028\u2029",
    "unicode": "naïve ✓ 名前 \u202eabc e\u0301",
    "emoji": "😀👩‍👩‍👧",
    "long text": "ab\n" * 30_000,
    "looks like JSON": '{"value": null}',
    "looks like a number": "1e5",
    "looks like a constant": "NaN",
    "empty list": [],
    "empty object": {},
    "nested empty": [[], {}, [{}], {"": []}],
    "mixed list": [None, True, 0, 0.0, "", [1], {"a": 1}],
    "unusual keys": {"": 1, " ": 2, "a.b": 3, "$": 4, '"': 5, "\\": 6, "[0]": 7, "é": 8, "value": 9, "1": 10},
    "64 levels": _nested(64),
}


class Values:
    @pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
    async def test_a_payload_comes_back_as_it_went_in(self, store: Store, value: Any) -> None:
        [inserted] = await store.insert([new_task()._replace(kwargs=codec.encode(value, field="payload"))])
        assert same_value((await fetch(store, inserted.id)).kwargs, value)
        claim = await claim_one(store)
        assert same_value(codec.decode(claim.kwargs), value)

    @pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
    async def test_a_result_comes_back_as_it_went_in(self, store: Store, value: Any) -> None:
        task_id = await submit(store)
        if value == _nested(64):
            value = _nested(63)  # the wrapping takes one level
        await apply(store, completed(await claim_one(store), value))
        assert same_value((await fetch(store, task_id)).result, {"value": value})

    async def test_tags_come_back_as_they_went_in(self, store: Store) -> None:
        tags = {"batch": "daily", "user": 2**70, "share": 0.5, "flag": True, "none": None, "a.b": ["x", {"y": 1}]}
        task_id = await submit(store, tags=tags)
        assert same_value((await fetch(store, task_id)).tags, tags)
        assert same_value(codec.decode((await claim_one(store)).tags), tags)

    async def test_an_error_comes_back_as_it_went_in(self, store: Store) -> None:
        error = (
            "Traceback (most recent call last):\n  File \"x.py\"\r\n\tValueError: naïve ✓ 😀 'quoted' %s \\ \x1b[31m"
        )
        task_id = await submit(store)
        await apply(store, failed(await claim_one(store), error))
        task = await fetch(store, task_id)
        assert task.error == error
        assert task.history[-1]["error"] == error

    async def test_an_error_as_long_as_allowed_is_kept_whole(self, store: Store) -> None:
        error = "é" * (codec.ERROR_LIMIT // 2)
        task_id = await submit(store)
        await apply(store, failed(await claim_one(store), error))
        assert (await fetch(store, task_id)).error == error

    async def test_a_payload_as_large_as_allowed_is_kept_whole(self, store: Store) -> None:
        value = {"text": "x" * (codec.MAX_BYTES - len('{"text":""}'))}
        task_id = await submit(store, payload=value)
        assert (await fetch(store, task_id)).kwargs == value
        await apply(store, completed(await claim_one(store), value["text"][:-2]))
        assert (await fetch(store, task_id)).result == {"value": value["text"][:-2]}

    async def test_a_workers_name_comes_back_as_it_went_in(self, store: Store) -> None:
        worker = "wörker ✓-" + "x" * 200
        task_id = await submit(store)
        claim = await claim_one(store, worker=worker)
        assert claim.worker_id == (await fetch(store, task_id)).worker_id == worker
