"""Pages and counts: by id, without gaps or repeats, whatever is written meanwhile."""

from __future__ import annotations

from uuid import UUID

import pytest

from tasklib.core.lifecycle import Phase
from tasklib.stores.protocol import Store
from tasklib.stores.values import Count, Filter
from tests.conformance.builders import fetch, in_phase, next_id, submit, submit_several

EVERYTHING = Filter()


class Looking:
    async def test_newest_first_unless_asked_otherwise(self, store: Store) -> None:
        ids = await submit_several(store, 5)
        newest = await store.page(EVERYTHING, limit=10)
        oldest = await store.page(EVERYTHING, limit=10, oldest_first=True)
        assert [task.id for task in newest.tasks] == ids[::-1]
        assert [task.id for task in oldest.tasks] == ids
        assert newest.next_cursor is None
        assert oldest.next_cursor is None

    async def test_a_page_shows_whole_tasks(self, store: Store) -> None:
        tasks = [await in_phase(store, phase, payload={"n": [1]}, tags={"t": 1}, key=phase.name) for phase in Phase]
        assert (await store.page(EVERYTHING, limit=10, oldest_first=True)).tasks == tasks
        assert await store.get([task.id for task in tasks]) == tasks

    @pytest.mark.parametrize("oldest_first", [False, True])
    async def test_cursors_lead_through_all_without_gaps_or_repeats(self, store: Store, oldest_first: bool) -> None:
        ids = await submit_several(store, 23)
        seen = await _walk(store, EVERYTHING, 5, oldest_first)
        assert seen == (ids if oldest_first else ids[::-1])

    @pytest.mark.parametrize("oldest_first", [False, True])
    async def test_what_is_added_and_removed_meanwhile_moves_nothing(self, store: Store, oldest_first: bool) -> None:
        doomed = await in_phase(store, Phase.COMPLETED)
        ids = await submit_several(store, 20)
        also_doomed = await in_phase(store, Phase.COMPLETED)
        seen: list[UUID] = []
        cursor = None
        while True:
            page = await store.page(EVERYTHING, limit=4, cursor=cursor, oldest_first=oldest_first)
            seen += [task.id for task in page.tasks]
            cursor = page.next_cursor
            if cursor is None:
                break
            assert len(seen) < 100
            if len(seen) <= 12:
                await submit_several(store, 3)
            for task in (doomed, also_doomed):
                await store.delete([(task.id, task.version)])
        assert len(set(seen)) == len(seen)
        kept = [task_id for task_id in seen if task_id in set(ids)]
        assert kept == (ids if oldest_first else ids[::-1])

    async def test_a_full_last_page_ends_too(self, store: Store) -> None:
        ids = await submit_several(store, 6)
        assert await _walk(store, EVERYTHING, 3, False) == ids[::-1]
        assert await _walk(store, EVERYTHING, 6, False) == ids[::-1]

    async def test_cursors_work_under_a_filter(self, store: Store) -> None:
        mine = []
        for _ in range(7):
            mine.append(await submit(store, "mine"))
            await submit(store, "other")
        assert await _walk(store, Filter(names=["mine"]), 2, False) == mine[::-1]

    async def test_a_cursor_need_not_be_there_any_more(self, store: Store) -> None:
        before = await submit_several(store, 2)
        gone = next_id()
        after = await submit_several(store, 2)
        page = await store.page(EVERYTHING, limit=10, cursor=gone)
        assert [task.id for task in page.tasks] == before[::-1]
        page = await store.page(EVERYTHING, limit=10, cursor=gone, oldest_first=True)
        assert [task.id for task in page.tasks] == after

    async def test_pages_by_offset(self, store: Store) -> None:
        ids = (await submit_several(store, 10))[::-1]
        assert [task.id for task in (await store.page(EVERYTHING, limit=3, offset=4)).tasks] == ids[4:7]
        assert [task.id for task in (await store.page(EVERYTHING, limit=3, offset=9)).tasks] == ids[9:]
        assert (await store.page(EVERYTHING, limit=3, offset=10)).tasks == []

    async def test_an_empty_database_has_an_empty_page(self, store: Store) -> None:
        page = await store.page(EVERYTHING, limit=10)
        assert (page.tasks, page.next_cursor) == ([], None)
        assert await store.count(EVERYTHING, 10) == Count(0, False)

    async def test_a_count_is_exact_up_to_its_cap(self, store: Store) -> None:
        await submit_several(store, 5, "a")
        await submit_several(store, 3, "b")
        assert await store.count(EVERYTHING, 100) == Count(8, False)
        assert await store.count(EVERYTHING, 8) == Count(8, False)
        assert await store.count(EVERYTHING, 7) == Count(7, True)
        assert await store.count(Filter(names=["a"]), 4) == Count(4, True)
        assert await store.count(Filter(names=["a"]), 5) == Count(5, False)
        assert await store.count(Filter(names=["c"]), 5) == Count(0, False)

    async def test_looking_changes_nothing(self, store: Store) -> None:
        task = await in_phase(store, Phase.RUNNING)
        await store.page(EVERYTHING, limit=10)
        await store.count(EVERYTHING, 10)
        await store.stats()
        assert await fetch(store, task.id) == task


async def _walk(store: Store, where: Filter, limit: int, oldest_first: bool) -> list[UUID]:
    seen: list[UUID] = []
    cursor = None
    while True:
        page = await store.page(where, limit=limit, cursor=cursor, oldest_first=oldest_first)
        assert len(page.tasks) <= limit
        seen += [task.id for task in page.tasks]
        cursor = page.next_cursor
        if cursor is None:
            return seen
        assert len(seen) < 1000, "a cursor that leads in circles"
