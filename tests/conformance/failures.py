"""What failed last."""

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
    failed,
    fetch,
    submit,
    submit_several,
)


class LatestFailures:
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
        monkeypatch.setattr(values, "SEARCHED_TASKS", 2)
        for name in ("rare", "common", "common"):
            await submit(store, name)
            await apply(store, failed(await claim_one(store, name), final=True))
            store.clock_offset += 1
        # NATS knows the type of each task without reading it.
        assert len(await store.latest_failures("rare", 10)) == (store.traits.engine == "nats")
        assert len(await store.latest_failures("common", 10)) == 2
