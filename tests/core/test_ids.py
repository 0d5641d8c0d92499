"""Ids sort by the time they were made."""

import pickle
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklib.core.errors import InvalidInput
from tasklib.core.ids import as_task_id, uuid7, uuid7s

moments = st.integers(0, (1 << 48) - 1)
sequences = st.integers(0, 0xFFF)
entropies = st.integers(0, (1 << 62) - 1)


@given(moments, sequences, entropies)
def test_an_id_is_a_version_7_uuid(unix_ms: int, sequence: int, entropy: int):
    made = uuid7(unix_ms, sequence, entropy)
    assert (made.version, made.variant) == (7, RFC_4122)
    assert made.int >> 80 == unix_ms
    assert (made.int >> 64) & 0xFFF == sequence
    assert made.int & ((1 << 62) - 1) == entropy


@given(st.tuples(moments, sequences), st.tuples(moments, sequences), entropies, entropies)
def test_ids_sort_by_time_then_sequence(one: tuple[int, int], other: tuple[int, int], first: int, second: int):
    if one != other:
        assert (uuid7(*one, first) < uuid7(*other, second)) == (one < other)
        assert (str(uuid7(*one, first)) < str(uuid7(*other, second))) == (one < other)


@given(st.integers(0, 1 << 80), st.integers(0, 1 << 80), st.integers(0, 1 << 80))
def test_whatever_does_not_fit_still_makes_an_id(unix_ms: int, sequence: int, entropy: int):
    assert uuid7(unix_ms, sequence, entropy).version == 7


@given(st.lists(st.tuples(moments, sequences, entropies), max_size=5))
def test_ids_by_the_thousand_are_those_made_one_by_one(them: list[tuple[int, int, int]]):
    made = uuid7s([(unix_ms << 12) + sequence for unix_ms, sequence, _ in them], [entropy for *_, entropy in them])
    assert made == [uuid7(*each) for each in them]


def test_an_id_is_a_uuid_in_every_respect():
    made = uuid7(1, 2, 3)
    like = UUID(str(made))
    assert made == like == pickle.loads(pickle.dumps(made))
    assert (hash(made), made.bytes, made.is_safe, repr(made)) == (hash(like), like.bytes, like.is_safe, repr(like))


def test_an_id_may_come_as_text():
    made = uuid7(1, 2, 3)
    for form in (made, str(made), str(made).upper(), made.hex):
        assert as_task_id(form) == made


@pytest.mark.parametrize("value", ["", "nonsense", "123", None, 5, 5.0, b"x" * 16, ["a"], "x" * 10_000])
def test_anything_else_is_refused_by_name(value: object):
    with pytest.raises(InvalidInput) as caught:
        as_task_id(value)  # type: ignore[arg-type]
    assert caught.value.field == "task_id"
    assert len(str(caught.value)) < 200


def test_an_id_of_another_version_is_an_id():
    other = UUID("12345678-1234-4234-9234-123456789abc")
    assert as_task_id(str(other)) == other
