"""Schedules fired by three processes of which one freezes and others die, on a database that goes away."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tasklib import Config, every
from tasklib.core.schedules import slot_of
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter
from tests.nats_servers import NatsServer
from tests.queues import as_default
from tests.servers import PostgresServer
from tests.waiting import eventually_async
from tests.worker import app
from tests.worker.processes import fleet_on
from tests.worker.program import DIES_IN_FIRE

LONG = 60
SECOND = timedelta(seconds=1)
Slots = Counter[tuple[str, datetime]]


async def slots_of(engine: Engine) -> Slots:
    found = (await engine.page(Filter(names=["tick"]), limit=10_000)).tasks
    return Counter((str(each.tags["schedule"]), slot) for each in found if (slot := slot_of(each.tags)) is not None)


async def fire_under_faults(
    url: str, folder: Path, *, schedules: int, slots: int, restart: Callable[[], None] | None = None
) -> None:
    """Each of the schedules is due every second. One process freezes over two times, then others are killed, each at
    another moment of the second, and one exactly between the check of a version and the commit."""
    names = [f"s{number}" for number in range(schedules)]
    async with as_default(Engine(Config(database_url=url))) as engine:
        for name in names:
            await app.tick.schedule_async(name, every(seconds=1, missed="all"))(name)
        with fleet_on(url, folder) as fleet:
            workers = [fleet.start(4, call_timeout_seconds=5) for _ in range(3)]

            async def fired(number: int) -> None:
                async def enough() -> bool:
                    return (await slots_of(engine)).total() >= number

                await eventually_async(enough, LONG, interval=0.2)

            await fired(schedules)
            workers[0].send(signal.SIGSTOP)
            frozen_at = (await slots_of(engine)).total()
            others_go_on = schedules * 3
            if url.startswith("sqlite"):  # it may hold the one lock there is
                await asyncio.wait_for(_tolerant(fired(frozen_at + others_go_on), 4.0), LONG)
            else:
                await fired(frozen_at + others_go_on)
            workers[0].send(signal.SIGCONT)
            for _ in range(2):
                worker = workers.pop()
                moment = asyncio.get_running_loop().time() + random.uniform(0.1, 0.9)
                await eventually_async(lambda: asyncio.get_running_loop().time() > moment, LONG)  # noqa: B023
                worker.send(signal.SIGKILL)
                assert worker.wait() == -signal.SIGKILL
                workers.append(fleet.start(4, call_timeout_seconds=5))
            aimed = fleet.start(4, call_timeout_seconds=5, env={DIES_IN_FIRE: "1"})
            assert await asyncio.to_thread(aimed.wait, LONG) == -signal.SIGKILL, "it fired nothing"
            if restart is not None:
                await asyncio.to_thread(restart)
            await fired(slots)
        found = await slots_of(engine)
        assert set(found.values()) == {1}, f"fired twice: {found.most_common(3)}"
        for name in names:
            times = sorted(slot for each, slot in found if each == name)
            gaps = [late - early for early, late in pairwise(times) if late - early != SECOND]
            assert gaps == [], f"{name} was left out"
        kept = await engine.schedules.all()
        assert [each.missed for each in kept] == [0] * schedules
        assert sum(each.fired for each in kept) == found.total()


async def _tolerant(work: Awaitable[None], seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)


async def test_each_time_is_fired_once_although_one_freezes_and_others_die(postgres_url: str, tmp_path: Path):
    """The short form."""
    await fire_under_faults(postgres_url, tmp_path, schedules=10, slots=60)


@pytest.mark.infrastructure
@pytest.mark.parametrize("store", ["sqlite", "postgres", "nats"])
async def test_each_time_is_fired_once_over_two_hundred_times(store: str, sqlite_url: str, tmp_path: Path):
    """The same, and the database is restarted under way."""
    with ExitStack() as stack:
        url, restart = sqlite_url, None
        if store == "postgres":
            server = stack.enter_context(PostgresServer())
            url = server.dsn

            def restart_postgres() -> None:
                server.restart("immediate")

            restart = restart_postgres
        elif store == "nats":
            nats = stack.enter_context(NatsServer())
            url = nats.url

            def restart_nats() -> None:
                nats.kill9()
                nats.start()

            restart = restart_nats
        await fire_under_faults(url, tmp_path, schedules=10, slots=200, restart=restart)
