"""Why a task waits, as its own page tells it."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from tasklib.core.lifecycle import Phase
from tasklib.engine.engine import Engine
from tasklib.stores.values import ControlChange
from tests.conformance.builders import claim_one, heartbeat_of, in_phase, submit


async def causes(api: httpx.AsyncClient, task_id: UUID) -> list[str]:
    return [reason["cause"] for reason in await reasons(api, task_id)]


async def reasons(api: httpx.AsyncClient, task_id: UUID) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(f"/api/tasks/{task_id}")).json()["waitingFor"]
    return found


async def test_nobody_handles_it(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    task_id = await submit(store, "work")
    assert await causes(api, task_id) == ["no_worker"]
    await store.heartbeat(heartbeat_of("other", names=["else"]))
    (reason,) = await reasons(api, task_id)
    assert reason["text"] == "The only live worker does not handle the type work."
    await store.heartbeat(heartbeat_of("mine", names=["work"]))
    assert await causes(api, task_id) == ["busy"]
    await store.deregister_worker("mine")
    assert await causes(api, task_id) == ["no_worker"]


async def test_a_silent_worker_does_not_count(quick: httpx.AsyncClient, memory_engine: Engine):
    store = await memory_engine.store()
    await store.heartbeat(heartbeat_of("mine", names=["work"]))
    task_id = await submit(store, "work")
    store.clock_offset += memory_engine.config.dead_after_seconds + 1
    assert await causes(quick, task_id) == ["no_worker"]


@pytest.mark.parametrize("scope", ["", "work"])
async def test_paused(api: httpx.AsyncClient, engine: Engine, scope: str):
    store = await engine.store()
    await store.heartbeat(heartbeat_of("mine", names=["work"]))
    task_id = await submit(store, "work", delay_seconds=60)
    await store.control(ControlChange(name=scope, paused=True))
    assert await causes(api, task_id) == ["paused", "scheduled"]
    await store.control(ControlChange(name=scope, paused=False))
    (reason,) = await reasons(api, task_id)
    assert (reason["cause"], reason["until"]) == (
        "scheduled",
        (await api.get(f"/api/tasks/{task_id}")).json()["runAfter"],
    )


async def test_a_retry_to_come(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await store.heartbeat(heartbeat_of("mine", names=["work"]))
    task = await in_phase(store, Phase.WAITING, "work")
    (reason,) = await reasons(api, task.id)
    assert reason["cause"] == "retry"
    assert reason["until"] == (await api.get(f"/api/tasks/{task.id}")).json()["nextRetryAt"]


@pytest.mark.parametrize("scope", ["", "work"])
async def test_limits(api: httpx.AsyncClient, engine: Engine, scope: str):
    store = await engine.store()
    await store.heartbeat(heartbeat_of("mine", names=["work"]))
    await store.control(ControlChange(name=scope, concurrency=1))
    await submit(store, "work")
    task_id = await submit(store, "work")
    assert await causes(api, task_id) == ["busy"], "there is room under the limit"
    await claim_one(store, "work")
    assert await causes(api, task_id) == ["concurrency_limit"]
    await store.control(ControlChange(name=scope, operator_rate=3))
    assert await causes(api, task_id) == ["concurrency_limit", "rate_limit"]


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED])
async def test_what_does_not_wait_has_no_reason(quick: httpx.AsyncClient, memory_engine: Engine, phase: Phase):
    task = await in_phase(await memory_engine.store(), phase, "work")
    assert await causes(quick, task.id) == []
