"""Arguments reach the handler as the types they were given as, and results come back so: through JSON, a real store and
a real worker."""

import dataclasses
import enum
import ipaddress
import math
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict  # Pydantic asks for this one below Python 3.12

from tasklib.api.decorator import task
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain_async


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Line(BaseModel):
    text: str
    price: Decimal


class Invoice(BaseModel):
    number: uuid.UUID
    issued: datetime
    lines: list[Line]
    colour: Colour = Colour.RED


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: float
    label: str | None = None


class Size(NamedTuple):
    width: int
    height: int


class Settings(TypedDict):
    name: str
    level: Level


NOW = datetime(2025, 10, 25, 18, 0, 5, 123456, tzinfo=UTC)
ID = uuid.UUID("550e8400-e29b-41d4-a716-446655440001")
INVOICE = Invoice(number=ID, issued=NOW, lines=[Line(text="tea", price=Decimal("2.50"))], colour=Colour.GREEN)

# Annotation and value.
TYPED: dict[str, tuple[Any, Any]] = {
    "datetime": (datetime, NOW),
    "datetime in another zone": (datetime, NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))),
    "naive datetime": (datetime, datetime(2025, 10, 25, 18, 0)),  # noqa: DTZ001 - it must come back naive
    "date": (date, date(2025, 10, 25)),
    "time": (time, time(18, 0, 5)),
    "timedelta": (timedelta, timedelta(days=1, microseconds=7)),
    "uuid": (uuid.UUID, ID),
    "decimal": (Decimal, Decimal("0.10")),
    "large decimal": (Decimal, Decimal("12345678901234567890.123456789")),
    "enum": (Colour, Colour.GREEN),
    "int enum": (Level, Level.HIGH),
    "model": (Invoice, INVOICE),
    "models": (list[Invoice], [INVOICE, INVOICE]),
    "dataclass": (Point, Point(1.5, -2.0, "here")),
    "dataclasses by name": (dict[str, Point], {"a": Point(1, 2)}),
    "named tuple": (Size, Size(3, 4)),
    "typed dict": (Settings, {"name": "x", "level": Level.LOW}),
    "bytes": (bytes, b"\x00\xff\xfe binary"),
    "empty bytes": (bytes, b""),
    "set": (set[int], {1, 2, 3}),
    "frozenset": (frozenset[Colour], frozenset({Colour.RED})),
    "tuple": (tuple[int, str, bool], (1, "two", True)),
    "numbers as keys": (dict[int, str], {1: "one", -2: "minus two"}),
    "uuids as keys": (dict[uuid.UUID, int], {ID: 1}),
    "optional": (int | None, None),
    "union, number": (int | str, 5),
    "union, text": (int | str, "5"),
    "literal": (Literal["a", "b"], "b"),
    "path": (PurePosixPath, PurePosixPath("/tmp/file.csv")),
    "address": (ipaddress.IPv4Address, ipaddress.IPv4Address("127.0.0.1")),
    "bool": (bool, True),
    "int": (int, 2**63),
    "float": (float, 0.1),
}

# Values without a type to guide them: plain JSON comes back as it went in.
PLAIN: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "integer": -7,
    "large integer": 2**64 + 1,
    "huge integer": -(10**400),
    "float": 3.25,
    "whole float": 2.0,
    "large float": 1.7976931348623157e308,
    "small float": 5e-324,
    "exponent": 1e23,
    "empty text": "",
    "text": 'quotes " and \\ back\nslash\t',
    "unicode": "naïve 日本語 🚀 \u200e \x7f",
    "escape look-alike": "\\u0000 \\ud800",
    "empty list": [],
    "empty object": {},
    "nested": {"a": [1, {"b": [None, True, [[]]]}], "": {"": ""}},
    "keys": {"1": 1, "a.b": 2, "$": 3, "ключ": 4},
    "many": list(range(2000)),
    "deep": [[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]],
}


