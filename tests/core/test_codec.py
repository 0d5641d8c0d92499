"""The one JSON contract: what comes back, and what is refused by name."""

import enum
import json
import math
from typing import Any

import pydantic_core
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasklib.core import codec
from tasklib.core.codec import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, decode, encode, vet, vet_all
from tasklib.core.errors import InvalidValue
from tasklib.core.redact import mask_text
from tests.secrets import SECRET_TEXTS, SECRET_URLS

LINES = "password='" + "geheim\n" * 2000 + "'"

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


def same(one: Any, other: Any) -> bool:
    """Equal and of the same types all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def nested(depth: int, shape: type = list) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if shape is list else {"in": value}
    return value


@given(values)
def test_what_goes_in_comes_back(value: Any):
    assert same(decode(encode(value, field="payload")), value)


@given(values)
def test_the_text_holds_no_number_that_a_database_might_rewrite(value: Any):
    def number(text: str) -> float:
        assert "e" not in text.lower()
        assert not text.startswith("-0.0") or float(text) != 0
        return float(text)

    json.loads(encode(value, field="payload"), parse_float=number)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e22, "10000000000000000000000.0"),
        (1e16, "10000000000000000.0"),
        (-1e16, "-10000000000000000.0"),
        (1e-7, "0.0000001"),
        (-1.5e-7, "-0.00000015"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (0.1, "0.1"),
        (1.0, "1.0"),
        (2**70, str(2**70)),
        ([1e22, {"a": -0.0}], '[10000000000000000000000.0,{"a":0.0}]'),
        ({"ü": "✓"}, '{"ü":"✓"}'),
        ((1, 2), "[1,2]"),
        (None, "null"),
    ],
)
def test_the_text_of(value: Any, text: str):
    assert encode(value, field="payload") == text


@pytest.mark.parametrize("value", [1e-300, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, -1e-300, 1e300])
def test_extreme_floats_come_back(value: float):
    assert same(decode(encode([value], field="payload")), [value])


class Colour(str, enum.Enum):  # noqa: UP042 - people have them, and their str() is not their value
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    __slots__ = ()


class Share(float):
    pass


def test_subclasses_become_what_they_hold():
    value = {Colour.RED: [Colour.RED, Level.HIGH, Word("w"), Share(0.5)], Word("k"): True}
    assert same(decode(encode(value, field="payload")), {"red": ["red", 3, "w", 0.5], "k": True})


def cyclic() -> Any:
    value: list[Any] = []
    value.append({"again": value})
    return value


REFUSED: dict[str, tuple[Any, str]] = {
    "nan": (math.nan, "payload"),
    "infinity": (math.inf, "payload"),
    "minus infinity": ([1, [-math.inf]], "payload[1][0]"),
    "1e400": (float("1e400"), "payload"),
    "nan below": ({"a": {"b": [0, math.nan]}}, "payload.a.b[1]"),
    "NUL": ("a\0b", "payload"),
    "NUL below": ({"a": ["\0"]}, "payload.a[0]"),
    "NUL in a key": ({"a\0": 1}, "payload"),
    "surrogate": ("\ud800", "payload"),
    "surrogate below": ({"a": "x\udfff"}, "payload.a"),
    "surrogate in a key": ({"\ud800": 1}, "payload"),
    "surrogate in a key with a bad value": ({"\ud800": math.nan}, "payload"),
    "65 lists": (nested(MAX_DEPTH + 1), "payload"),
    "65 objects": (nested(MAX_DEPTH + 1, dict), "payload"),
    "a thousand lists": (nested(1000), "payload"),
    "cycle": (cyclic(), "payload"),
    "int key": ({1: 2}, "payload"),
    "None key below": ({"a": {None: 1}}, "payload.a"),
    "tuple key": ({(1, 2): 3}, "payload"),
    "4301 digits": (10**MAX_DIGITS, "payload"),
    "minus 4301 digits": ([-(10**MAX_DIGITS)], "payload[0]"),
    "bytes": (b"x", "payload"),
    "set": ({"a": {1}}, "payload.a"),
    "object": (object(), "payload"),
    "complex": (1j, "payload"),
}


@pytest.mark.parametrize(("value", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_the_field_named(value: Any, field: str):
    with pytest.raises(InvalidValue) as caught:
        encode(value, field="payload")
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    str(caught.value).encode()


def test_the_limits_themselves_are_allowed():
    assert decode(encode(nested(MAX_DEPTH), field="payload")) == nested(MAX_DEPTH)
    assert decode(encode(nested(MAX_DEPTH, dict), field="payload")) == nested(MAX_DEPTH, dict)
    for digits in (10**MAX_DIGITS - 1, 9 * 10 ** (MAX_DIGITS - 1), 1 - 10**MAX_DIGITS):
        assert decode(encode(digits, field="payload")) == digits
    whole = "x" * (MAX_BYTES - 2)
    assert len(encode(whole, field="payload")) == MAX_BYTES


@pytest.mark.parametrize(
    ("value", "limit"), [("x" * (MAX_BYTES - 1), MAX_BYTES), ("é" * 5, 11), ([1, 2, 3], 6), (1e300, 300)]
)
def test_too_large_is_refused_with_both_sizes(value: Any, limit: int):
    with pytest.raises(InvalidValue, match=f"{limit:,}") as caught:
        encode(value, field="result", limit=limit)
    assert caught.value.field == "result"


def test_a_text_is_measured_in_bytes():
    assert encode("é" * 5, field="payload", limit=12)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "NaN", "-Infinity", "[Infinity]", "'a'", '"\t"', "1 2", b"\xff"])
def test_what_is_no_json_is_refused(text: str | bytes):
    with pytest.raises(InvalidValue) as caught:
        decode(text, field="payload")
    assert caught.value.field == "payload"


def test_deep_text_is_refused_and_not_a_crash():
    with pytest.raises(InvalidValue, match="deeper"):
        decode("[" * 500_000, field="payload")


def test_a_text_with_too_many_digits_is_refused():
    with pytest.raises(InvalidValue, match="digits"):
        decode("1" * (MAX_DIGITS + 1), field="payload")


def write_result(check: Any, *arguments: Any) -> Any:
    try:
        return decode(check(*arguments, field="payload"))
    except InvalidValue as refused:
        return refused.code


def dumps(value: Any, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\0", "\\u0000", "\ud800", "NaN", "1e5", "-0", "[[[", "\\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@settings(max_examples=400)
@given(anything, st.booleans())
def test_a_serialisers_text_gets_the_same_verdict(value: Any, ascii_only: bool):
    assert same(write_result(vet, dumps(value, ascii_only=ascii_only)), write_result(encode, value))


@given(values)
def test_pydantics_text_gets_the_same_verdict(value: Any):
    text = pydantic_core.to_json(value).decode()
    assert same(write_result(vet, text), value)
    assert vet(vet(text, field="payload"), field="payload") == vet(text, field="payload")


VETTED: list[Any] = [
    *[value for value, _ in REFUSED.values()],
    nested(MAX_DEPTH),
    nested(MAX_DEPTH, dict),
    10**MAX_DIGITS - 1,
    9 * 10 ** (MAX_DIGITS - 1),
    ["["] * 100,
    1e22,
    -0.0,
    [-0.0, 0.0, -1e-7],
    "x" * MAX_BYTES,
    "é" * (MAX_BYTES // 2),
    "x" * (MAX_BYTES - 2),
]


@pytest.mark.parametrize("value", VETTED, ids=[f"{type(value).__name__}-{index}" for index, value in enumerate(VETTED)])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_vet_agrees_with_encode_at_the_limits(value: Any, ascii_only: bool):
    try:
        text = dumps(value, ascii_only=ascii_only)
        if not same(json.loads(text), value):
            return  # the serialiser changed it (keys that are no text): what encode would say of the original is moot
    except (TypeError, ValueError, RecursionError):
        return  # no serialiser makes a text of it
    if ascii_only and not text.isascii():
        raise AssertionError(text)
    if len(text) > MAX_BYTES:
        assert write_result(vet, text) == "invalid_value"
    else:
        assert same(write_result(vet, text), write_result(encode, value))


@settings(max_examples=400)
@given(st.lists(anything, max_size=4), st.booleans(), st.integers(10, 200))
def test_many_texts_get_the_verdict_that_each_gets(them: list[Any], ascii_only: bool, limit: int):
    def each(check: Any) -> Any:
        try:
            return check([dumps(value, ascii_only=ascii_only) for value in them])
        except InvalidValue as refused:
            return str(refused)

    together = each(lambda texts: vet_all(texts, field="payload", limit=limit))
    assert together == each(lambda texts: [vet(text, field="payload", limit=limit) for text in texts])


@pytest.mark.parametrize("value", VETTED, ids=[f"{type(value).__name__}-{index}" for index, value in enumerate(VETTED)])
def test_one_at_the_limits_among_many_gets_its_own_verdict(value: Any):
    try:
        text = dumps(value, ascii_only=False)
    except (TypeError, ValueError, RecursionError):
        return  # no serialiser makes a text of it

    def last_of_many(text: str, *, field: str) -> str:
        return vet_all(["{}", "[1]", text], field=field)[-1]

    assert same(write_result(last_of_many, text), write_result(vet, text))


SETTLED = {
    "[1e22]": "[10000000000000000000000.0]",
    '{"a":1E-7}': '{"a":0.0000001}',
    '{"a":[2,-0.0]}': '{"a":[2,0.0]}',
    "-0": "0",
    '"\\ud83d\\ude00"': '"😀"',
}


@pytest.mark.parametrize("text", SETTLED)
def test_what_a_database_might_rewrite_is_rewritten_first(text: str):
    assert vet(text, field="payload") == SETTLED[text]
    assert vet_all(["{}", text, "[1]"], field="payload") == ["{}", SETTLED[text], "[1]"]


@pytest.mark.parametrize("text", ["NaN", "[1,-Infinity]", '["\\u0000"]', '"\\ud800"', "1" * (MAX_DIGITS + 1)])
def test_what_no_database_takes_is_refused_alone_and_among_many(text: str):
    with pytest.raises(InvalidValue) as alone:
        vet(text, field="payload")
    with pytest.raises(InvalidValue) as among_many:
        vet_all(["{}", text, "[1]"], field="payload")
    assert str(among_many.value) == str(alone.value)


def test_vet_leaves_what_is_ordinary_as_it_is():
    text = '{"to": "ada@example.com", "n": [1, 2.5, true, null], "text": "NULL -1 e5"}'
    assert vet(text, field="payload") == text


class TestClipError:
    def test_a_short_text_is_kept(self):
        assert codec.clip_error("boom ✓") == "boom ✓"

    def test_unstorable_characters_are_written_out(self):
        assert codec.clip_error("a\0b\ud800c") == "a\\x00b\\ud800c"

    @given(st.text(max_size=300), st.integers(40, 200))
    def test_it_is_never_longer_than_the_limit_and_always_storable(self, text: str, limit: int):
        clipped = codec.clip_error(text, limit)
        assert len(clipped.encode()) <= limit
        assert codec.text_problem(clipped) is None

    def test_of_a_huge_error_no_more_is_searched_for_secrets_than_is_kept(self, monkeypatch: pytest.MonkeyPatch):
        searched: list[int] = []

        def counted(text: str) -> str:
            searched.append(len(text))
            return mask_text(text)

        monkeypatch.setattr(codec, "mask_text", counted)
        clipped = codec.clip_error("BEGIN" + "key = 'value', " * 700_000 + "END")
        assert sum(searched) < 400_000
        assert (len(clipped), clipped[:5], clipped[-3:], clipped.count("... cut ...")) == (16 * 1024, "BEGIN", "END", 1)

    @pytest.mark.parametrize("secret", [*SECRET_URLS, *SECRET_TEXTS, LINES])
    def test_no_half_of_a_secret_is_left_of_a_huge_error(self, secret: str):
        """Wherever a cut goes through it, it is masked as if all of the text had been."""
        limit, filler = 1000, "at 12:30 in f(x)\n" * 8_000
        edge = limit + 2 * codec._MARGIN
        for beside in (20, 600, edge - 5):
            text = f"{filler[:beside]} {secret} {filler} {secret} {filler[:beside]}"
            clipped, whole = codec.clip_error(text, limit), mask_text(text)
            assert "geheim" not in clipped
            assert clipped.startswith(whole[: limit // 5])
            assert clipped.endswith(whole[-limit // 2 :])
        # What a mask makes shorter brings what lies behind it nearer to the end.
        large = f"password={'geheim' * (edge // 6)}"[: edge - 30]
        assert "geheim" not in codec.clip_error(f"x {large} {secret} {filler} {secret} {large} x", limit)

    def test_beginning_and_end_are_kept(self):
        clipped = codec.clip_error("BEGIN" + "é" * 100_000 + "END")
        assert clipped.startswith("BEGIN")
        assert clipped.endswith("END")
        assert "cut" in clipped


@pytest.mark.parametrize(("text", "problem"), [("fine ✓", None), ("a\0", "NUL"), ("\udc00", "surrogate")])
def test_text_problem(text: str, problem: str | None):
    found = codec.text_problem(text)
    assert found is None if problem is None else problem in (found or "")
