"""Controls: what is set stays set, for everybody, and only what is given changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tasklib.stores.protocol import Store
from tasklib.stores.values import ControlChange, Controls
from tests.conformance.builders import OpenStore


class ControlsKept:
    async def test_nothing_is_set_at_first(self, store: Store) -> None:
        assert all(control == Controls(name=name) for name, control in (await store.controls()).items())

    async def test_a_change_answers_with_what_holds_now(self, store: Store) -> None:
        changed = await store.control(ControlChange(name="a", paused=True, operator_rate=2.5, concurrency=4))
        expected = Controls(name="a", paused=True, rate=2.5, concurrency=4, operator_rate=2.5)
        assert replace(changed, paused_at=None) == expected
        assert (await store.controls())["a"] == changed

    async def test_a_pause_says_who_and_since_when(self, store: Store, open_store: OpenStore) -> None:
        before = await store.now()
        first = await store.control(ControlChange(name="a", paused=True, by="ada ✓"))
        after = await store.now()
        assert first.paused_at is not None
        assert (first.paused_by, before <= first.paused_at <= after) == ("ada ✓", True)
        store.clock_offset += 60
        other = await open_store()
        changes: list[dict[str, Any]] = [{"paused": True}, {"concurrency": 3}]
        again = first
        for change in changes:  # neither is a new pause
            again = await other.control(ControlChange(name="a", by="bob", **change))
            assert (again.paused_by, again.paused_at) == ("ada ✓", first.paused_at)
        assert (await store.controls())["a"] == again
        resumed = await store.control(ControlChange(name="a", paused=False, by="bob"))
        assert (resumed.paused_by, resumed.paused_at) == (None, None)
        by_code = await store.control(ControlChange(name="a", paused=True))
        assert (by_code.paused_by, by_code.paused_at is None) == (None, False)

    async def test_only_what_is_given_changes(self, store: Store) -> None:
        await store.control(ControlChange(name="a", paused=True))
        await store.control(ControlChange(name="a", concurrency=4))
        await store.control(ControlChange(name="a", default_rate=7))
        await store.control(ControlChange(name="a", operator_rate=3))
        await store.control(ControlChange(name="b", paused=True))
        await store.control(ControlChange(name="b", paused=False))
        controls = await store.controls()
        expected = Controls(name="a", paused=True, rate=3, concurrency=4, operator_rate=3, default_rate=7)
        assert replace(controls["a"], paused_at=None) == expected
        assert not controls.get("b", Controls(name="b")).paused
        assert (await store.control(ControlChange(name="a"))) == controls["a"], "nothing given, nothing changed"

    async def test_the_operators_rate_wins_until_it_is_cleared(self, store: Store) -> None:
        async def rate() -> float | None:
            return (await store.controls())["a"].rate

        await store.control(ControlChange(name="a", default_rate=10))
        assert await rate() == 10
        await store.control(ControlChange(name="a", operator_rate=2))
        assert await rate() == 2
        await store.control(ControlChange(name="a", default_rate=20))
        assert await rate() == 2
        await store.control(ControlChange(name="a", operator_rate=None))
        assert await rate() == 20
        await store.control(ControlChange(name="a", operator_rate=0))
        assert await rate() is None, "0 is no limit, whatever the code says"
        assert (await store.controls())["a"].operator_rate == 0
        await store.control(ControlChange(name="a", operator_rate=None, default_rate=None))
        assert (await store.controls()).get("a", Controls(name="a")) == Controls(name="a")

    async def test_a_concurrency_limit_can_be_cleared(self, store: Store) -> None:
        await store.control(ControlChange(name="a", concurrency=3))
        assert (await store.control(ControlChange(name="a", concurrency=None))).concurrency is None

    async def test_the_empty_name_is_for_all_types(self, store: Store) -> None:
        await store.control(ControlChange(paused=True, operator_rate=5))
        found = (await store.controls())[""]
        assert found == Controls(name="", paused=True, rate=5, operator_rate=5, paused_at=found.paused_at)

    async def test_they_hold_in_every_store_and_outlast_it(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        await other.control(ControlChange(name="naïve ✓ %_", paused=True, concurrency=1))
        await other.close()
        third = await open_store()
        for each in (store, third):
            controls = (await each.controls())["naïve ✓ %_"]
            assert (controls.paused, controls.concurrency) == (True, 1)
