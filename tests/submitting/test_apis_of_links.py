"""What one API refuses every API refuses, of `unique`, `after`, `on` and `before`, too; what one takes all take, and it
is the same task."""

import math
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasklib import InvalidInput, InvalidOption, TaskDefinitionError, debounce, throttle
from tasklib import flow as tasklib_flow
from tasklib.api.decorator import task
from tasklib.core.flows import FLOW_FEEDS_LIMIT
from tasklib.core.ids import as_task_id
from tasklib.core.registry import Registry
from tests.submitting.apis import Court, Rule, Submit, quick

keys = st.sampled_from(["k", "", "k" * 255, "k" * 256, "a\0b", "\ud800", "\u202e"])
lengths = st.sampled_from([0, -1, -0.001, 0.5, 5, 5.0, 9, 3_162_240_000, 3_162_240_001, 1e308, 10**400])
odd_lengths = st.sampled_from([math.nan, math.inf, True, False, "5", "", [], {}])
"""What the command line has no word for, and JSON not for all."""
untils = st.sampled_from(["started", "finished", "elapsed", "", "end", "STARTED"])
conflicts = st.sampled_from(["join", "replace"])


def rules(seconds: st.SearchStrategy[Any]) -> st.SearchStrategy[Rule]:
    parts = {"until": untils, "conflict": conflicts, "seconds": seconds, "at_most": seconds}
    return st.fixed_dictionaries({"key": keys}, optional=parts).map(Rule)


def in_words(rule: Rule) -> bool:
    """Whether the command line can say it: durations are not negative there, and a throttle is one by its name."""
    lengths = [rule[name] for name in ("seconds", "at_most") if rule.get(name) is not None]
    plain = all(not isinstance(each, bool) and 0 <= each < 1e15 for each in lengths)
    return plain and not ("seconds" in rule and rule.get("until") != "elapsed" and rule.get("conflict") != "replace")


def of_python(court: Court) -> list[Submit]:
    return [*court.house.library(), *court.house.by_name()]


@given(rule=rules(lengths))
@settings(quick, max_examples=60)
def test_any_rule(court: Court, rule: Rule):
    house = court.house
    apis = [*of_python(court), house.by_rest, *([house.by_cli] if in_words(rule) else [])]
    court.agrees(apis, "fine", {"unique": rule})


@given(rule=rules(odd_lengths))
@quick
def test_what_is_no_length(court: Court, rule: Rule):
    house = court.house
    lengths = [rule[name] for name in ("seconds", "at_most") if name in rule]
    in_json = all(not isinstance(each, float) or math.isfinite(each) for each in lengths)
    court.agrees([*of_python(court), *([house.by_rest] if in_json else [])], "fine", {"unique": rule})


RULES: dict[str, tuple[Rule, str | None]] = {
    "at most below": (
        Rule(key="k", until="started", conflict="replace", seconds=5, at_most=4.9),
        "unique.at_most",
    ),
    "at most the same": (Rule(key="k", until="started", conflict="replace", seconds=5, at_most=5), None),
    "at most alone": (Rule(key="k", at_most=5), "unique.at_most"),
    "at most of a throttle": (Rule(key="k", until="elapsed", seconds=5, at_most=9), "unique.at_most"),
    "no seconds": (Rule(key="k", until="elapsed"), "unique.seconds"),
    "a throttle that replaces": (Rule(key="k", until="elapsed", conflict="replace", seconds=5), "unique.seconds"),
    "a debounce until the end": (Rule(key="k", until="finished", conflict="replace", seconds=5), "unique.seconds"),
    "nothing": (Rule(key="k", seconds=0, until="elapsed"), "unique.seconds"),
    "too long": (Rule(key="k" * 256), "unique.key"),
    "empty": (Rule(key=""), "unique.key"),
    "until": (Rule(key="k", until=""), "unique.until"),
    "debounce": (Rule(key="k", until="started", conflict="replace", seconds=5, at_most=60), None),
    "throttle": (Rule(key="k", until="elapsed", seconds=5), None),
    "replaces": (Rule(key="k", conflict="replace"), None),
}


