"""Payloads, results and errors: what goes in comes out; what could not is refused."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklib import InvalidConfig, InvalidInput, InvalidOption, InvalidValue, TaskManager
from tasklib.api.sync import run_sync
from tasklib.core.bytes_json import pack, unpack
from tests.conformance.builders import same_value

VALUES: list[Any] = [
    {"order_id": "123", "nested": {"list": [1, 2.5, None, True, "ä€𝄞"]}},
    {},
    [],
    [[], {}, None],
    "",
    "text",
    0,
    False,
    True,
    1.5,
    10**30,
    -(10**30),
    b"",
    b"email data",
    bytes(range(256)),
    b"\0\xff" * 1000,
    {"$bytes": "aGVsbG8="},
    {"$bytes": "not base64!"},
    {"$bytes": 7},
    {"$json": {"$bytes": "aGVsbG8="}},
    {"$json": 1},
    {"$bytes": "aGVsbG8=", "more": 1},
    [{"$bytes": "aGVsbG8="}],
    "aGVsbG8=",
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:40])
def test_what_goes_in_comes_out(manager: TaskManager, value: Any):
    task_id = manager.submit(value)
    assert same_value(manager.get(task_id).payload, value)
    (claimed,) = manager.claim_next("worker-a")
    assert same_value(claimed.payload, value)
    manager.complete(task_id, value, worker_id="worker-a")
    (found,) = manager.list()
    assert same_value(found.payload, value)
    assert same_value(found.result, value)


def test_no_result_is_none(manager: TaskManager):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    manager.complete(task_id, worker_id="worker-a")
    assert manager.get(task_id).result is None


def test_other_bytes_come_back_as_bytes(manager: TaskManager):
    assert manager.get(manager.submit(bytearray(b"abc"))).payload == b"abc"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["$bytes", "$json", "YQ=="]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["$bytes", "$json", "a", ""]), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(json_values | st.binary(max_size=20))
def test_every_value_is_told_apart(value: Any):
    stored = pack(value)
    assert json.loads(json.dumps(stored)) == stored, "plain JSON"
    assert same_value(unpack(stored), value)


def test_bytes_can_be_read_by_people(manager: TaskManager):
    """In psql, in the dashboard, through the other APIs."""
    row = run_sync(manager.engine.get_or_raise(manager.submit(b"hello")))
    assert row.kwargs == {"$bytes": "aGVsbG8="}


def test_a_task_of_another_api_is_shown_as_it_is(manager: TaskManager):
    """Also one that merely looks packed."""
    assert unpack({"$bytes": "no base64"}) == {"$bytes": "no base64"}
    assert unpack({"$bytes": None}) == {"$bytes": None}
    assert unpack({"$json": 1}) == {"$json": 1}


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        "nul\0",
        "\ud800",
        {1: "a"},
        {"a": b"nested bytes"},
        object(),
        {"a": {1, 2}},
        "x" * 2**20,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_json_is_refused_and_nothing_is_written(manager: TaskManager, value: Any):
    with pytest.raises(InvalidValue) as caught:
        manager.submit(value)
    assert (caught.value.field or "").startswith("payload")
    assert manager.list() == []
    task_id = manager.submit(1)
    before = manager.claim(task_id, "worker-a")
    with pytest.raises(InvalidValue) as caught:
        manager.complete(task_id, value, worker_id="worker-a")
    assert (caught.value.field or "").startswith("result")
    assert manager.get(task_id) == before


def test_bytes_beyond_the_limit_are_refused(manager: TaskManager):
    with pytest.raises(InvalidValue, match="limit"):
        manager.submit(b"x" * 800_000)


def test_an_error_is_an_exception_or_text(manager: TaskManager):
    task_id = manager.submit(1)
    manager.claim(task_id, "worker-a")
    try:
        [][1]
    except IndexError as error:
        manager.fail(task_id, error, worker_id="worker-a")
    said = manager.get(task_id).error or ""
    assert "Traceback" in said
    assert "[][1]" in said, "the line that raised it"
    assert said.endswith("IndexError: list index out of range")

    manager.claim(task_id, "worker-a")
    manager.fail(task_id, ValueError("never raised"), worker_id="worker-a")
    assert manager.get(task_id).error == "ValueError: never raised"
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, "nul\0 and \ud800 " + "x" * 20_000, worker_id="worker-a")
    assert len(manager.get(task_id).error or "") <= 16 * 1024
    manager.claim(task_id, "worker-a")
    with pytest.raises(InvalidValue):
        manager.fail(task_id, 404, worker_id="worker-a")  # type: ignore[arg-type]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_that_cannot_be_printed_is_recorded(manager: TaskManager):
    task_id = manager.submit(1, max_attempts=1)
    manager.claim(task_id, "worker-a")
    manager.fail(task_id, Unspeakable(), worker_id="worker-a")
    assert "Unspeakable" in (manager.get(task_id).error or "")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_attempts": -1}, "max_attempts"),
        ({"max_attempts": True}, "max_attempts"),
        ({"max_attempts": 2**31}, "max_attempts"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "x" * 256}, "idempotency_key"),
        ({"name": ""}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"delay_seconds": -1}, "delay_seconds"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at"),  # noqa: DTZ001 - without a zone, on purpose
        ({"priority": 2**31}, "priority"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"tags": 7}, "tags"),
    ],
    ids=str,
)
def test_bad_options_are_refused(manager: TaskManager, options: dict[str, Any], field: str):
    with pytest.raises(InvalidInput) as caught:
        manager.submit(1, **options)
    assert caught.value.field == field
    assert manager.list() == []


def test_other_arguments_are_checked(manager: TaskManager):
    task_id = manager.submit(1)
    for call, field in (
        (lambda: manager.get("no id"), "task_id"),
        (lambda: manager.get_by_idempotency_key(""), "idempotency_key"),
        (lambda: manager.list("running"), "status"),
        (lambda: manager.list(limit=0), "limit"),
        (lambda: manager.claim(task_id, "worker-a", ttl=0), "ttl"),
        (lambda: manager.claim(task_id, "worker-a", ttl=float("nan")), "ttl"),
        (lambda: manager.claim_next("worker-a", names="default"), "names"),
        (lambda: manager.claim_next("worker-a", names=[""]), "names"),
        (lambda: manager.claim_next("worker-a", limit=0), "limit"),
        (lambda: manager.claim_next("worker-a", wait_seconds=-1), "wait_seconds"),
        (lambda: manager.complete(task_id, worker_id="worker-a", version=-1), "version"),
        (lambda: manager.complete(task_id, worker_id="worker-a", version=True), "version"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.field == field
    assert manager.get(task_id).attempts == 0


def test_what_is_no_queue_is_refused():
    with pytest.raises(InvalidConfig, match="redis"):
        TaskManager("redis://localhost").list()
    with pytest.raises(InvalidOption, match="queue must be"):
        TaskManager(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="claim_ttl"):
        TaskManager("memory://", claim_ttl=0)


def test_options_are_kept(manager: TaskManager):
    later = datetime(2999, 1, 1, tzinfo=UTC)
    task_id = manager.submit(1, name="mail", run_at=later, priority=-7, tags={"team": "blue"}, timeout_seconds=9)
    row = run_sync(manager.engine.get_or_raise(task_id))
    assert (row.name, row.scheduled_at, row.priority, row.tags, row.timeout_seconds) == (
        "mail",
        later,
        -7,
        {"team": "blue"},
        9,
    )
