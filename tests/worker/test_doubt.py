"""Claims whose reply was lost: they are this worker's to run, and no others are."""

import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from tasklib import Config, StoreUnavailable, TaskState, current_task, task
from tasklib.core.registry import Registry
from tasklib.core.task import Claim, Task
from tasklib.engine.backends import Backend
from tasklib.engine.engine import Engine
from tasklib.stores.values import Claimed, ClaimRequest
from tests.queues import as_default
from tests.waiting import eventually_async
from tests.worker.conftest import Serve


class Line:
    """What is wrong with the line to the database; all stores of a queue share it."""

    def __init__(self) -> None:
        self.loses_claims = False
        self.is_away = False
        self.nobody_expires = False
        self.adoptions = 0
        self.has_read = False
        self.may_answer = threading.Event()
        self.may_answer.set()


class DoubtfulStore:
    def __init__(self, store: Backend, line: Line) -> None:
        self._store, self._line = store, line

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not self._line.is_away or name not in ("beat", "extend", "settle"):
            return found

        async def refuse(*_: object) -> None:
            raise StoreUnavailable("away")

        return refuse

    async def claim(self, request: ClaimRequest) -> Claimed:
        if self._line.is_away:
            raise StoreUnavailable("away")
        claimed = await self._store.claim(request)
        if self._line.loses_claims:
            raise StoreUnavailable("the reply is lost")
        return claimed

    async def claims_of_worker(self, worker_id: str) -> list[Claim]:
        held = await self._store.claims_of_worker(worker_id)
        self._line.has_read = True
        await eventually_async(self._line.may_answer.is_set, 20)
        self._line.adoptions += 1
        return held

    async def lost_leases(self, dead_after_seconds: float, limit: int) -> Sequence[Task]:
        return [] if self._line.nobody_expires else await self._store.lost_leases(dead_after_seconds, limit)


class DoubtfulEngine(Engine):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.line = Line()

    def new_store(self) -> Backend:
        return cast(Backend, DoubtfulStore(super().new_store(), self.line))


@pytest.fixture
async def engine(sqlite_url: str) -> AsyncIterator[DoubtfulEngine]:
    config = Config(database_url=sqlite_url, heartbeat_seconds=0.1, dead_after_seconds=1.0, lock_timeout_seconds=5)
    async with as_default(DoubtfulEngine(config)) as engine:
        yield engine


async def test_a_claim_whose_reply_was_lost_is_taken_up(engine: DoubtfulEngine, registry: Registry, serve: Serve):
    starts: list[int] = []

    @task(registry=registry)
    def work() -> None:
        starts.append(current_task().attempt)

    engine.line.loses_claims = True
    async with serve(2):
        handle = await work.submit_async()
        assert (await handle.wait_async(20)).state == TaskState.COMPLETED
    assert starts == [1]


async def test_a_claim_that_was_given_up_is_not_begun_again(engine: DoubtfulEngine, registry: Registry, serve: Serve):
    starts: list[int] = []
    lost = threading.Event()
    line = engine.line

    @task(registry=registry)
    def work() -> None:
        starts.append(current_task().attempt)
        try:
            while not lost.is_set():  # until it is told to stop
                lost.wait(0.01)
        finally:
            lost.set()

    line.nobody_expires = True
    handle = await work.submit_async()
    async with serve(2):
        await eventually_async(lambda: starts, 20)
        line.is_away = True
        await eventually_async(lost.is_set, 20)
        seen = line.adoptions
        await eventually_async(lambda: line.adoptions > seen + 3, 20)
        assert starts == [1], "its attempt was given up: nothing may start under it any more"
        line.is_away = line.nobody_expires = False
        assert (await handle.wait_async(20)).state == TaskState.COMPLETED
    assert starts == [1, 2]


async def test_an_answer_that_is_older_than_the_outcome_starts_nothing(
    engine: DoubtfulEngine, registry: Registry, serve: Serve
):
    starts: list[int] = []
    gate = threading.Event()
    line = engine.line

    @task(registry=registry)
    def work() -> None:
        starts.append(current_task().attempt)
        gate.wait(20)

    handle = await work.submit_async()
    async with serve(2):
        await eventually_async(lambda: starts, 20)
        line.may_answer.clear()
        line.loses_claims = True
        await eventually_async(lambda: line.has_read, 20)
        gate.set()
        assert (await handle.wait_async(20)).state == TaskState.COMPLETED
        line.loses_claims = False
        line.may_answer.set()
        await eventually_async(lambda: line.adoptions > 0, 20)
        second = await work.submit_async()
        assert (await second.wait_async(20)).state == TaskState.COMPLETED
    assert starts == [1, 1], "once for each of the two tasks"
