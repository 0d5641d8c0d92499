"""Results: the annotation decides what fits, when the task has run; what fits comes back as it says."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel
from typing_extensions import TypedDict

from tasklib import TaskLibError
from tasklib.core import codec
from tasklib.core.errors import InvalidValue
from tasklib.core.registry import TaskOptions, TaskType, define, define_handler


class Order(BaseModel):
    number: int
    note: str = ""


class Express(Order):
    hours: int = 1


@dataclass
class Point:
    x: int
    y: int


class Row(TypedDict):
    name: str


def broken(value: int) -> int:
    raise KeyError("a validator of one's own")


def returning(annotation: Any) -> TaskType:
    def work() -> None: ...

    work.__annotations__["return"] = annotation
    return define(work, name="work", options=TaskOptions())


def through(kind: TaskType, value: Any) -> Any:
    return kind.decode_result(codec.decode(kind.encode_result(value))["value"])


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (int, "abc", "valid integer"),
        (int, None, "valid integer"),
        (int, 1.5, "integer"),
        (str, 1, "valid string"),
        (type(None), "x", "None"),
        (Order, {"number": "x"}, "number"),
        (Order, Point(1, 2), "Order"),
        (list[int], [1, "x"], "1"),
        (Annotated[int, AfterValidator(broken)], 1, "KeyError"),
    ],
)
def test_what_does_not_fit_is_refused(annotation: Any, value: Any, reason: str):
    with pytest.raises(InvalidValue, match=r"^result: does not fit what work says it returns") as refused:
        returning(annotation).encode_result(value)
    assert reason in str(refused.value)
    assert refused.value.field == "result"


@pytest.mark.parametrize(
    ("annotation", "value", "back"),
    [
        (int, 1, 1),
        (int, True, 1),
        (float, 1, 1.0),
        (str, "x", "x"),
        (type(None), None, None),
        (int | None, None, None),
        (Order, Order(number=1), Order(number=1)),
        (Order, {"number": 1}, Order(number=1)),
        (Order, Express(number=1, hours=2), Order(number=1)),
        (Point, Point(1, 2), Point(1, 2)),
        (Row, {"name": "ada"}, {"name": "ada"}),
        (bytes, b"\xff", b"\xff"),
        (Decimal, Decimal("1.10"), Decimal("1.10")),
        (timedelta, timedelta(seconds=1.5), timedelta(seconds=1.5)),
        (datetime, datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)),
        (set[int], {1, 2}, {1, 2}),
        (dict[int, str], {1: "x"}, {1: "x"}),
        (Any, {"any": [1, None]}, {"any": [1, None]}),
        (object, "x", "x"),
    ],
)
def test_what_fits_comes_back(annotation: Any, value: Any, back: Any):
    assert through(returning(annotation), value) == back


def test_an_iterator_is_stored_as_a_list():
    assert list(through(returning(Iterable[int]), (number for number in (1, 2)))) == [1, 2]
    with pytest.raises(InvalidValue):
        returning(Iterable[int]).encode_result(word for word in ("a", "b"))


@pytest.mark.parametrize("value", [1, "abc", None, [1]])
def test_without_annotation_anything_fits(value: Any):
    def work():
        return value

    assert through(define(work, name=None, options=TaskOptions()), value) == value


def test_handlers_of_a_queue_are_held_to_theirs():
    def count(payload: Any) -> int:
        return payload  # type: ignore[no-any-return]

    handler: Callable[..., Any] = count
    assert through(define_handler("count", handler), 3) == 3
    with pytest.raises(InvalidValue):
        define_handler("count", handler).encode_result("abc")


def test_a_stored_result_that_no_longer_fits_is_an_error_of_ours():
    stored = codec.decode(returning(str).encode_result("abc"))["value"]
    with pytest.raises(TaskLibError, match="does not fit"):
        returning(int).decode_result(stored)
