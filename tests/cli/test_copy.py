"""`tasklib copy`: a queue moves whole."""

import json
import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tasklib import Config, cron
from tasklib.core import flows
from tasklib.core.errors import QueueInUse, Unsupported
from tasklib.core.flows import After
from tasklib.core.ids import uuid7
from tasklib.core.lifecycle import Phase
from tasklib.core.task import Task
from tasklib.engine import claims, copying
from tasklib.engine.engine import Engine
from tasklib.engine.schedules import same
from tasklib.engine.submission import Call
from tasklib.server.tokens import Role, new_token
from tasklib.stores.sql import links
from tasklib.stores.values import ControlChange, Filter, NameStats
from tests.cli.running import Cli
from tests.conformance.builders import apply, claim_one, completed, heartbeat_of, in_phase, new_task, submit


async def everything(engine: Engine) -> list[Task]:
    return (await engine.page(Filter(), limit=10_000, oldest_first=True)).tasks


async def counts(engine: Engine) -> dict[str, NameStats]:
    return {name: replace(each, oldest_due_seconds=None) for name, each in (await engine.stats()).items()}


async def fill(engine: Engine) -> None:
    """One task in every phase, and one with all that a task can have."""
    store = await engine.store()
    for phase in Phase:
        if phase is not Phase.RUNNING:
            await in_phase(store, phase, f"type {phase.name}")
    await store.insert(
        [
            new_task(
                "full",
                {"big": 2**80, "small": 1e-9, "text": "\u202e<é>", "none": None, "list": [1, 1.5, True]},
                delay_seconds=3600,
                timeout_seconds=7,
                priority=-3,
                tags={"team": "a", "n": 3},
                key="one/key ü",
                trace="00-abc-def-01",
            ),
            new_task("null", None),
        ]
    )
    await store.control(ControlChange(name="full", paused=True, operator_rate=2.5, concurrency=3))
    await store.add_token(new_token(Role.OPERATOR, "ada")[1])
    weekly = await engine.schedules.define(Call("full", {"a": 1}), cron("0 8 * * 1", timezone="Asia/Tokyo"))
    await engine.schedules.put("weekly", weekly, operator=True)


@pytest.fixture
async def engines(backend_url: str, tmp_path: Path) -> Any:
    pair = Engine(Config(database_url=backend_url)), Engine(Config(database_url=f"sqlite:///{tmp_path}/other.db"))
    yield pair
    for engine in pair:
        await engine.close()


async def test_every_field_arrives_and_comes_back(engines: tuple[Engine, Engine], memory_url: str):
    first, second = reversed(engines)  # begun on SQLite, whose times the others can keep
    third = Engine(Config(database_url=memory_url))
    await fill(first)
    done = await copying.copy(first, second)
    assert (done.copied, done.already, done.refused, done.total) == (len(Phase) + 1, 0, [], len(Phase) + 1)
    await copying.copy(second, third)
    before = await everything(first)
    assert len(before) == len(Phase) + 1
    assert await everything(second) == await everything(third) == before
    for engine in (second, third):
        assert await counts(engine) == await counts(first)
        assert await engine.controls() == await first.controls()
        (token,) = await (await engine.store()).tokens()
        assert (token.label, token.role) == ("ada", "operator")
        [weekly], [kept] = await engine.schedules.all(), await first.schedules.all()
        assert (weekly.name, weekly.next_at, weekly.paused) == (kept.name, kept.next_at, kept.paused)
        assert same(weekly.operator, kept.operator)
        assert (await engine.get_by_key("one/key ü")) == await first.get_by_key("one/key ü")
    await third.close()


async def test_what_was_waiting_runs_there(engines: tuple[Engine, Engine]):
    source, target = engines
    task_id = await submit(await source.store(), "work")
    await copying.copy(source, target)
    assert (await claim_one(await target.store(), "work")).id == task_id


async def test_what_waits_for_others_is_released_there(engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch):
    source, target = engines
    if not (await source.store()).traits.keeps_links:
        other, store = target, await target.store()
        parent = new_task("first", {})
        await store.insert([parent, new_task("second", {})._replace(after=After((parent.id,)))])
        with pytest.raises(Unsupported, match=r"let its flows end, or cancel what waits; task .* \(second\) does"):
            await copying.copy(other, source)
        return
    monkeypatch.setattr(links, "INLINE_PARENTS", 2)  # of more, the ids are kept beside the row
    monkeypatch.setattr(flows, "INLINE_PARENTS", 2)
    parents = [new_task("first", {}) for _ in range(3)]
    inputs = tuple((f"/{number}", parent.id) for number, parent in enumerate(parents))
    child = new_task("second", [None] * 3)._replace(after=After(tuple(each.id for each in parents), inputs=inputs))
    await (await source.store()).insert([*parents, child])
    await copying.copy(source, target)
    store = await target.store()
    assert await store.after_of(child.id) == await (await source.store()).after_of(child.id)
    for parent in parents:
        assert (await store.feeds(parent.id, 10)).ids == [child.id]
        await apply(store, completed(await claim_one(store, "first"), 7))
    [claimed] = await claims.claim_next(target, "w", ["second"], 1, 60)
    assert (claimed.id, claimed.kwargs) == (child.id, [7, 7, 7])


