"""Everything that can happen to a running task happens to it at once, from several engines."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from tasklib import Config, TaskState
from tasklib.core.decide import WriteResult
from tasklib.core.errors import TaskLibError
from tasklib.core.task import Claim, Task
from tasklib.engine.engine import Engine
from tasklib.stores.values import NameStats
from tests.conformance.builders import claim_one, completed, expired, fetch, submit
from tests.waiting import turns

ROUNDS = 20


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "nats"])
async def test_exactly_one_wins_each_version(request: pytest.FixtureRequest, backend: str, rng: random.Random):
    """Fault 20: completion, expiry, cancel, retry and delete. Either the completion or the expiry counts, never both;
    what is completed stays so unless it is deleted; and the figures are those of the rows."""
    url: str = request.getfixturevalue(f"{backend}_url")
    engines = [Engine(Config(database_url=url)) for _ in range(5)]
    ways: Counter[str] = Counter()
    for number in range(ROUNDS):
        store = await engines[0].store()
        name = f"round{number}"
        task_id = await submit(store, name)
        running = await claim_one(store, name, lease=10)
        for engine in engines:
            engine.advance(11)
        looked_at = await fetch(store, task_id)

        may_complete = asyncio.Event()
        if number % 4:  # in the others the expiry has its answer first
            may_complete.set()

        async def complete(engine: Engine, claimed: Claim = running, gate: asyncio.Event = may_complete) -> bool:
            await gate.wait()
            [write_result] = await (await engine.store()).settle([completed(claimed)])
            return write_result is WriteResult.APPLIED

        async def expire(engine: Engine, looked_at: Task = looked_at, gate: asyncio.Event = may_complete) -> bool:
            [write_result] = await (await engine.store()).settle([expired(looked_at)])
            gate.set()
            return write_result is WriteResult.APPLIED

        acts: list[Callable[[Engine], Awaitable[Any]]] = [
            complete,
            expire,
            partial(Engine.cancel, task_id=task_id),
            partial(Engine.retry, task_id=task_id),
            partial(Engine.delete, task_id=task_id),
        ]

        async def after(rounds: int, act: Callable[[Engine], Awaitable[Any]], engine: Engine) -> Any:
            await turns(rounds)  # a small head start for some of them
            return await act(engine)

        order = rng.sample(range(5), 5)
        starts = [after(rng.choice([0, 0, 5, 20, 80]), acts[act], engines[act]) for act in order]
        answers = await asyncio.gather(*starts, return_exceptions=True)
        done, taken_back, *others = [answers[order.index(act)] for act in range(5)]
        assert sorted([done, taken_back], key=bool) == [False, True], (done, taken_back)
        for other in others:
            assert not isinstance(other, BaseException) or isinstance(other, TaskLibError), repr(other)
        row = (await store.get([task_id]))[0]
        if row is not None and done:
            assert (row.state, row.version, row.result) == (TaskState.COMPLETED, running.version + 1, {"value": None})
        elif row is not None:
            assert row.state in (TaskState.FAILED, TaskState.CANCELLED, TaskState.PENDING)
            assert (row.result, row.worker_id, len(row.history)) == (None, None, 1)
            assert row.version > running.version
        figures = (await store.stats()).get(name, NameStats())
        shown = (figures.completed, figures.cancelled, figures.pending + figures.waiting)
        state = None if row is None else row.state
        waits = state in (TaskState.PENDING, TaskState.FAILED)
        assert shown == (state == TaskState.COMPLETED, state == TaskState.CANCELLED, waits)
        assert (figures.running, figures.failed) == (0, 0)
        ways["completed" if done else "expired"] += 1
    assert ways["completed"], ways
    assert ways["expired"], ways
    for engine in engines:
        await engine.close()