@pytest.mark.parametrize("case", RULES)
def test_each_rule(court: Court, case: str):
    rule, field = RULES[case]
    house = court.house
    verdicts = [court.verdict(api, "fine", {"unique": rule}) for api in house.apis()]
    expected = (None, None) if field is None else ("invalid_option", field)
    assert {(each.code, each.field) for each in verdicts} == {expected}, verdicts


def test_what_is_beyond_all_numbers_is_refused_over_http(court: Court):
    for number in ("1e400", "-1e400"):
        answer = court.run(
            court.house.client.post(
                "/api/tasks",
                content=f'{{"type":"t","payload":1,"options":{{"unique":{{"key":"k","seconds":{number}}}}}}}',
                headers={"Content-Type": "application/json"},
            )
        )
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_option")
        assert answer.json()["field"] == "options.unique.seconds"


@pytest.mark.parametrize("value", ["k", 5, True, ["k"], b"k", object()], ids=lambda value: type(value).__name__)
def test_what_is_no_rule(court: Court, value: Any):
    house = court.house
    apis = [*of_python(court), *([house.by_rest] if isinstance(value, (str, int, list)) else [])]
    assert court.agrees(apis, "fine", {"unique": value}) == "invalid_option"


@pytest.mark.parametrize("option", ["run_at", "after"])
@pytest.mark.parametrize("conflict", ["join", "replace"])
def test_a_rule_beside_other_options(court: Court, people: "People", option: str, conflict: str):
    """A debounce says when it runs, and what waits for others replaces nothing."""
    value = {"run_at": datetime(2030, 1, 1, tzinfo=UTC), "after": [people.waiting]}[option]
    seconds = {"seconds": 5} if conflict == "replace" else {}
    rule = Rule(key="k", until="started", conflict=conflict, **seconds)
    refused = court.agrees(court.house.apis(), "fine", {"unique": rule, option: value})
    assert refused == ("invalid_option" if conflict == "replace" else None)


@pytest.mark.parametrize("unique", ["k", "computed", 5, True, {"key": "k"}, b"k"], ids=repr)
def test_what_is_no_rule_of_a_type(unique: Any):
    registry = Registry()
    with pytest.raises((InvalidOption, TaskDefinitionError)) as refused:
        task(registry=registry, unique=unique)(lambda: None)
    assert refused.value.field == "unique"
    assert len(registry) == 0


def test_the_short_forms_need_their_seconds():
    short: Any
    for short in (debounce, throttle):
        for seconds in (None, math.nan, -1, 0, "5", True):
            with pytest.raises(InvalidOption) as refused:
                short("k", seconds)
            assert refused.value.field == "unique.seconds"
            assert "unique.seconds" in str(refused.value)


# -- links ---------------------------------------------------------------------------------------------------------


class People:
    """Tasks of the queue that others may name."""

    def __init__(self, court: Court) -> None:
        self.handle = court.run(court.house.keep.submit_async("a parent"))
        self.waiting: UUID = self.handle.id
        self.cancelled = court.run(court.house.keep.submit_async("another")).id
        court.run(court.house.engine.cancel(self.cancelled))
        child = court.house.keep.options(after=[self.handle], on="end")
        self.child = court.run(child.submit_async("a child"))
        self.unknown = uuid4()


@pytest.fixture
def people(court: Court) -> People:
    return People(court)


NAMED = ["handle", "waiting", "cancelled", "child", "unknown", "text", "upper", "plain", "urn", "braces"]
NO_IDS = [
    *("", "x", "0198f2c4", "a\0b", "-" * 36, "0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10\n"),
    *(" 198f2c47d6e7c358b2f0c1a5f3e9d10", "+198f2c47d6e7c358b2f0c1a5f3e9d10", "0x98f2c47d6e7c358b2f0c1a5f3e9d10"),
    *("0198f2c4_d6e7c358b2f0c1a5f3e9d10", "0198-f2c47d6e7c358b2f0c1a5f3e9d10", "{0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10"),
    *("\N{ARABIC-INDIC DIGIT ONE}" * 32, "uuid:0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10"),
]
NO_LISTS: list[Any] = ["x", "", 5, True, {}, {"id": 1}, 1.5]
named = st.sampled_from([*NAMED, *NO_IDS, 5, True])