async def test_a_copy_that_broke_off_goes_on(engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch):
    source, target = engines
    monkeypatch.setattr(copying, "BATCH", 2)
    for _ in range(5):
        await submit(await source.store(), "work")

    class BrokeOff(Exception): ...

    def break_off(done: copying.Copied) -> None:
        if done.copied == 4:
            raise BrokeOff

    with pytest.raises(BrokeOff):
        await copying.copy(source, target, break_off)
    assert len(await everything(target)) == 4
    done = await copying.copy(source, target)
    assert (done.copied, done.already, done.refused) == (1, 4, [])
    assert [task.id for task in await everything(target)] == [task.id for task in await everything(source)]


async def test_another_task_with_the_key_is_left_alone(engines: tuple[Engine, Engine]):
    source, target = engines
    taken = await submit(await source.store(), "work", key="k")
    other = await submit(await target.store(), "work", key="k")
    done = await copying.copy(source, target)
    assert done.refused == [taken]
    assert [task.id for task in await everything(target)] == [other]


async def test_a_task_that_has_moved_on_is_left_alone(engines: tuple[Engine, Engine]):
    source, target = engines
    task_id = await submit(await source.store(), "work")
    await copying.copy(source, target)
    await target.cancel(task_id)
    assert (await copying.copy(source, target)).refused == [task_id]
    assert (await target.get_or_raise(task_id)).state == "cancelled"


@pytest.mark.parametrize("side", [0, 1])
async def test_a_queue_at_work_is_refused(engines: tuple[Engine, Engine], side: int):
    store = await engines[side].store()
    await store.heartbeat(heartbeat_of("busy", names=["work"]))
    with pytest.raises(QueueInUse, match="live worker, busy"):
        await copying.copy(*engines)
    await store.deregister_worker("busy")
    await submit(store, "work")
    await claim_one(store, "work")
    with pytest.raises(QueueInUse, match="1 running tasks"):
        await copying.copy(*engines)


def test_the_command(cli: Cli, tmp_path: Path):
    source, target = (f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "two"))
    cli("submit", "work", "--database-url", source)
    ran = cli("copy", source, target)
    assert (ran.code, ran.out) == (0, "1 tasks were copied, 0 were there already.\n")
    again = cli("copy", source, target, "--json")
    assert json.loads(again.out) == {"copied": 0, "already": 1, "refused": []}
    assert cli("copy", source, source).code == 2
    assert "FROM and TO" in cli("copy", source, target, "--database-url", source).err
    mistyped = cli("copy", f"sqlite:///{tmp_path}/oen.db", target)
    assert mistyped.code == 4
    assert "there is no queue at" in mistyped.err
    assert not (tmp_path / "oen.db").exists()


def made_up(number: int, rng: random.Random) -> Task:
    """A finished or waiting task with something in every column."""
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=rng.randrange(10**9))
    state = rng.choice(["pending", "completed", "completed", "completed", "failed", "cancelled"])
    finished = state != "pending" and (state != "failed" or rng.random() < 0.5)
    entry = {"attempt": 1, "worker": "w", "started": "2026-01-01T00:00:00Z", "error": "boom \u20ac", "lost": False}
    return Task(
        id=uuid7(int(moment.timestamp() * 1000), number, rng.randrange(2**60)),
        name=f"type {rng.randrange(20)}",
        state=state,
        scheduled_at=moment,
        created_at=moment,
        updated_at=moment + timedelta(seconds=5),
        started_at=moment + timedelta(seconds=1),
        completed_at=moment + timedelta(seconds=5) if finished else None,
        next_retry_at=None if finished or state == "pending" else moment + timedelta(days=999),
        kwargs={"n": number, "big": 2**70 + number, "text": "\u20ac" * rng.randrange(9), "part": rng.random()},
        result={"value": [number, None]} if state == "completed" else None,
        error="Traceback: boom" if state == "failed" else None,
        retry_count=rng.randrange(3),
        max_retries=rng.choice([-1, 3, 7]),
        timeout_seconds=rng.choice([None, 30]),
        priority=rng.randrange(-5, 5),
        tags={"customer": number},
        version=rng.randrange(1, 9),
        idempotency_key=f"key {number}" if rng.random() < 0.3 else None,
        retry_policy=rng.choice([None, {"base": 0.5, "multiplier": 2.0, "cap": 60.0, "jitter": 0.0}]),
        history=[entry] * rng.randrange(3),
        trace=rng.choice([None, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]),
    )


@pytest.mark.timeout(900)
async def test_round_all_engines_and_back(
    sqlite_url: str, postgres_url: str, nats_url: str, tmp_path: Path, rng: random.Random
):
    """`COPY_TASKS=100000 pytest tests/cli/test_copy.py -k round_all` moves as many."""
    number = int(os.environ.get("COPY_TASKS", "2000"))
    urls = (sqlite_url, postgres_url, nats_url, f"sqlite:///{tmp_path}/back.db")
    first, *others = engines = [Engine(Config(database_url=url)) for url in urls]
    store = await first.store()
    for start in range(0, number, 1000):
        await store.restore([made_up(each, rng) for each in range(start, min(start + 1000, number))])
    for source, target in pairwise(engines):
        done = await copying.copy(source, target)
        assert (done.copied, done.already, done.refused) == (number, 0, [])
    last = others[-1]
    cursor = None
    compared = 0
    while True:
        page = await first.page(Filter(), limit=1000, cursor=cursor)
        assert await (await last.store()).get([task.id for task in page.tasks]) == page.tasks
        compared += len(page.tasks)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert compared == number
    for engine in others:
        assert await counts(engine) == await counts(first)
    for engine in engines:
        await engine.close()
