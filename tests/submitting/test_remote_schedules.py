"""Schedules by `RemoteQueue`: set, looked after, and refused in the words of `schedules`."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tasklib import (
    InvalidOption,
    RemoteQueue,
    ScheduleConflict,
    ScheduleNotFound,
    TaskLibError,
    TaskValidationError,
    Unique,
    cron,
    every,
)
from tasklib.api.decorator import task
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app

TOKEN = "a-token-of-the-tests-of-remote-schedules"
AWKWARD = "mails/../../tasks %2F?#.ä"


@pytest.fixture
async def engine(memory_url: str) -> AsyncIterator[Engine]:
    engine = Engine(Config(database_url=memory_url))
    yield engine
    await engine.close()


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @task(registry=registry)
    def report(customer: int, kind: str = "short") -> None: ...

    @task(registry=registry, schedule=every(hours=1))
    def sweep() -> None: ...

    return registry


@pytest.fixture
def remote(engine: Engine, registry: Registry) -> RemoteQueue:
    transport = httpx.ASGITransport(create_app(engine, registry=registry, settings=ServerSettings(token=TOKEN)))
    return RemoteQueue("http://localhost", token=TOKEN, transport=transport)


async def test_a_schedule_from_its_making_to_its_end(remote: RemoteQueue, engine: Engine):
    for name in ("weekly", AWKWARD, ".", ".."):
        timing = cron("0 8 * * 1", timezone="America/New_York", overlap="skip", late=timedelta(hours=1))
        weekly = await remote.schedule_async(name, timing, "report", {"customer": 42}, max_attempts=2, tags={"a": 1})
        here = await engine.schedules.get(name)
        assert here.operator is not None
        assert (here.operator.timing, here.operator.task.kwargs) == (timing, '{"customer":42,"kind":"short"}')
        assert await weekly.get_async() == await remote.schedules[name].get_async()
        first, second = await weekly.next_async(2)
        assert second - first == timedelta(days=7)
        assert (await weekly.pause_async()).paused
        assert await weekly.next_async(3) == []
        task_id = await weekly.trigger_async()
        resumed = await weekly.resume_async()
        assert (resumed.paused, resumed.next_at) == (False, first)
        assert resumed.runs == (await engine.schedules.get(name)).runs
        assert [run.task_id for run in resumed.runs] == [task_id]
        with pytest.raises(ScheduleConflict, match="nothing in the code to go back to"):
            await weekly.clear_async()
        await weekly.delete_async()
        with pytest.raises(ScheduleNotFound) as missing:
            await weekly.get_async()
        assert missing.value.name == name
    assert await remote.schedules.all_async() == []
    await remote.close_async()


async def test_all_are_the_same_schedules(remote: RemoteQueue, engine: Engine, registry: Registry):
    await engine.schedules.declare(registry)
    for number in range(120):
        await remote.schedule_async(f"report {number:03}", every(seconds=90, jitter=5), "report", {"customer": number})
    here, there = await engine.schedules.all(), await remote.schedules.all_async()
    assert len(there) == 121
    for one, other in zip(here, there, strict=True):
        assert one.definition is not None
        assert one.definition == other.definition
        for field in ("name", "declared_at", "next_at", "paused", "runs", "fired", "missed", "created_at"):
            assert getattr(one, field) == getattr(other, field)
    edited = await remote.schedule_async("sweep", every(minutes=5), "sweep", {})
    assert ((await edited.get_async()).declared, (await edited.clear_async()).operator) == (None, None)
    with pytest.raises(ScheduleConflict, match="in their code"):
        await edited.delete_async()
    assert not (await edited.get_async()).is_orphaned(await (await engine.store()).now())
    await remote.close_async()


def test_the_twins_that_are_not_awaited(remote: RemoteQueue):
    weekly = remote.schedule("weekly", every(days=7), "report", {"customer": 1})
    assert weekly.pause() == weekly.get()
    assert weekly.resume().next_at == weekly.next()[0]
    assert weekly.trigger() == weekly.get().runs[-1].task_id
    assert [each.name for each in remote.schedules.all()] == ["weekly"]
    weekly.delete()
    assert remote.schedules.all() == []
    for call in (weekly.get, weekly.pause, weekly.resume, weekly.clear, weekly.trigger, weekly.next, weekly.delete):
        with pytest.raises(ScheduleNotFound, match="weekly"):
            call()
    remote.close()


async def test_what_cannot_be_is_refused_and_nothing_is_stored(remote: RemoteQueue, engine: Engine):
    async def refused(kind: type[TaskLibError], field: str, name: str = "s", **change: Any) -> None:
        given: dict[str, Any] = {"timing": every(hours=1), "name": "report", "payload": {"customer": 1}, **change}
        with pytest.raises(kind) as error:
            await remote.schedule_async(name, **given)
        assert getattr(error.value, "field", None) == field

    await refused(InvalidOption, "schedule", timing="0 * * * *")
    await refused(InvalidOption, "name", "s" * 256)
    await refused(InvalidOption, "name", "")
    await refused(InvalidOption, "name", name="")
    await refused(TaskValidationError, "payload.customer", payload={"customer": "x"})
    await refused(TaskValidationError, "payload.customer", payload={})
    await refused(InvalidOption, "priority", priority=1 << 40)
    await refused(InvalidOption, "options.runAfter", run_at=datetime(2099, 1, 1, tzinfo=UTC))
    await refused(InvalidOption, "options.unique", unique=Unique("one"))
    await refused(InvalidOption, "options.idempotencyKey", idempotency_key="one")
    assert await engine.schedules.all() == []
    await remote.close_async()
