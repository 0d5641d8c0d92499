"""Faults of rows: edited by hand, wanted by everybody at once, submitted by many under one key."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from uuid import UUID

from tasklib import AsyncTaskManager, RetryPolicy
from tasklib.core import decide
from tasklib.core.decide import WriteResult
from tasklib.core.errors import TRANSIENT_OR_SLOW, TaskConflict, TaskNotFound
from tasklib.core.options import SubmitOptions
from tasklib.core.outcome import Completed
from tasklib.core.task import Claim
from tasklib.engine.submission import Call, prepare
from tasklib.stores.values import ClaimRequest
from tests.chaos import app
from tests.chaos.crew import ROOT
from tests.chaos.faults import TABLES, Missed, fault
from tests.chaos.history import HISTORY
from tests.chaos.world import World

CONTESTED = "contested"
"""A type that nobody serves."""


async def edited(world: World, change: str, restored: str | None) -> UUID:
    """A task changed by SQL while it waits, and put right again if nobody may take it as it is. Alone: what is not put
    right would never end."""
    async with world.alone:
        return await _edited(world, change, restored)


async def _edited(world: World, change: str, restored: str | None) -> UUID:
    task_id = await world.submit(app.work, 1, delay=3600)
    world.history.note("hand", ids=[str(task_id)])
    now = "now()" if world.backend == "postgres" else "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    where = f"WHERE id = '{task_id}'"
    await _by_hand(world, f"UPDATE tasks SET {change}, scheduled_at = {now} {where}")
    if restored is not None:
        await world.pause(1.0)
        task = await world.engine.get_or_raise(task_id)
        assert task.worker_id is None, f"somebody took a task that was edited by hand: {change}"
        await _by_hand(world, f"UPDATE tasks SET {restored} {where}")
    await world.finished(task_id, 30)
    return task_id


async def _by_hand(world: World, statement: str) -> None:
    try:
        await asyncio.to_thread(world.sql, statement)
    except Exception as error:
        raise Missed(f"the database was away: {error}") from error


@fault("row edited: arguments that do not fit", TABLES, brief=True)
async def edit_arguments(world: World) -> None:
    task_id = await edited(world, """kwargs = '{"number": "many"}'""", None)
    task = await world.engine.get_or_raise(task_id)
    *before, last = task.history
    refused = task.state == "failed" and "TaskValidationError" in last["error"]
    # Another fault may have taken its worker away before it could say so.
    at_once = all(entry.get("lost") for entry in before)
    assert (refused, at_once) == (True, True), f"refused arguments must fail a task at once: {task}"


@fault("row edited: a state that nobody knows", TABLES)
async def edit_state(world: World) -> None:
    await edited(world, "state = 'mislaid'", "state = 'pending'")


@fault("row edited: a name that nobody serves", TABLES)
async def edit_name(world: World) -> None:
    await edited(world, "name = 'nobody serves this'", "name = 'work'")


@fault("cancel, retry, complete, expire and delete at once", brief=True)
async def take_over(world: World) -> None:
    async with world.alone:
        await _contest(world)


async def _contest(world: World) -> None:
    engine, me = world.engine, f"contest-{secrets.token_hex(4)}"
    options = SubmitOptions(priority=100, max_retries=0)
    task = prepare(Call(CONTESTED, {}, options), None, engine.config).task
    manager = AsyncTaskManager(engine)
    mark = secrets.token_hex(8)
    try:
        await engine.insert([task])
        (claimed,) = await manager.claim_next(me, names=[CONTESTED], limit=1, ttl=0.05)
        world.history.note("start", id=str(claimed.id), attempt=claimed.attempts, mark=mark)
        await world.pause(world.rng.uniform(0, 0.1))

        async def attempt(act: object) -> None:
            with suppress(TaskConflict, TaskNotFound):
                await act  # type: ignore[misc]

        acts = [
            lambda: engine.cancel(task.id),
            lambda: engine.retry(task.id),
            lambda: manager.complete(task.id, {"mark": mark}, worker_id=me),
            lambda: engine.expire(),
            lambda: engine.delete(task.id),
        ] * 2
        world.rng.shuffle(acts)
        await asyncio.gather(*(attempt(act()) for act in acts))
    except TRANSIENT_OR_SLOW as error:
        raise Missed(f"the database was away: {error}") from error
    finally:
        await world.until(lambda: _is_put_away(world, task.id), 30, "a contested task is left")


@fault("outcome of a claim that was taken over", brief=True)
async def stale_outcome(world: World) -> None:
    async with world.alone:
        await _stale_outcome(world)


async def _stale_outcome(world: World) -> None:
    """Straight to the store, as from a worker that has noticed nothing."""
    engine = world.engine
    options = SubmitOptions(priority=100, max_retries=5, retry=RetryPolicy.AT_ONCE)
    task = prepare(Call(CONTESTED, {}, options), None, engine.config).task
    try:
        store = await engine.store()
        await engine.insert([task])
        stale = await _claimed(world, task.id, "slow", 0.05)

        async def taken_back() -> bool:
            await engine.expire()
            return (await engine.get_or_raise(task.id)).version > stale.version

        await world.until(taken_back, 10, "its lease did not run out")
        fresh = await _claimed(world, task.id, "quick", 60.0)
        write_results = []
        for claim in (stale, fresh):
            mark = secrets.token_hex(8)
            world.history.note("start", id=str(claim.id), attempt=claim.attempt, mark=mark)
            outcome = Completed(json.dumps({"value": {"mark": mark}}))
            write_results += await store.settle([decide.settle(claim, outcome, engine.config.default_retry)])
        assert write_results[0] is WriteResult.STALE, (
            f"a stale outcome was {write_results[0]}, the right one {write_results[1]}"
        )
    except TRANSIENT_OR_SLOW as error:
        raise Missed(f"the database was away: {error}") from error
    finally:
        await world.until(lambda: _is_put_away(world, task.id), 30, "a contested task is left")


async def _claimed(world: World, task_id: UUID, who: str, lease: float) -> Claim:
    request = ClaimRequest(worker_id=f"{who}-{secrets.token_hex(4)}", names=[CONTESTED], slots=1, lease_seconds=lease)

    async def claim() -> list[Claim]:
        return (await (await world.engine.store()).claim(request)).claims

    (found,) = await world.until(claim, 10, "it could not be claimed")
    assert found.id == task_id
    assert isinstance(found, Claim)
    return found


async def _is_put_away(world: World, task_id: UUID) -> bool:
    """Nobody serves its type: the drain would wait for it."""
    task = await world.engine.get(task_id)
    if task is None or task.completed_at is not None:
        return True
    with suppress(TaskConflict):
        await world.engine.cancel(task_id)
    await world.engine.expire()
    return False


@fault("many processes submit one key")
async def key_storm(world: World) -> None:
    await _storm(world, "key")


@fault("many processes submit one unique key")
async def unique_storm(world: World) -> None:
    await _storm(world, "unique")


async def _storm(world: World, kind: str) -> None:
    settings = json.dumps({**world.settings, "database_url": world.url})
    command = [sys.executable, "-m", "tests.chaos.program", "storm", f"{kind}-{secrets.token_hex(6)}", settings]
    environment = {**os.environ, HISTORY: str(world.history.path), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    code = await asyncio.to_thread(subprocess.call, command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
    assert code == 0, f"a process of the storm ended with {code}"