def person(people: People, name: Any) -> Any:
    text = str(people.waiting)
    forms = {
        "text": text,
        "upper": text.upper(),
        "plain": text.replace("-", ""),
        "urn": f"urn:uuid:{text}",
        "braces": f"{{{text}}}",
    }
    return forms.get(name, vars(people).get(name, name)) if isinstance(name, str) else name


@given(names=st.lists(named, max_size=3), on=st.sampled_from([None, "success", "end", "", "failure"]))
@settings(quick, max_examples=60)
def test_any_parents(court: Court, people: People, names: list[Any], on: str | None):
    options: dict[str, Any] = {"after": [person(people, name) for name in names]}
    if on is not None:
        options["on"] = on
    house = court.house
    in_words = names and not any(isinstance(name, int) for name in names)
    court.agrees([*of_python(court), house.by_rest, *([house.by_cli] if in_words else [])], "fine", options)


@pytest.mark.parametrize("text", NO_IDS, ids=ascii)
def test_what_is_no_id(court: Court, text: str):
    for option in ("after", "before"):
        apis = [*of_python(court), court.house.by_rest, *([court.house.by_cli] if option == "after" else [])]
        assert court.agrees(apis, "fine", {option: [text]}) == "invalid_option"
    with pytest.raises(InvalidInput):  # and no other task's, of which it would be said that it is not there
        as_task_id(text)


@given(names=st.lists(named, max_size=3))
@settings(quick, max_examples=60)
def test_any_children(court: Court, people: People, names: list[Any]):
    options = {"before": [person(people, name) for name in names]}
    court.agrees([*of_python(court), court.house.by_rest], "fine", options)


@pytest.mark.parametrize("option", ["after", "before"])
@pytest.mark.parametrize("value", NO_LISTS, ids=repr)
def test_what_is_no_list(court: Court, option: str, value: Any):
    assert court.agrees([*of_python(court), court.house.by_rest], "fine", {option: value}) == "invalid_option"


@pytest.mark.parametrize("on", ["end", "success", "", "failure", 5, True, ["end"]], ids=repr)
def test_how_it_waits_for_nothing(court: Court, on: Any):
    apis = [*of_python(court), court.house.by_rest, *([court.house.by_cli] if isinstance(on, str) else [])]
    assert court.agrees(apis, "fine", {"on": on}) == "invalid_option"


def test_more_children_than_there_may_be(court: Court, people: People):
    many = [uuid4() for _ in range(FLOW_FEEDS_LIMIT + 1)]
    apis: list[Submit] = [court.house.submit_task, court.house.by_manager, court.house.by_remote, court.house.by_rest]
    assert court.agrees(apis, "fine", {"before": many}) == "invalid_option"


def test_what_follows_in_a_chain_is_checked_like_any_other(court: Court, people: People):
    house = court.house
    value: Any
    for value in [*NO_LISTS, ["x"], [5]]:
        chain = court.run(house.fluent("first").add_async(1))
        before = court.run(house.stored())
        with pytest.raises(InvalidOption) as refused:
            court.run(chain.then_async("second", 2, after=value))
        assert refused.value.field == "after"
        assert court.run(house.stored()) == before


def test_how_a_task_of_a_flow_waits_for_nothing(court: Court):
    house = court.house

    async def in_library() -> None:
        async with tasklib_flow():
            await house.keep.options(on="end").submit_async("fine")

    async def in_remote() -> None:
        async with house.remote.flow() as f:
            f.submit("t", {}, on="end")

    for work in (in_library, in_remote):
        with pytest.raises(InvalidOption, match="on: says how it runs after other tasks") as refused:
            court.run(work())
        assert refused.value.field == "on"
    told = {"tasks": [{"ref": "a", "type": "t", "payload": {}, "on": "end"}]}
    answer = court.run(house.client.post("/api/flows", json=told))
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "invalid_option", "tasks.0.on")
    assert court.run(house.stored()) == 0
