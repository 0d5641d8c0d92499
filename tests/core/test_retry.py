"""When a failed task runs again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklib.core.errors import InvalidOption
from tasklib.core.retry import LONGEST_DELAY, RetryPolicy

MINUTE = 60
HOUR = 3600


def test_the_library_waits_5_10_20_seconds():
    assert [RetryPolicy().delay(retry) for retry in (1, 2, 3)] == [5, 10, 20]
    assert [RetryPolicy().delay(1, spread) for spread in (-1, 1)] == [5, 5], "exactly"


@pytest.mark.parametrize(
    ("retry", "unit", "low", "high"),
    [
        (1, 1, 8, 12),
        (2, 1, 32, 48),
        (3, MINUTE, 2.1, 3.1),
        (4, MINUTE, 8.5, 12.7),
        (5, MINUTE, 34, 51),
    ],
)
def test_the_queue_waits_within_the_printed_ranges(retry: int, unit: float, low: float, high: float):
    shortest, longest = (RetryPolicy.QUEUE.delay(retry, spread) / unit for spread in (-1, 1))
    # Printed to two digits: the delays round to what is printed.
    assert shortest == pytest.approx(low, abs=0.2)
    assert longest == pytest.approx(high, abs=0.3)
    assert shortest < RetryPolicy.QUEUE.delay(retry) / unit < longest


def test_the_queues_sixth_delay_is_under_three_hours_and_the_seventh_the_cap():
    assert RetryPolicy.QUEUE.delay(6) / HOUR == pytest.approx(2.84, abs=0.01)
    assert RetryPolicy.QUEUE.delay(7) == RetryPolicy.QUEUE.delay(8) == 6 * HOUR


def test_the_claim_api_waits_not_at_all():
    assert [RetryPolicy.AT_ONCE.delay(retry, 1) for retry in (1, 2, 100, 10**6)] == [0, 0, 0, 0]


def test_no_delay_goes_beyond_the_cap():
    assert LONGEST_DELAY == 6 * HOUR
    for retry in (14, 15, 1000, 2000, 10**6, 10**9):
        assert RetryPolicy().delay(retry) == 6 * HOUR


def test_whole_numbers_are_as_good_as_others():
    assert RetryPolicy(base=5, multiplier=2, cap=100, jitter=0).delay(10**9) == 100
    assert RetryPolicy(base=0, multiplier=2).delay(10**9) == 0, "nothing times anything is nothing"


def test_a_multiplier_of_one_or_less():
    assert [RetryPolicy(base=5, multiplier=1).delay(retry) for retry in (1, 2, 9)] == [5, 5, 5]
    assert [RetryPolicy(base=8, multiplier=0.5).delay(retry) for retry in (1, 2, 3)] == [8, 4, 2]
    assert [RetryPolicy(base=5, multiplier=0).delay(retry) for retry in (1, 2, 3)] == [5, 0, 0]


policies = st.builds(RetryPolicy, st.floats(0, 1e9), st.floats(0, 1e6), st.floats(0, 1e9), st.floats(0, 1))


@given(policies, st.integers(1, 10**9), st.floats(-1, 1))
def test_every_delay_is_within_cap_and_jitter(policy: RetryPolicy, retry: int, spread: float):
    delay = policy.delay(retry, spread)
    plain = policy.delay(retry)
    assert 0 <= plain <= policy.cap
    assert plain * (1 - policy.jitter) <= delay * 1.0000001
    assert delay <= plain * (1 + policy.jitter) * 1.0000001


@given(st.floats(0, 1e9), st.floats(1, 1e6), st.floats(0, 1e9), st.integers(1, 5000))
def test_delays_never_shrink(base: float, multiplier: float, cap: float, retry: int):
    policy = RetryPolicy(base, multiplier, cap)
    assert policy.delay(retry) <= policy.delay(retry + 1)


@given(policies)
def test_a_policy_survives_its_row(policy: RetryPolicy):
    assert RetryPolicy.from_json(policy.to_json()) == policy


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "null",
        "5",
        '"base"',
        "[]",
        '["base"]',
        '{"base": "soon"}',
        '{"base": -1}',
        '{"cap": null}',
        "{}",
    ],
)
def test_a_broken_policy_in_a_row_falls_back_to_the_defaults(text: str):
    assert RetryPolicy.from_json(text) == RetryPolicy()


def test_a_policy_in_a_row_may_be_partial_or_newer():
    assert RetryPolicy.from_json('{"base": 1, "colour": "red"}') == RetryPolicy(base=1)
    assert json.loads(RetryPolicy(base=1).to_json()).keys() == {"base", "multiplier", "cap", "jitter"}


@pytest.mark.parametrize("field", ["base", "multiplier", "cap", "jitter"])
@pytest.mark.parametrize(
    "value", [-1, float("nan"), float("inf"), 1e10, 10**400, "5", None, True], ids=lambda value: f"{value!s:.9}"
)
def test_a_field_out_of_its_range_is_refused_by_name(field: str, value: object):
    with pytest.raises(InvalidOption, match=field) as caught:
        RetryPolicy(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field == f"retry.{field}"


def test_jitter_beyond_100_percent_is_refused():
    with pytest.raises(InvalidOption):
        RetryPolicy(jitter=1.1)
