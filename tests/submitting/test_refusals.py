"""What is refused at the border of the library: one exception for each cause, the field named, nothing stored."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tasklib
from tasklib.api.decorator import TaskFunction, task
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain_async

KeepTask = TaskFunction[..., Any, Any]


@pytest.fixture
def keep(memory: Engine, registry: Registry) -> KeepTask:
    @task(registry=registry)
    def keep(value: Any) -> Any:
        return value

    return keep


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


async def by_submit_task(func: KeepTask, options: dict[str, Any], value: Any) -> Any:
    return await tasklib.submit_task(func, value=value, **options)


async def by_submit_task_sync(func: KeepTask, options: dict[str, Any], value: Any) -> Any:
    return tasklib.submit_task_sync(func, value=value, **options)


async def by_submit(func: KeepTask, options: dict[str, Any], value: Any) -> Any:
    return func.options(**options).submit(value)


async def by_submit_async(func: KeepTask, options: dict[str, Any], value: Any) -> Any:
    return await func.options(**options).submit_async(value=value)


async def by_submit_many(func: KeepTask, options: dict[str, Any], value: Any) -> Any:
    return await tasklib.submit_many(func, [{"value": "fine"}, {"value": value}], **options)


Way = Callable[[KeepTask, dict[str, Any], Any], Awaitable[Any]]
WAYS: list[Way] = [by_submit_task, by_submit_task_sync, by_submit, by_submit_async, by_submit_many]

ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)

VALUES: dict[str, tuple[Any, str]] = {
    "nan": (math.nan, "NaN"),
    "infinity": (math.inf, "Infinity"),
    "minus infinity": (-math.inf, "Infinity"),
    "1e400": (float("1e400"), "Infinity"),
    "nan inside": ({"readings": [1.0, math.nan]}, "NaN"),
    "nul": ("a\0b", "NUL"),
    "nul in a key": ({"a\0b": 1}, "NUL"),
    "lone surrogate": ("\ud800", "surrogate"),
    "lone surrogate in a key": ({"\udfff": 1}, "surrogate"),
    "too deep": (nested(65), "64"),
    "much too deep": (nested(5000), ""),
    "too large": ("x" * 1024 * 1024, "1,048,576"),
    "too large in bytes": ("é" * 600 * 1024, "1,048,576"),
    "too many digits": (10**4300, "digits"),
    "number as key": ({1: "one"}, "key"),
    "none as key": ({None: "nothing"}, "key"),
    "number as key inside": ([{"a": {2: "two"}}], "key"),
    "cycle": (cycle(), ""),
    "no JSON": (object(), ""),
    "a function": (len, ""),
}


@ways
@pytest.mark.parametrize("case", VALUES)
async def test_values(keep: KeepTask, way: Way, case: str):
    """Bad input, values: refused by every way to submit, the field named, nothing stored."""
    value, reason = VALUES[case]
    with pytest.raises(tasklib.InvalidValue) as caught:
        await way(keep, {}, value)
    assert caught.value.field is not None
    assert caught.value.field.split(".")[0].split("[")[0] in ("kwargs", "value")
    assert reason in str(caught.value)
    assert tasklib.list_tasks() == []


OPTIONS: list[tuple[str, Any]] = [
    ("run_at", datetime(2030, 1, 1)),  # noqa: DTZ001 - that is what is wrong with it
    ("run_at", "tomorrow"),
    ("run_at", 5),
    ("delay_seconds", -1),
    ("delay_seconds", -0.001),
    ("delay_seconds", math.nan),
    ("delay_seconds", math.inf),
    ("delay_seconds", 1e12),
    ("delay_seconds", 10**400),
    ("delay_seconds", "5"),
    ("delay_seconds", True),
    ("delay_seconds", timedelta(seconds=-5)),
    ("max_retries", -2),
    ("max_retries", 2**31),
    ("max_retries", True),
    ("max_retries", 1.0),
    ("max_retries", "3"),
    ("timeout_seconds", 0),
    ("timeout_seconds", -5),
    ("timeout_seconds", 1.5),
    ("timeout_seconds", True),
    ("timeout_seconds", 2**31),
    ("priority", True),
    ("priority", 2**31),
    ("priority", -(2**31) - 1),
    ("priority", "high"),
    ("idempotency_key", ""),
    ("idempotency_key", "k" * 256),
    ("idempotency_key", "a\0b"),
    ("idempotency_key", "\ud800"),
    ("idempotency_key", 5),
    ("idempotency_key", b"key"),
    ("tags", ["daily"]),
    ("tags", "daily"),
    ("tags", {1: "one"}),
    ("tags", {"when": datetime(2030, 1, 1, tzinfo=UTC)}),
    ("tags", {"share": math.nan}),
    ("tags", {"text": "x" * 20_000}),
]


def shown(value: object) -> str:
    return ascii(value)[:24]


@ways
@pytest.mark.parametrize(("option", "value"), OPTIONS, ids=shown)
async def test_options(keep: KeepTask, way: Way, option: str, value: Any):
    """Bad input, options: refused by every way to submit, the option named, nothing stored."""
    with pytest.raises(tasklib.InvalidInput) as caught:
        await way(keep, {option: value}, "fine")
    assert isinstance(caught.value, tasklib.InvalidOption | tasklib.InvalidValue)
    assert (caught.value.field or "").split(".")[0] == option
    assert option in str(caught.value)
    assert tasklib.list_tasks() == []


@ways
async def test_a_delay_and_an_instant_together(keep: KeepTask, way: Way):
    both = {"delay_seconds": 5, "run_at": datetime(2030, 1, 1, tzinfo=UTC)}
    with pytest.raises(tasklib.InvalidOption, match="not both"):
        await way(keep, both, "fine")
    assert tasklib.list_tasks() == []


@pytest.mark.parametrize("way", [by_submit_task, by_submit_many], ids=lambda way: way.__name__)
async def test_an_unknown_option_or_argument(keep: KeepTask, way: Way):
    with pytest.raises(tasklib.InvalidInput, match="urgent"):
        await way(keep, {"urgent": True}, "fine")
    assert tasklib.list_tasks() == []


@pytest.mark.parametrize("option", [{"priority": 2**31 - 1}, {"max_retries": -1}, {"idempotency_key": "k" * 255}])
async def test_limits_themselves_are_allowed(keep: KeepTask, option: dict[str, Any]):
    await keep.options(**option).submit_async("x" * (1024 * 1024 - 100))
    await keep.submit_async(nested(63))
    assert len(tasklib.list_tasks()) == 2


async def test_the_size_limit_is_a_setting(memory_url: str, registry: Registry):
    @task(registry=registry)
    def keep(value: str) -> str:
        return value

    before = use_engine(Engine(Config(database_url=memory_url, max_payload_bytes=100)))
    try:
        await keep.submit_async("x" * 50)
        with pytest.raises(tasklib.InvalidValue, match="the limit is 100"):
            await keep.submit_async("x" * 100)
        assert len(tasklib.list_tasks()) == 1
    finally:
        use_engine(before)


# -- arguments ---------------------------------------------------------------------------------------------------------


async def test_the_text_names_the_model_and_each_field(memory: Engine, registry: Registry):
    @task(registry=registry)
    def greet(name: str, age: int, email: str) -> str:
        return f"{name} is {age}: {email}"

    with pytest.raises(tasklib.TaskValidationError) as caught:
        await tasklib.submit_task(greet, name=5, age="old", nickname="Bob")
    lines = str(caught.value).splitlines()
    assert lines[0] == "4 validation errors for greetParams"
    assert {line.partition(":")[0] for line in lines[1:]} == {"name", "age", "email", "nickname"}
    assert caught.value.field == "name"
    assert [item["loc"] for item in caught.value.errors] == [("name",), ("age",), ("email",), ("nickname",)]
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, tasklib.TaskLibError)
    assert tasklib.list_tasks() == []


async def test_wrong_positional_arguments(memory: Engine, registry: Registry):
    @task(registry=registry)
    def add(a: int, b: int) -> int:
        return a + b

    wrong: Any = add
    for args, kwargs in [((1, 2, 3), {}), ((1, 2), {"b": 3}), ((), {}), ((1,), {}), (("one", 2), {})]:
        with pytest.raises(tasklib.TaskValidationError, match="addParams"):
            await wrong.submit_async(*args, **kwargs)
    assert tasklib.list_tasks() == []


async def test_one_bad_call_among_many_stores_none(memory: Engine, registry: Registry):
    @task(registry=registry)
    def add(a: int, b: int) -> int:
        return a + b

    calls: list[dict[str, Any]] = [{"a": number, "b": 1} for number in range(1000)]
    with pytest.raises(tasklib.TaskValidationError, match="addParams\nb: "):
        await tasklib.submit_many(add, [*calls, {"a": 1}])
    assert tasklib.list_tasks() == []


async def test_what_is_no_task(memory: Engine):
    def plain(number: int) -> int:
        return number

    with pytest.raises(tasklib.InvalidInput, match=r"plain.*@task"):
        await tasklib.submit_task(plain, number=1)
    with pytest.raises(tasklib.InvalidInput, match="@task"):
        await tasklib.submit_task("plain", number=1)  # type: ignore[arg-type]
    assert tasklib.list_tasks() == []


# -- definitions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "n" * 256, "a\0b", "\ud800", 5])
def test_names(name: Any, registry: Registry):
    """Bad input, options: names that are empty, too long, or no text."""
    with pytest.raises(tasklib.InvalidInput) as caught:
        task(name=name, registry=registry)(lambda: None)
    assert caught.value.field == "name"
    assert len(registry) == 0


def test_two_functions_under_one_name(registry: Registry):
    @task(name="report", registry=registry)
    def first() -> int:
        return 1

    with pytest.raises(tasklib.TaskDefinitionError, match=r"'report' is already defined at .*test_refusals\.py"):

        @task(name="report", registry=registry)
        def second() -> int:
            return 2

    known = registry.get("report")
    assert known is not None
    assert known.function() == 1


@pytest.mark.parametrize(
    "name",
    [
        "delay_seconds",
        "run_at",
        "max_retries",
        "timeout_seconds",
        "priority",
        "tags",
        "idempotency_key",
        "connection",
    ],
)
def test_parameters_named_like_options(name: str, registry: Registry):
    scope: dict[str, Any] = {}
    exec(f"def notify(to: str, {name}: int = 0) -> None: ...", scope)
    with pytest.raises(tasklib.TaskDefinitionError, match=f"notify: .*{name}") as caught:
        task(registry=registry)(scope["notify"])
    assert caught.value.field == name
    assert len(registry) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"max_retries": -2},
        {"max_retries": True},
        {"timeout_seconds": 0},
        {"priority": 2**31},
        {"tags": {1: "one"}},
        {"executor": "rocket"},
    ],
    ids=shown,
)
def test_options_of_a_definition(options: dict[str, Any], registry: Registry):
    with pytest.raises(tasklib.InvalidInput) as caught:
        task(registry=registry, **options)(lambda: None)
    assert (caught.value.field or "").split(".")[0] in options
    assert len(registry) == 0


def test_what_cannot_be_a_task(registry: Registry):
    def generator() -> Any:
        yield 1

    class Thing:
        pass

    def anonymous(*args: int) -> None: ...

    def positional(a: int, /) -> None: ...

    for target in (generator, Thing, anonymous, positional, 5, "text"):
        with pytest.raises(tasklib.TaskDefinitionError):
            task(registry=registry)(target)  # type: ignore[arg-type]
    assert len(registry) == 0


# -- ids and lists -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task_id", ["", "5", "not-a-uuid", 5, None, b"x"])
async def test_ids(memory: Engine, task_id: Any):
    for call in (tasklib.get_task, tasklib.cancel_task, tasklib.retry_task, tasklib.delete_task, tasklib.wait_for):
        with pytest.raises(tasklib.InvalidInput) as caught:
            call(task_id)
        assert caught.value.field == "task_id"


@pytest.mark.parametrize(("option", "value"), [("limit", 0), ("limit", -1), ("limit", True), ("limit", 10**9)])
async def test_limits_of_lists(memory: Engine, option: str, value: Any):
    with pytest.raises(tasklib.InvalidOption, match=option):
        tasklib.list_tasks(**{option: value})


async def test_an_unknown_state_in_a_list(memory: Engine):
    with pytest.raises(tasklib.InvalidOption, match="state"):
        tasklib.list_tasks(state="processing")


# -- after the submit --------------------------------------------------------------------------------------------------


async def test_changing_an_argument_after_submit_changes_nothing(engine: Engine, registry: Registry):
    @task(registry=registry)
    def keep(value: dict[str, Any]) -> dict[str, Any]:
        return value

    value: dict[str, Any] = {"items": [1, 2]}
    tags = {"batch": ["daily"]}
    submitting = asyncio.create_task(keep.options(tags=tags).submit_async(value))
    await asyncio.wait([submitting], timeout=0)  # it has begun, and has not heard from the store
    value["items"].append(3)
    tags["batch"].append("weekly")
    handle = await submitting
    value["more"] = True

    await drain_async(engine, registry=registry)

    assert await handle.result_async(timeout=10) == {"items": [1, 2]}
    assert (await handle.get_async()).tags == {"batch": ["daily"]}
