"""The schema: there as soon as a store is open, and migrating again changes nothing."""

from __future__ import annotations

import asyncio
from typing import cast

from tasklib.core.lifecycle import Phase
from tasklib.stores.protocol import Admin, Store
from tests.conformance.builders import OpenStore, fetch, in_phase


class Schema:
    async def test_an_open_store_is_up_to_date(self, store: Store) -> None:
        admin = cast(Admin, store)
        assert await admin.schema_version() == len(admin.migration_sql())
        assert await admin.migrate(plan=True) == []

    async def test_migrating_again_and_at_once_is_safe(self, store: Store, open_store: OpenStore) -> None:
        task = await in_phase(store, Phase.COMPLETED)
        others = [await open_store() for _ in range(3)]
        steps = await asyncio.gather(*(cast(Admin, each).migrate() for each in (store, *others)))
        assert steps == [[]] * 4
        assert await fetch(others[0], task.id) == task

    async def test_every_step_has_a_name_and_a_text(self, store: Store) -> None:
        steps = cast(Admin, store).migration_sql()
        assert steps
        assert len({name for name, _ in steps}) == len(steps)
        assert all(name and text for name, text in steps)

    async def test_many_may_open_at_once_and_leave_what_is_there(self, store: Store, open_store: OpenStore) -> None:
        task = await in_phase(store, Phase.FAILED)
        others = await asyncio.gather(*(open_store() for _ in range(5)))
        for other in others:
            assert await fetch(other, task.id) == task

    async def test_the_traits_name_the_engine(self, store: Store) -> None:
        assert store.traits.engine

    async def test_clocks_of_all_stores_agree(self, store: Store, open_store: OpenStore) -> None:
        other = await open_store()
        first = await store.now()
        second = await other.now()
        third = await store.now()
        assert first <= second <= third
        other.clock_offset = 3600.0
        assert 3600 <= (await other.now() - third).total_seconds() < 3700