def echo_of(annotation: Any, registry: Registry, received: list[Any], *, is_async: bool = False) -> Any:
    """A task that keeps what it was given and gives it back."""

    def echo(value: Any) -> Any:
        received.append(value)
        return value

    async def echo_async(value: Any) -> Any:
        received.append(value)
        return value

    function: Callable[..., Any] = echo_async if is_async else echo
    function.__annotations__ = {"value": annotation, "return": annotation}
    return task(name="echo", registry=registry)(function)


async def round_trip(engine: Engine, annotation: Any, value: Any, *, is_async: bool = False) -> tuple[Any, Any]:
    registry, received = Registry(), list[Any]()
    handle = await echo_of(annotation, registry, received, is_async=is_async).submit_async(value)
    await drain_async(engine, registry=registry)
    return received[0], await handle.result_async(timeout=10)


async def test_every_type_at_once(engine: Engine):
    """On each backend: what a store does to JSON it does to all of it."""
    annotations = tuple(annotation for annotation, _ in TYPED.values())
    values = tuple(value for _, value in TYPED.values())
    received, returned = await round_trip(engine, tuple.__class_getitem__(annotations), values)
    assert received == values
    assert returned == values
    assert list(map(type, received)) == list(map(type, returned)) == list(map(type, values))


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
@pytest.mark.parametrize("case", TYPED)
async def test_types(memory: Engine, case: str, is_async: bool):
    annotation, value = TYPED[case]
    received, returned = await round_trip(memory, annotation, value, is_async=is_async)
    assert (received, returned) == (value, value)
    assert type(received) is type(value)
    assert type(returned) is type(value)
    if isinstance(value, datetime):
        assert received.utcoffset() == returned.utcoffset() == value.utcoffset()


@pytest.mark.parametrize("case", PLAIN)
async def test_plain_values(engine: Engine, case: str):
    value = PLAIN[case]
    received, returned = await round_trip(engine, Any, value)
    assert (received, returned) == (value, value)
    assert (type(received), type(returned)) == (type(value), type(value))


async def test_negative_zero_is_zero(engine: Engine):
    received, returned = await round_trip(engine, Any, -0.0)
    assert (math.copysign(1, received), math.copysign(1, returned)) == (1, 1)


async def test_defaults_keywords_and_extra_arguments(engine: Engine, registry: Registry):
    @task(registry=registry)
    def collect(first: int, second: str = "two", *, third: Colour = Colour.RED, **rest: int) -> list[Any]:
        return [first, second, third.name, rest]

    some = await collect.submit_async(1)
    more = await collect.submit_async(1, "zwei", third=Colour.GREEN, fourth=4, fifth=5)
    await drain_async(engine, registry=registry)
    assert await some.result_async(timeout=10) == [1, "two", "RED", {}]
    assert await more.result_async(timeout=10) == [1, "zwei", "GREEN", {"fourth": 4, "fifth": 5}]


async def test_parameter_names_that_models_do_not_like(engine: Engine, registry: Registry):
    @task(registry=registry)
    def odd(_hidden: int, model_dump: str, copy: bool, schema: int, json: int, self_: int) -> list[Any]:
        return [_hidden, model_dump, copy, schema, json, self_]

    handle = await odd.submit_async(1, "two", True, schema=4, json=5, self_=6)
    await drain_async(engine, registry=registry)
    assert await handle.result_async(timeout=10) == [1, "two", True, 4, 5, 6]
    assert set((await handle.get_async()).kwargs) == {"_hidden", "model_dump", "copy", "schema", "json", "self_"}


async def test_what_is_given_is_converted_as_the_model_says(memory: Engine, registry: Registry):
    """Pydantic's own ways: text that is a number is one, and the stored form is the converted one."""

    @task(registry=registry)
    def convert(number: int, when: datetime, point: Point) -> str:
        return f"{number + 1} {when.year} {point.x}"

    given: Any = {"number": "41", "when": "2025-10-25T18:00:00Z", "point": {"x": 1, "y": 2}}
    handle = await convert.submit_async(**given)
    stored = (await handle.get_async()).kwargs
    assert stored["number"] == 41
    await drain_async(memory, registry=registry)
    assert await handle.result_async(timeout=10) == "42 2025 1.0"
