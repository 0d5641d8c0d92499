"""Schedules: each time is fired once, whoever fires it; what code and operators say of them, and who wins."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from tasklib.api.decorator import task
from tasklib.core.cron import Overlap, Timing, cron, every
from tasklib.core.errors import ScheduleConflict, ScheduleNotFound
from tasklib.core.registry import Registry
from tasklib.core.schedules import RUNS_KEPT, Schedule, ScheduleWrite, fire, slot_of, task_of
from tasklib.core.task import NewTask, Task
from tasklib.engine.backends import Backend
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.engine.schedules import Schedules
from tasklib.engine.submission import Call
from tasklib.stores.protocol import Store
from tasklib.stores.values import AuditEntry, Filter, Inserted
from tests.conformance.builders import OpenStore, apply, claim_one, completed, new_task, next_id
from tests.conformance.builders import claim as take

MINUTE = 60.0
AUDIT = [AuditEntry(actor="ann", action="schedule")]


class OnStore(Engine):
    """Of a process of its own, on a store that the test has open."""

    def __init__(self, store: Store) -> None:
        super().__init__(Config(database_url="memory://schedules"))
        self._given = cast(Backend, store)

    async def store(self) -> Backend:
        return self._given

    async def published(self, name: str) -> None:
        return None

    async def insert(self, tasks: Sequence[NewTask], **_: Any) -> Sequence[Inserted]:
        return await self._given.insert(tasks)


def schedules_of(store: Store) -> Schedules:
    return OnStore(store).schedules


async def put(
    store: Store, timing: Timing, name: str = "s", payload: Any = None, *, operator: bool = False
) -> Schedule:
    schedules = schedules_of(store)
    new = await schedules.define(Call("report", payload), timing)
    return await schedules.put(name, new, operator=operator)


async def tasks(store: Store) -> list[Task]:
    return (await store.page(Filter(), limit=1000, oldest_first=True)).tasks


async def slots(store: Store) -> list[datetime]:
    found = [slot_of(each.tags) for each in await tasks(store)]
    return sorted(slot for slot in found if slot is not None)


async def move_to_next(store: Store, *others: Store, name: str = "s", after: float = 0.5) -> datetime:
    """Half a second after its next time, in all stores."""
    [schedule] = await store.schedules([name])
    assert schedule.next_at is not None
    offset = store.clock_offset + (schedule.next_at - await store.now()).total_seconds() + after
    for each in (store, *others):
        each.clock_offset = offset
    return schedule.next_at


def new_ids(number: int) -> Sequence[Any]:
    return [next_id() for _ in range(number)]


class SchedulesKept:
    async def test_of_several_that_fire_a_time_one_does(self, store: Store, open_store: OpenStore) -> None:
        stores = [store, await open_store(), await open_store()]
        for number in range(5):
            await put(store, every(minutes=1), f"s{number}", {"number": number})
        firing = [schedules_of(each) for each in stores]
        due = []
        for _ in range(8):
            due.append(await move_to_next(*stores, name="s0"))
            waits = await asyncio.gather(*(each.fire() for each in firing))
            assert all(wait is not None and 0 < wait <= 60 for wait in waits)
        found = Counter((task.tags["schedule"], slot_of(task.tags)) for task in await tasks(store))
        assert found == Counter({(f"s{number}", slot): 1 for number in range(5) for slot in due})
        assert {task.name for task in await tasks(store)} == {"report"}
        for number in range(5):
            [schedule] = await store.schedules([f"s{number}"])
            assert (schedule.fired, schedule.missed) == (8, 0)
            assert [run.slot for run in schedule.runs] == due
            found_tasks = await store.get([run.task_id for run in schedule.runs])
            assert all(task is not None and task.kwargs == {"number": number} for task in found_tasks)
        assert [each.scheduled_at for each in await tasks(store) if each.tags["schedule"] == "s0"] == due

    async def test_one_that_was_frozen_over_two_times_fires_nothing_again(self, store: Store) -> None:
        await put(store, every(minutes=1))
        await move_to_next(store)
        frozen = await store.due_schedules(10)
        late = fire(frozen.schedules[0], frozen.now, new_ids)
        for _ in range(2):
            await schedules_of(store).fire()
            await move_to_next(store)
        assert await store.write_schedules([late], wait=False) == [None]
        assert len(await tasks(store)) == 2

    async def test_the_time_is_in_the_tasks_key(self, store: Store) -> None:
        """Whoever stored the task and could not write the schedule any more: the next finds the task."""
        schedule = await put(store, every(minutes=1), "s" * 255)
        due_at = await move_to_next(store, name="s" * 255)
        [first] = await store.insert([task_of(schedule, due_at, next_id())])
        await schedules_of(store).fire()
        assert [each.id for each in await tasks(store)] == [first.id]
        [after] = await store.schedules()
        assert [(run.task_id, run.created) for run in after.runs] == [(first.id, False)]

    async def test_a_write_that_lost_stores_none_of_its_tasks(self, store: Store) -> None:
        kept, gone = await put(store, every(minutes=1), "kept"), await put(store, every(minutes=1), "gone")
        await schedules_of(store).pause("gone", audit=AUDIT)
        now = await store.now()
        writes = [ScheduleWrite(each, [new_task("report")], [now], now) for each in (gone, kept)]
        lost, won = await store.write_schedules(writes)
        assert lost is None
        assert won is not None
        assert [each.id for each in await tasks(store)] == [each.id for each in won]
        assert [entry.action for entry in await store.list_audit()] == ["schedule"]
        assert not await store.delete_schedule("kept", kept.version, audit=AUDIT)
        assert len(await store.list_audit()) == 1
        assert await store.delete_schedule("kept", kept.version + 1, audit=AUDIT)
        assert len(await store.list_audit()) == 2

    @pytest.mark.parametrize(
        ("options", "fired"),
        [
            ({}, [0]),
            ({"missed": "latest", "late": 10}, []),
            ({"missed": "all"}, list(range(49, -1, -1))),
            ({"missed": "all", "late": 600}, list(range(9, -1, -1))),
            ({"missed": "none"}, [0]),
        ],
        ids=str,
    )
    async def test_times_that_nobody_was_up_for(self, store: Store, options: Any, fired: list[int]) -> None:
        schedule = await put(store, every(minutes=1, **options))
        assert schedule.next_at is not None
        await move_to_next(store, after=49 * MINUTE + 30)
        last = schedule.next_at + timedelta(minutes=49)
        await schedules_of(store).fire()
        assert await slots(store) == [last - timedelta(minutes=ago) for ago in fired]
        assert [each.tags["slot"] for each in await tasks(store)] == sorted(
            each.tags["slot"] for each in await tasks(store)
        ), "oldest first"
        [after] = await store.schedules()
        assert (after.fired, after.missed) == (len(fired), 50 - len(fired))
        assert after.next_at == last + timedelta(minutes=1)
        assert len(after.runs) == min(len(fired), RUNS_KEPT)

    async def test_missed_none_fires_nothing_that_is_long_ago(self, store: Store) -> None:
        await put(store, every(hours=1, missed="none"))
        await move_to_next(store, after=120)
        await schedules_of(store).fire()
        assert await tasks(store) == []
        assert [each.missed for each in await store.schedules()] == [1]

    async def test_a_clock_that_steps_back_fires_nothing_twice(self, store: Store) -> None:
        await put(store, every(minutes=1))
        for _ in range(3):
            await move_to_next(store)
            await schedules_of(store).fire()
        store.clock_offset -= 3600
        wait = await schedules_of(store).fire()
        assert wait is not None
        assert wait > 3000
        assert len(await tasks(store)) == 3
        store.clock_offset += 3600
        await schedules_of(store).fire()
        assert len(await tasks(store)) == 3

    @pytest.mark.parametrize("same_process", [True, False])
    async def test_a_clock_that_was_far_ahead_for_a_while_does_not_stop_it(
        self, store: Store, same_process: bool
    ) -> None:
        far = 400 * 86400
        await put(store, every(minutes=1))
        await put(store, cron("0 0 29 2 *"), "leap")
        await put(store, every(minutes=1), "paused")
        schedules = schedules_of(store)
        await schedules.pause("paused")
        due = [await move_to_next(store)]
        await schedules.fire()
        before = {each.name: each for each in await store.schedules()}
        store.clock_offset += far
        await schedules.fire()
        for _ in range(24):  # more than a schedule remembers
            await move_to_next(store)
            await schedules.fire()
        [ahead] = await store.schedules(["s"])
        store.clock_offset -= far + 24 * MINUTE
        wait = await (schedules if same_process else schedules_of(store)).fire()
        assert wait is not None
        assert wait <= 60
        for _ in range(3):
            due.append(await move_to_next(store))
            await schedules.fire()
        assert due == [due[0] + timedelta(minutes=number) for number in range(4)]
        assert [slot for slot in await slots(store) if slot < due[0] + timedelta(days=1)] == due
        after = {each.name: each for each in await store.schedules()}
        assert (after["paused"], after["leap"]) == (before["paused"], before["leap"])
        store.clock_offset += far + 10 * MINUTE
        await schedules.fire()
        while await store.now() < ahead.runs[-1].slot:
            await move_to_next(store)
            await schedules.fire()
        found = await slots(store)
        assert len(found) == len(set(found)), "what was fired ahead is not fired again"

    async def test_a_version_that_was_started_while_the_clock_was_ahead_gives_way(self, store: Store) -> None:
        def version(minutes: int) -> Registry:
            registry = Registry()

            @task(name="sweep", schedule=every(minutes=minutes), registry=registry)
            def sweep() -> None: ...

            return registry

        store.clock_offset += 400 * 86400
        await schedules_of(store).declare(version(10))
        store.clock_offset -= 400 * 86400
        await schedules_of(store).declare(version(20))
        [sweep] = await store.schedules()
        assert sweep.definition is not None
        assert sweep.definition.timing == every(minutes=20)

    async def test_a_pause_that_races_with_the_fire_stops_what_was_not_written(self, store: Store) -> None:
        await put(store, every(minutes=1))
        due_at = await move_to_next(store)
        due = await store.due_schedules(10)
        write = fire(due.schedules[0], due.now, new_ids)
        paused = await schedules_of(store).pause("s")
        assert (paused.paused, paused.next_at) == (True, None)
        assert await store.write_schedules([write], wait=False) == [None]
        store.clock_offset += 3600
        assert await schedules_of(store).fire() is None
        assert await tasks(store) == []
        resumed = await schedules_of(store).resume("s")
        assert resumed.next_at is not None
        assert resumed.next_at > due_at + timedelta(hours=1), "what passed during a pause is not made up for"

    async def test_an_edit_while_it_is_due(self, store: Store) -> None:
        await put(store, every(minutes=1), payload={"old": 1})
        due_at = await move_to_next(store)
        edited = await put(store, every(minutes=1, missed="all"), payload={"new": 1}, operator=True)
        assert edited.next_at == due_at, "its times are the same, so this one is still due"
        await schedules_of(store).fire()
        assert [each.kwargs for each in await tasks(store)] == [{"new": 1}]
        await move_to_next(store)
        edited = await put(store, cron("0 0 1 1 *"), operator=True)
        assert edited.next_at is not None
        assert (edited.next_at.month, edited.next_at.day) == (1, 1)
        await schedules_of(store).fire()
        assert len(await tasks(store)) == 1, "these times are others"

    async def test_an_operators_edit_survives_deploys_until_it_is_cleared(self, store: Store) -> None:
        def version(minutes: int) -> Registry:
            registry = Registry()

            @task(name="sweep", schedule=every(minutes=minutes), registry=registry)
            def sweep() -> None: ...

            return registry

        async def minutes() -> float:
            [schedule] = await store.schedules(["sweep"])
            assert schedule.definition is not None
            return float(schedule.definition.timing.as_json()["every"]) / 60

        old, new = schedules_of(store), schedules_of(store)
        await old.declare(version(10))
        assert await minutes() == 10
        store.clock_offset += 1
        await new.declare(version(20))
        written = (await store.schedules())[0].version
        for _ in range(3):  # an old process that asks again, say because it lost its database for a while
            await old.declare(version(10))
            await new.declare(version(20))
        assert await minutes() == 20
        assert (await store.schedules())[0].version == written, "what is there is not written again"
        edit = await new.define(Call("sweep", {}), every(minutes=5))
        await new.put("sweep", edit, operator=True)
        assert await minutes() == 5
        store.clock_offset += 1
        await schedules_of(store).declare(version(30))
        assert await minutes() == 5, "the operator's holds"
        await new.clear("sweep")
        assert await minutes() == 30
        with pytest.raises(ScheduleConflict, match="in their code"):
            await new.delete("sweep")

    async def test_what_no_worker_declares_for_a_day_does_not_fire_until_one_does(self, store: Store) -> None:
        registry = Registry()

        @task(name="nightly", schedule=cron("30 3 * * *"), registry=registry)
        def nightly() -> None: ...

        await put(store, cron("30 3 * * *"), "by hand")
        schedules = schedules_of(store)
        await schedules.declare(registry)
        store.clock_offset += 86400 + 3600
        [by_hand, orphan] = await schedules.all()
        assert [each.is_orphaned(await store.now()) for each in (by_hand, orphan)] == [False, True]
        await schedules.fire()
        assert {task.tags["schedule"] for task in await tasks(store)} == {"by hand"}
        await schedules_of(store).declare(registry)
        await schedules.fire()
        assert {task.tags["schedule"] for task in await tasks(store)} == {"by hand", "nightly"}
        store.clock_offset += 86400 - 3600
        await schedules.keep()
        store.clock_offset += 86400 - 3600
        assert not (await schedules.get("nightly")).is_orphaned(await store.now()), "a worker lives that has it"
        store.clock_offset += 7200
        await schedules.delete("nightly")
        with pytest.raises(ScheduleNotFound, match="nightly"):
            await schedules.get("nightly")

    async def test_a_weekly_one_fires_although_every_process_lives_for_an_hour(self, store: Store) -> None:
        registry = Registry()

        @task(name="weekly", schedule=cron("0 8 * * MON", timezone="America/New_York"), registry=registry)
        def weekly() -> None: ...

        for _ in range(24 * 8):
            process = schedules_of(store)
            await process.declare(registry)
            await process.fire()
            store.clock_offset += 3600
        found = await slots(store)
        assert len(found) in (1, 2)
        assert all(slot.weekday() == 0 and slot.minute == 0 for slot in found)

    async def test_by_hand_now_and_for_times_that_have_passed(self, store: Store) -> None:
        schedules = schedules_of(store)
        await put(store, every(minutes=1))
        due_at = await move_to_next(store)
        await schedules.fire()
        await schedules.pause("s")
        task_id = await schedules.trigger("s", audit=AUDIT)
        [triggered] = await store.get([task_id])
        assert triggered is not None
        assert triggered.idempotency_key is None
        assert (await schedules.get("s")).runs[-1].task_id == task_id
        start = due_at - timedelta(minutes=9)
        ids = await schedules.backfill("s", start, due_at + timedelta(seconds=0.2))
        assert len(ids) == 10
        assert ids == await schedules.backfill("s", start, due_at + timedelta(seconds=0.2)), "each once"
        assert len(await tasks(store)) == 11, "one of the ten was fired before"

    async def test_many_that_are_due_at_once(self, store: Store) -> None:
        definition = await schedules_of(store).define(Call("report", None), every(minutes=1))
        now = await store.now()
        new = [Schedule(name=f"s{number}", declared=definition).scheduled(now) for number in range(700)]
        await store.write_schedules([ScheduleWrite(each) for each in new])
        await move_to_next(store, name="s0")
        assert len((await store.due_schedules(500)).schedules) == 500
        await schedules_of(store).fire()
        assert (await store.count(Filter(), 10_000)).value == 700
        assert (await store.due_schedules(500)).schedules == []

    @pytest.mark.parametrize(
        ("overlap", "waiting", "created"),
        [
            ("allow", [1, 2, 3], [True, True, True, True]),
            ("skip", [], [True, False, False, False]),
            ("wait", [1], [True, True, False, False]),
            ("replace", [3], [True, True, False, False]),
        ],
    )
    async def test_a_task_that_runs_for_longer_than_the_interval(
        self, store: Store, overlap: Overlap, waiting: list[int], created: list[bool]
    ) -> None:
        await put(store, every(minutes=1, overlap=overlap))
        schedules = schedules_of(store)
        due = [await move_to_next(store)]
        await schedules.fire()
        claim = await claim_one(store, "report", lease=3600)
        for _ in range(3):
            due.append(await move_to_next(store))
            await schedules.fire()
        found = {slot_of(task.tags) for task in await tasks(store) if task.id != claim.id}
        assert found == {due[place] for place in waiting}
        [schedule] = await store.schedules()
        assert [run.created for run in schedule.runs] == created
        assert [run.slot for run in schedule.runs] == due
        await apply(store, completed(claim))
        while claims := await take(store, names=["report"]):
            await apply(store, completed(claims[0]))
        due.append(await move_to_next(store))
        await schedules.fire()
        assert (await claim_one(store, "report")).id == (await store.schedules())[0].runs[-1].task_id, "it goes on"
