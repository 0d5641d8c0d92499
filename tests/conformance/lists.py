"""Lists: every combination of conditions gives what a plain filter over all tasks gives, page by page."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.ids import uuid7
from tasklib.core.lifecycle import Phase
from tasklib.core.task import Task
from tasklib.stores import values
from tasklib.stores.protocol import Store
from tasklib.stores.values import Count, EndedCursor, Filter
from tests.conformance.builders import (
    WORKER_A,
    WORKER_B,
    apply,
    cancelled,
    claim,
    claim_one,
    failed,
    fetch,
    in_phase,
    next_id,
    submit,
    submit_several,
)

NAMES = ["mail", "mail.send", "mail_send", "Mail", "build", "ümlaut"]
STATES = ["pending", "running", "completed", "failed", "cancelled", "no such state"]
DAY = 86_400_000


class Lists:
    async def test_lists_are_what_a_plain_filter_gives(self, store: Store) -> None:
        seed = secrets.randbits(32)
        chance = random.Random(seed)
        await compare(store, await various(store, chance, 40), chance, 60, f"seed {seed}")

    async def test_time_ranges_include_their_beginning_and_not_their_end(self, store: Store) -> None:
        tasks = []
        for _ in range(3):
            tasks.append(await fetch(store, await submit(store)))
            store.clock_offset += 1
        first, second, third = (task.created_at for task in tasks)

        async def found(**conditions: Any) -> list[int]:
            page = await store.page(Filter(**conditions), limit=9, oldest_first=True)
            ids = [task.id for task in tasks]
            assert (await store.count(Filter(**conditions), 9)).value == len(page.tasks)
            return [ids.index(task.id) for task in page.tasks]

        moment = timedelta(microseconds=1)
        assert await found(created_after=second) == [1, 2]
        assert await found(created_after=second + moment) == [2]
        assert await found(created_before=second) == [0]
        assert await found(created_before=second + moment) == [0, 1]
        assert await found(created_after=first, created_before=third) == [0, 1]
        assert await found(created_after=second, created_before=second) == []

    async def test_ranges_of_ends_hold_what_ended_in_them_and_nothing_else(self, store: Store) -> None:
        """Whenever it was created; what waits or runs has not ended."""
        phases = (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)
        for phase in (Phase.PENDING, Phase.RUNNING, Phase.WAITING):
            await in_phase(store, phase)
        early = [await submit(store, "early") for _ in range(2)]
        store.clock_offset += 86_400
        tasks = []
        for phase in phases:
            tasks.append(await in_phase(store, phase))
            store.clock_offset += 1
        for task_id in early:
            await apply(store, cancelled(await fetch(store, task_id)))
            tasks.append(await fetch(store, task_id))
            store.clock_offset += 1
        ends = [_end(task) for task in tasks]

        async def found(**conditions: Any) -> list[int]:
            ids = [task.id for task in tasks]
            page = await store.page(Filter(**conditions), limit=9)
            assert (await store.count(Filter(**conditions), 9)).value == len(page.tasks)
            return sorted(ids.index(task.id) for task in page.tasks)

        moment = timedelta(microseconds=1)
        assert await found(ended_after=ends[0]) == [0, 1, 2, 3, 4]
        assert await found(ended_after=ends[1]) == [1, 2, 3, 4]
        assert await found(ended_after=ends[1] + moment) == [2, 3, 4]
        assert await found(ended_before=ends[1]) == [0]
        assert await found(ended_before=ends[1] + moment) == [0, 1]
        assert await found(ended_after=ends[1], ended_before=ends[3]) == [1, 2]
        assert await found(ended_after=ends[1], states=["failed"]) == [1]
        assert await found(ended_after=ends[1], states=["failed", "cancelled"], names=["early"]) == [3, 4]
        assert await found(ended_before=ends[4], terminal=False) == []
        assert await found(ended_before=ends[4], states=["pending", "running"]) == []
        assert await found(ended_after=ends[2], ended_before=ends[2]) == []

    async def test_the_order_of_ends_is_walked_without_gaps_or_repeats(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever becomes of a page's last task before the next page is asked for, and however many ended at once."""
        monkeypatch.setattr(values, "SEARCHED_TASKS", 5)
        ids = await submit_several(store, 4)
        await apply(store, *(failed(running, final=True) for running in await claim(store, 4)))
        tasks = [await fetch(store, task_id) for task_id in ids]
        for number in range(12):
            tasks.append(await in_phase(store, (Phase.FAILED, Phase.CANCELLED, Phase.COMPLETED)[number % 3]))
            store.clock_offset += number % 2
        expected = sorted((task for task in tasks if task.state != "completed"), key=_latest_first)
        where = Filter(states=["failed", "cancelled"])
        assert await _walk_ends(store, where, 3) == [task.id for task in expected]
        assert await _walk_ends(store, Filter(states=["failed"], terminal=False), 3) == []

        first = await store.page_ended(where, limit=3)
        assert first.next_cursor is not None
        last = first.tasks[-1]
        if last.state == "failed":
            change = decide.retry_by_hand(last)
            await apply(store, change)
        else:
            assert await store.delete([(last.id, last.version)]) == [WriteResult.APPLIED]
        rest = await _walk_ends(store, where, 3, first.next_cursor)
        assert [task.id for task in first.tasks] + rest == [task.id for task in expected]

    async def test_the_order_of_ends_under_every_filter(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        seed = secrets.randbits(32)
        chance = random.Random(seed)
        tasks = sorted(await various(store, chance, 30), key=_latest_first)
        for _ in range(30):
            monkeypatch.setattr(values, "SEARCHED_TASKS", chance.choice([1, 3, 50]))
            states = chance.choice([["failed"], ["cancelled"], ["failed", "cancelled"]])
            where = replace(_chosen(tasks, chance), states=states)
            expected = [task.id for task in tasks if task.completed_at is not None and matches(task, where)]
            said = f"seed {seed}, {where}, {values.SEARCHED_TASKS} at a time"
            assert await _walk_ends(store, where, chance.randint(1, 7)) == expected, said
        monkeypatch.setattr(values, "SEARCHED_TASKS", 50)
        skipped = await store.page_ended(Filter(states=["failed", "cancelled"]), limit=2, offset=1)
        over = [task.id for task in tasks if task.completed_at is not None and task.state != "completed"]
        assert [task.id for task in skipped.tasks] == over[1:3]

    async def test_ranges_of_ends_are_searched_to_the_end(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where a store looks at so many tasks at a time, nothing is lost between the pages."""
        seed = secrets.randbits(32)
        chance = random.Random(seed)
        tasks = sorted(await various(store, chance, 30), key=lambda task: task.id)
        ends = [_end(task) for task in tasks if task.completed_at is not None]
        for _ in range(30):
            monkeypatch.setattr(values, "SEARCHED_TASKS", chance.randint(1, 9))
            where, end = _chosen(tasks, chance), chance.choice(ends)
            where = replace(where, ended_after=end) if chance.random() < 0.5 else replace(where, ended_before=end)
            expected = [task.id for task in tasks if matches(task, where)]
            said = f"seed {seed}, {where}, {values.SEARCHED_TASKS} at a time"
            for oldest_first in (True, False):
                wanted = expected if oldest_first else expected[::-1]
                found = await _walk(store, where, chance.randint(1, 7), oldest_first, in_steps=True)
                assert found == wanted, said

    async def test_time_ranges_find_tasks_of_submitters_whose_clocks_are_wrong(self, store: Store) -> None:
        """Hours early and late, and a month ahead."""
        now = await store.now()
        milliseconds = int(now.timestamp() * 1000)
        ids = [uuid7(milliseconds + away, 0, away & 0xFFFF) for away in (-DAY // 2, DAY // 2, 30 * DAY)]
        for task_id in ids:
            await submit(store, id=task_id)
        minute = timedelta(minutes=1)
        for where in (
            Filter(created_after=now - minute),
            Filter(created_before=now + minute),
            Filter(created_after=now - minute, created_before=now + minute, states=["pending"]),
        ):
            assert [task.id for task in (await store.page(where, limit=9, oldest_first=True)).tasks] == ids
        for where in (Filter(created_before=now - minute), Filter(created_after=now + minute)):
            assert (await store.page(where, limit=9)).tasks == []

    async def test_time_ranges_in_the_past_find_ids_from_the_future(self, store: Store) -> None:
        """A clock that is far ahead does not hide its tasks."""
        now = await store.now()
        store.clock_offset -= 3 * 86_400
        task_id = await submit(store, id=uuid7(int(now.timestamp() * 1000) + 30 * DAY, 0, 1))
        store.clock_offset += 3 * 86_400
        for days, expected in ((2, [task_id]), (4, [])):
            where = Filter(created_before=now - timedelta(days=days))
            assert [task.id for task in (await store.page(where, limit=9)).tasks] == expected

    async def test_a_search_looks_at_what_its_other_conditions_leave(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Newer tasks of other types, states and times do not hide what is searched for."""
        monkeypatch.setattr(values, "SEARCHED_TASKS", 4)
        ids = []
        for _ in range(3):
            await submit(store, "pay", tags={"shop": "a"})
            running = await claim_one(store, "pay")
            ids.append(running.id)
            await apply(store, failed(running, "insufficient funds", final=True))
        store.clock_offset += 60
        later = await store.now()
        await submit_several(store, 9, "mail", tags={"shop": "a"})
        await submit_several(store, 9, "mail", delay_seconds=600)
        for where in (
            Filter(states=["failed"], error_text="Insufficient"),
            Filter(states=["failed"], terminal=True, tags={"shop": "a"}),
            Filter(names=["pay"], tags={"shop": "a"}),
            Filter(name_prefix="p", error_text="funds"),
            Filter(terminal=True, error_text="funds"),
            Filter(created_before=later, error_text="funds"),
            Filter(ids=ids, error_text="funds"),
        ):
            page = await store.page(where, limit=9, oldest_first=True)
            assert [task.id for task in page.tasks] == ids, where
            assert page.next_cursor is None, where
            assert await store.count(where, 9) == Count(3, False), where

    async def test_a_search_that_stops_says_so_and_goes_on_behind_its_cursor(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A page, and a count, look at so many tasks only. What they did not look at is behind the cursor."""
        seed = secrets.randbits(32)
        chance = random.Random(seed)
        tasks = sorted(await various(store, chance, 30), key=lambda task: task.id)
        for _ in range(30):
            bound = chance.randint(1, 9)
            monkeypatch.setattr(values, "SEARCHED_TASKS", bound)
            rest = replace(_chosen(tasks, chance), tags=None, error_text=None, ids=None)
            rest = replace(rest, ended_after=None, ended_before=None)
            where = replace(rest, tags={"n": 1}) if chance.random() < 0.5 else replace(rest, error_text="o")
            said = f"seed {seed}, {where}, {bound} at a time"
            candidates = [task for task in reversed(tasks) if matches(task, rest)]
            expected = [task.id for task in candidates if matches(task, where)]
            assert await _walk(store, where, chance.randint(1, 7), False, in_steps=True) == expected, said
            assert await _walk(store, where, chance.randint(1, 7), True, in_steps=True) == expected[::-1], said
            count = await store.count(where, 99)
            near = {sum(matches(task, where) for task in candidates[:looked]) for looked in range(bound + 1)}
            assert count.value in (near if count.capped else {len(expected)}), said
            assert count.capped or len(candidates) <= bound, said
            if rest.created_after is None and rest.created_before is None:  # ids tell of times nearly, not exactly
                assert count.capped is (len(candidates) > bound), said


async def various(store: Store, chance: random.Random, number: int) -> list[Task]:
    """Tasks of all kinds, created over several days."""
    ids: list[UUID] = []
    for _ in range(number):
        name = chance.choice(NAMES)
        options: dict[str, Any] = {"tags": {"n": chance.randint(1, 3), "odd": chance.random() < 0.5}}
        roll = chance.random()
        if roll < 0.15:
            ids.append(await submit(store, name, delay_seconds=10**6, **options))
        elif roll < 0.25:
            # The only one of its type that is due, so that the claims below get their own.
            task_id = await submit(store, f"{name}.{len(ids)}", **options)
            running = await claim_one(store, f"{name}.{len(ids)}", worker=chance.choice([WORKER_A, WORKER_B]))
            if chance.random() < 0.5:
                error = chance.choice(["Boom: 100%", "KeyError: x"])
                await apply(store, failed(running, error, delay=chance.choice([0.0, 10.0**6])))
            ids.append(task_id)
        else:
            phase = chance.choice(list(Phase))
            name = f"{name}.{len(ids)}" if phase is not Phase.CANCELLED else name
            ids.append((await in_phase(store, phase, name, **options)).id)
        store.clock_offset += chance.choice([0, 1, 60, 30_000])
    return [await fetch(store, task_id) for task_id in ids]


async def compare(store: Store, tasks: Sequence[Task], chance: random.Random, rounds: int, label: str) -> None:
    """Random filters on the store, and by hand on the tasks that are in it."""
    tasks = sorted(tasks, key=lambda task: task.id)
    for _ in range(rounds):
        where = _chosen(tasks, chance)
        expected = [task.id for task in tasks if matches(task, where)]
        said = f"{label}, {where}"
        for oldest_first in (True, False):
            wanted = expected if oldest_first else expected[::-1]
            assert await _walk(store, where, chance.randint(1, 7), oldest_first) == wanted, said
            offset = chance.randint(0, len(wanted) + 1)
            page = await store.page(where, limit=5, offset=offset, oldest_first=oldest_first)
            assert [task.id for task in page.tasks] == wanted[offset : offset + 5], f"{said}, offset {offset}"
        assert await store.count(where, 1000) == Count(len(expected), False), said
        cap = chance.randint(0, 5)
        assert await store.count(where, cap) == Count(min(cap, len(expected)), len(expected) > cap), (
            f"{said}, cap {cap}"
        )


def matches(task: Task, where: Filter) -> bool:
    conditions = [
        where.names is None or task.name in where.names,
        task.name.startswith(where.name_prefix or ""),
        where.states is None or task.state in where.states,
        where.terminal is None or (task.completed_at is not None) is where.terminal,
        all(task.tags.get(key) == value for key, value in (where.tags or {}).items()),
        where.worker_id is None or (task.state == "running" and task.worker_id == where.worker_id),
        (where.error_text or "").lower() in (task.error or "").lower(),
        where.created_after is None or task.created_at >= where.created_after,
        where.created_before is None or task.created_at < where.created_before,
        where.ended_after is None or (task.completed_at is not None and task.completed_at >= where.ended_after),
        where.ended_before is None or (task.completed_at is not None and task.completed_at < where.ended_before),
        where.ids is None or task.id in where.ids,
    ]
    return all(conditions)


def _chosen(tasks: Sequence[Task], chance: random.Random) -> Filter:
    """Mostly two or three conditions, so that something is found."""
    names = [task.name for task in tasks]
    moments = [task.created_at + timedelta(milliseconds=chance.randint(-1, 1)) for task in tasks]
    ends = [task.completed_at or task.created_at for task in tasks]
    possible: dict[str, Any] = {
        "names": chance.choices([*names, *NAMES], k=chance.randint(0, 6)),
        "name_prefix": chance.choice(["", "m", "mail", "mail.", "M", "b", "z", chance.choice(names)]),
        "states": chance.choices(STATES, k=chance.randint(0, 3)),
        "terminal": chance.random() < 0.5,
        "tags": chance.choice([{"n": 1}, {"n": 2, "odd": True}, {"odd": False}, {"nothing": 1}]),
        "worker_id": chance.choice([WORKER_A, WORKER_B, "nobody"]),
        "error_text": chance.choice(["boom", "100%", "ERROR", "nothing"]),
        "created_after": chance.choice(moments),
        "created_before": chance.choice(moments),
        "ended_after": chance.choice(ends),
        "ended_before": chance.choice(ends) + timedelta(milliseconds=chance.randint(-1, 1)),
        "ids": [*chance.choices([task.id for task in tasks], k=chance.randint(0, 9)), next_id()],
    }
    weights = {"names": 4, "name_prefix": 4, "states": 6, "terminal": 4, "created_after": 3, "created_before": 3}
    chosen = chance.choices(
        list(possible), weights=[weights.get(name, 1) for name in possible], k=chance.choice([0, 1, 1, 2, 2, 3])
    )
    return Filter(**{name: possible[name] for name in chosen})


def _end(task: Task) -> datetime:
    assert task.completed_at is not None
    return task.completed_at


def _latest_first(task: Task) -> tuple[float, int]:
    return -(task.completed_at or task.created_at).timestamp(), -task.id.int


async def _walk_ends(store: Store, where: Filter, limit: int, cursor: EndedCursor | None = None) -> list[UUID]:
    seen: list[UUID] = []
    while True:
        page = await store.page_ended(where, limit=limit, cursor=cursor)
        seen += [task.id for task in page.tasks]
        cursor = page.next_cursor
        if cursor is None:
            return seen


async def _walk(store: Store, where: Filter, limit: int, oldest_first: bool, *, in_steps: bool = False) -> list[UUID]:
    seen: list[UUID] = []
    cursor = None
    while True:
        page = await store.page(where, limit=limit, cursor=cursor, oldest_first=oldest_first)
        seen += [task.id for task in page.tasks]
        cursor = page.next_cursor
        if cursor is None:
            return seen
        assert in_steps or len(page.tasks) == limit, "a page that is not full has none behind it"
