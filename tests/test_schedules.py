"""Schedules as the code has them: declared, set, looked after, and run in tests by moving the clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasklib import (
    InvalidOption,
    ScheduleConflict,
    ScheduleNotFound,
    TaskDefinitionError,
    TaskValidationError,
    Unique,
    cron,
    current_task,
    every,
    schedules,
    task,
    tq,
)
from tasklib.core.registry import Registry
from tasklib.core.schedules import Schedule
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.testing.queue import QueueForTests
from tests.conformance.builders import apply, claim_one, completed, failed

ran: list[Any] = []


@task(name="report of the tests of schedules")
def report(customer: int, kind: str = "short") -> None:
    ran.append((customer, kind, current_task().slot))


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def start_of(queue: QueueForTests) -> datetime:
    return queue.now.replace(microsecond=0)


def test_a_declared_one_is_run_at_its_times(tasklib_queue: QueueForTests):
    registry = Registry()

    @task(schedule=cron("30 3 * * *", timezone="Asia/Tokyo"), registry=registry)
    def nightly(kind: str = "all") -> None:
        ran.append((kind, current_task().slot))

    begun = start_of(tasklib_queue)
    tasklib_queue.advance_to(begun + timedelta(days=3), drain=True, registry=registry)
    times = [slot for _, slot in ran]
    assert len(times) == 3
    assert all((slot.hour, slot.minute) == (18, 30) for slot in times)
    assert [task.scheduled_at for task in tasklib_queue.tasks()] == times
    [schedule] = schedules.all()
    assert (schedule.name, schedule.fired) == ("nightly", 3)
    with pytest.raises(ScheduleConflict, match="take it out there, or pause it"):
        schedules["nightly"].delete()
    assert nightly.name == "nightly"


def test_one_that_is_set_by_a_call(tasklib_queue: QueueForTests):
    begun = start_of(tasklib_queue)
    weekly = report.options(priority=5).schedule("weekly", cron("0 8 * * 1", timezone="America/New_York"))(customer=42)
    first, second = weekly.next(2)
    assert second - first == timedelta(days=7)
    assert first.weekday() == 0
    before = weekly.get()
    report.options(priority=5).schedule("weekly", cron("0 8 * * 1", timezone="America/New_York"))(42)
    assert weekly.get() == before, "said again, nothing is written"
    tasklib_queue.advance_to(begun + timedelta(days=14), drain=True)
    assert ran == [(42, "short", first), (42, "short", second)]
    assert {each.priority for each in tasklib_queue.tasks()} == {5}
    assert weekly.pause().paused
    assert schedules["weekly"].next(3) == []
    tasklib_queue.advance_to(begun + timedelta(days=28), drain=True)
    assert len(ran) == 2
    assert not weekly.resume().paused
    task_id = weekly.trigger()
    tasklib_queue.drain()
    assert (len(ran), tasklib_queue.tasks()[-1].id) == (3, task_id)
    made = weekly.backfill(begun - timedelta(days=14), begun + timedelta(days=14))
    tasklib_queue.drain()
    assert (len(made), len(ran)) == (4, 5), "two of the four were run at their time"
    weekly.delete()
    for call in (weekly.get, weekly.pause, weekly.trigger, weekly.delete):
        with pytest.raises(ScheduleNotFound, match="weekly"):
            call()


async def test_the_async_twins(tasklib_queue: QueueForTests):
    weekly = await report.schedule_async("weekly", every(days=7))(customer=1)
    assert isinstance(await weekly.get_async(), Schedule)
    assert len(await weekly.next_async(3)) == 3
    assert (await weekly.pause_async()).paused
    assert (await weekly.resume_async()).next_at
    await weekly.trigger_async()
    now = await (await tasklib_queue.engine.store()).now()
    assert len(await weekly.backfill_async(now - timedelta(days=21), now)) == 3
    assert [each.name for each in await schedules.all_async()] == ["weekly"]
    await weekly.delete_async()
    assert await schedules.all_async() == []
    await tq("crawl").every_async(60, {"url": "x"}, name="hourly")
    assert [each.name for each in await schedules.all_async()] == ["hourly"]


def test_the_fluent_api(tasklib_queue: QueueForTests):
    tq("crawl", dict).every(900, {"url": "https://example.com"}, max_attempts=5).every(cron("@daily"), {}, name="daily")
    begun = start_of(tasklib_queue)
    tasklib_queue.advance_to(begun + timedelta(hours=1))
    tasks = tasklib_queue.tasks("crawl")
    assert 4 <= len(tasks) <= 5
    assert tasks[0].kwargs == {"url": "https://example.com"}
    assert tasks[0].max_attempts == 5
    assert [each.name for each in schedules.all()] == ["crawl", "daily"]


def test_jitter_spreads_the_starts_and_not_the_times(tasklib_queue: QueueForTests):
    report.schedule("spread", every(minutes=10, jitter=timedelta(minutes=5), missed="all"))(customer=1)
    tasklib_queue.advance_to(start_of(tasklib_queue) + timedelta(hours=5))
    tasks = tasklib_queue.tasks()
    late = [(each.scheduled_at - datetime.fromisoformat(each.tags["slot"])).total_seconds() for each in tasks]
    assert len(late) >= 29
    assert all(0 <= seconds < 300 for seconds in late)
    assert max(late) - min(late) > 120
    assert len(set(late)) > 20


def test_what_cannot_be_is_refused_and_nothing_is_stored(tasklib_queue: QueueForTests):
    def refused(kind: type[Exception], field: str, call: Any) -> None:
        with pytest.raises(kind) as error:
            call()
        assert getattr(error.value, "field", None) == field

    hourly = every(hours=1)
    refused(TaskValidationError, "customer", lambda: report.schedule("s", hourly)(customer="x"))  # type: ignore[arg-type]
    refused(TaskValidationError, "customer", lambda: report.schedule("s", hourly)())  # type: ignore[call-arg]
    refused(InvalidOption, "name", lambda: report.schedule("s" * 256, hourly))
    refused(InvalidOption, "schedule", lambda: report.schedule("s", "0 * * * *")(1))  # type: ignore[arg-type]
    later = datetime(2099, 1, 1, tzinfo=UTC)
    refused(InvalidOption, "run_at", lambda: report.options(run_at=later).schedule("s", hourly)(1))
    refused(InvalidOption, "connection", lambda: report.options(connection=object()).schedule("s", hourly))
    unique = report.options(unique=Unique("one"))
    refused(InvalidOption, "overlap", lambda: unique.schedule("s", every(hours=1, overlap="skip"))(1))
    refused(InvalidOption, "every", lambda: tq("crawl").every(0))
    refused(InvalidOption, "name", lambda: tq("crawl").every(5, name=""))
    assert schedules.all() == []

    def needs_more(customer: int) -> None: ...

    refused(TaskDefinitionError, "schedule", lambda: task(schedule=hourly, registry=Registry())(needs_more))
    refused(TaskDefinitionError, "schedule", lambda: task(schedule="@daily", registry=Registry()))  # type: ignore[call-overload]
    report.schedule("s", hourly)(1)
    refused(InvalidOption, "end", lambda: schedules["s"].backfill(later, later + timedelta(days=1)))
    long_ago = datetime(2000, 1, 1, tzinfo=UTC)
    refused(InvalidOption, "start", lambda: schedules["s"].backfill(long_ago, tasklib_queue.now))
    refused(InvalidOption, "number", lambda: schedules["s"].next(0))
    assert tasklib_queue.tasks() == []


async def test_the_latest_run_that_ended_tells_whether_it_fails(memory_url: str):
    engine = Engine(Config(database_url=memory_url))
    schedules, store = engine.schedules, await engine.store()
    await schedules.put("nightly", await schedules.define(Call("report", {}), every(3600)), operator=True)

    async def failing() -> set[str]:
        return await schedules.failing(await schedules.all())

    assert await failing() == set()
    await schedules.trigger("nightly")
    assert await failing() == set(), "it has not ended"
    await apply(store, failed(await claim_one(store, "report"), final=True))
    assert await failing() == {"nightly"}
    await schedules.trigger("nightly")
    assert await failing() == {"nightly"}, "the next is under way"
    await apply(store, completed(await claim_one(store, "report")))
    assert await failing() == set()
    await engine.close()
