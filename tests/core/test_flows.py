"""What the ends of parents make of a child, with values alone."""

from typing import Any
from uuid import UUID

import pytest

from tasklib.core.errors import InvalidOption
from tasklib.core.flows import Child, End, after_ends, in_order, parent_ids, recounted

ONE, TWO, CHILD = UUID(int=1), UUID(int=2), UUID(int=3)


def child(state: str = "pending", *, waits: int = 2, over: bool = False, **after: Any) -> Child:
    said = {"on": "success", "parents": [str(ONE), str(TWO)], **after}
    return Child(CHILD, "child", state, over, 0, waits, said)


def end(parent: UUID, state: str = "completed", *, over: bool = True) -> End:
    return End(parent, "parent", state, over)


def test_the_last_end_releases():
    left = after_ends(child(), [end(ONE)])
    assert (left.waits, left.released) == (1, False)
    assert after_ends(left, [end(TWO)]).released
    assert after_ends(child(), [end(ONE), end(TWO)]).released


@pytest.mark.parametrize("state", ["running", "failed", "completed"])
def test_what_does_not_wait_any_more_is_neither_released_nor_cut_off(state: str):
    """Somebody ran it by hand: only its counter moves."""
    for ends in ([end(ONE), end(TWO)], [end(ONE), end(TWO, "failed")]):
        moved = after_ends(child(state), ends)
        assert (moved.state, moved.released, moved.error) == (state, False, None)


def test_a_counter_that_somebody_edited_stays_as_it_is():
    for waits in (0, -3):
        assert after_ends(child(waits=waits), [end(ONE), end(TWO, "failed")]) == child(waits=waits)
        assert recounted(child(waits=waits), [ONE], {ONE: end(ONE)}) == child(waits=waits)


def test_a_look_at_all_parents_says_what_the_single_ends_said():
    for first in ("completed", "failed", "cancelled"):
        for second in ("completed", "failed", "cancelled"):
            for on in ("success", "end"):
                ends = [end(ONE, first), end(TWO, second)]
                whole = recounted(child(on=on), [ONE, TWO], {each.id: each for each in ends})
                assert whole == after_ends(child(on=on), ends)._replace(error=whole.error, after=whole.after)
                assert whole.released == (on == "end" or first == second == "completed")


def test_of_parents_that_nobody_knows_nothing_is_concluded():
    assert recounted(child(parents=5_000), None, {}) == child(parents=5_000)
    assert parent_ids({"parents": 5_000}) is None
    assert parent_ids({"parents": [str(ONE), "x", 7]}) == (ONE,)
    assert parent_ids(None) == ()


def test_those_that_wait_for_each_other_are_named():
    assert in_order({"b": ["a"], "a": []}) == ["a", "b"]
    with pytest.raises(InvalidOption, match=r"(a -> b -> a|b -> a -> b)"):
        in_order({"a": ["b"], "b": ["a"]})
