"""What one API refuses every API refuses, under the same code and for the same field; what one takes,
all take, and it is the same task."""

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.submitting.apis import Court, Verdict, quick


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


texts = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["", "a\0b", "\ud800", "\udfff\ud83d", "\u202e", "$json", "__class__", "x" * 255, "x" * 256]),
    # One at a time: two halves of a character are that character once they are JSON, and so another value.
    st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl"]), max_size=1),
)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, 2**63, 10**4299]),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.one_of(
    st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
        max_leaves=8,
    ),
    st.sampled_from([62, 63, 64, 65, 500]).map(nested),
)
unwritable = st.recursive(
    st.sampled_from([object(), {1: 2}, {None: 1}, {"a": {2: 3}}, math.nan]),
    lambda inner: st.one_of(st.lists(inner, min_size=1, max_size=2), st.fixed_dictionaries({"k": inner})),
    max_leaves=3,
)
"""What only Python can say."""
zones = st.one_of(
    st.none(), st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(-timedelta(hours=12, minutes=30))])
)
whole = st.one_of(st.integers(-3, 3), st.integers(2**31 - 3, 2**31 + 3), st.just(-(2**31)), st.just(10**400))
wrong = st.one_of(st.booleans(), st.sampled_from([1.5, math.nan, "3", "", "x", [], {}]))
"""No whole numbers. A number like 3.0 is one where it comes as JSON."""
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "max_attempts": whole,
    "timeout_seconds": whole.filter(lambda number: number >= 0),  # the command line has no negative durations
    "priority": whole,
    "idempotency_key": texts,
    "name": texts,
    "tags": st.fixed_dictionaries(
        {"k": values.filter(lambda value: "nan" not in str(value) and "inf" not in str(value))}
    ),
    "run_at": st.datetimes(timezones=zones).map(lambda moment: moment.replace(microsecond=0)),
}


@given(value=values)
@quick
def test_any_value(court: Court, value: Any):
    court.agrees(court.house.apis(), value, {})


@given(value=unwritable)
@quick
def test_what_is_no_json(court: Court, value: Any):
    apis = [*court.house.library(), *court.house.by_name()]
    assert court.agrees(apis, value, {}) == "invalid_value"


@pytest.mark.parametrize("option", OPTIONS)
def test_any_option(court: Court, option: str):
    @given(value=OPTIONS[option])
    @settings(quick, max_examples=20)
    def check(value: Any) -> None:
        house = court.house
        apis = [*house.by_name(), *house.written()] if option == "name" else house.apis()
        if isinstance(value, datetime) and value.tzinfo is None:  # where it is written, that is wrong usage
            apis = [api for api in apis if api not in house.written()]
        court.agrees(apis, "fine", {option: value})

    check()


@pytest.mark.parametrize("option", ["max_attempts", "timeout_seconds", "priority"])
def test_what_is_no_whole_number(court: Court, option: str):
    @given(value=wrong)
    @settings(quick, max_examples=10)
    def check(value: Any) -> None:
        house = court.house
        assert court.agrees([*house.library(), *house.by_name()], "fine", {option: value}) == "invalid_option"
        is_json = not isinstance(value, float) or not math.isnan(value)
        told = court.verdict(house.by_rest, "fine", {option: value})
        assert told == (Verdict("invalid_option", option) if is_json else Verdict("invalid_value", "payload"))

    check()
