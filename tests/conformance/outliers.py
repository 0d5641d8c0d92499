"""What stands out: the slowest tasks of a type, and what failed last."""

from __future__ import annotations

import pytest

from tasklib.stores import values
from tasklib.stores.protocol import Store
from tests.conformance.builders import (
    WORK,
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    expired,
    failed,
    fetch,
    submit,
    submit_several,
)


class Outliers:
    async def test_the_slowest_of_the_newest_of_a_type(self, store: Store) -> None:
        ids = await submit_several(store, 5)
        times = dict(zip(ids, (900, 30, 10, 40, 20), strict=True))
        claims = await claim(store, 5)
        await apply(store, *(completed(each, run_ms=times[each.id]) for each in claims[:4]))
        await apply(store, failed(claims[4], final=True, run_ms=times[claims[4].id]))
        await submit(store)
        lost = await claim_one(store, lease=1)
        store.clock_offset += 2
        await apply(store, expired(await fetch(store, lost.id)))
        await submit(store, "other")
        await apply(store, completed(await claim_one(store, "other"), run_ms=5000))

        async def slowest(looked: int, limit: int) -> list[int | None]:
            return [task.run_ms for task in await store.slowest(WORK, looked, limit)]

        assert await slowest(10, 10) == [900, 40, 30, 20, 10]
        assert await slowest(10, 2) == [900, 40]
        assert await slowest(3, 2) == [40, 30], "the oldest was not looked at"
        assert await store.slowest("nobody", 10, 10) == []

    async def test_the_latest_failures_by_their_end(self, store: Store) -> None:
        early, late = await submit_several(store, 2)
        other = await submit(store, "other")
        claims = {each.id: each for each in [*await claim(store, 2), await claim_one(store, "other")]}
        for task_id, error in ((late, "first"), (other, "second"), (early, "x" * values.ERROR_END + "the end")):
            await apply(store, failed(claims[task_id], error, final=True))
            store.clock_offset += 1
        await submit(store, "waits")
        await apply(store, failed(await claim_one(store, "waits"), "tried again", delay=60))
        await apply(store, cancelled(await fetch(store, await submit(store))))
        found = await store.latest_failures(None, 10)
        assert [each.id for each in found] == [early, other, late]
        assert [each.name for each in found] == [WORK, "other", WORK]
        assert found[0].error.endswith("xthe end")
        assert len(found[0].error) == values.ERROR_END
        assert found[0].completed_at == (await fetch(store, early)).completed_at
        assert [each.id for each in await store.latest_failures(WORK, 10)] == [early, late]
        assert [each.id for each in await store.latest_failures(None, 1)] == [early]

    async def test_failures_behind_many_others_are_not_looked_for(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if store.traits.engine == "nats":
            pytest.skip("it knows the type of each task without reading it")
        monkeypatch.setattr(values, "SEARCHED_TASKS", 2)
        for name in ("rare", "common", "common"):
            await submit(store, name)
            await apply(store, failed(await claim_one(store, name), final=True))
            store.clock_offset += 1
        assert await store.latest_failures("rare", 10) == []
        assert len(await store.latest_failures("common", 10)) == 2
