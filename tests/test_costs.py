"""What tasks cost the database, in statements, round trips and rows: no clock, so it holds on any machine.

A figure that has to grow is a decision: change it here, and say in the commit what the price buys."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import apsw
import httpx
import psycopg
import pytest

from tasklib import Config, TaskWorker, cron
from tasklib.core.flows import After
from tasklib.core.registry import Registry, TaskOptions, define
from tasklib.core.schedules import Schedule, ScheduleWrite
from tasklib.engine.backends import make_store
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call, prepare_many
from tasklib.server import ServerSettings, create_app
from tasklib.stores.protocol import Store
from tasklib.stores.values import ControlChange
from tests.conformance.builders import WORK, alike_tasks, apply, claim, completed, new_task, submit_several
from tests.costs import SPEED, FastLoop, PostgresMeter, SqliteMeter, pass_time
from tests.waiting import eventually, eventually_async

NUMBERS = [1, 100, 1000]
TOKEN = "an-admin-token-of-the-tests"


async def submit_claim_settle(store: Store, number: int, spent: Callable[[str], None] = lambda step: None) -> None:
    """The whole road of so many tasks. `spent` is told of each step when it is done."""
    await store.insert(alike_tasks(number))
    spent("submit")
    store.clock_offset += 1.5  # so that all have waited alike, in one bucket of the counters
    claims = await claim(store, number)
    spent("claim")
    assert len(claims) == number
    await apply(store, *(completed(each, "done") for each in claims))
    spent("settle")


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_batch_of_any_size_is_one_statement_and_one_round_trip_on_postgresql(postgres_url: str, number: int):
    async with PostgresMeter(postgres_url) as meter:
        store = make_store(Config(database_url=meter.url))
        await store.open()
        for warm in (1, 2):  # statements are prepared, one by one and for batches; controls are known
            await submit_claim_settle(store, warm)
        costs = {}

        def spent(what: str) -> None:
            costs[what] = (meter.statements, meter.round_trips)
            meter.messages.clear()

        meter.messages.clear()
        await submit_claim_settle(store, number, spent)
        await store.close()

    assert costs == {"submit": (1, 1), "claim": (1, 1), "settle": (1, 1)}


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_release_is_part_of_the_settle_on_postgresql(postgres_url: str, number: int):
    """Chains of two, and tasks beside them that nobody waits for: what a claim knows that others wait for is settled by
    one statement, with what ends at the same time, and the others are due."""
    async with PostgresMeter(postgres_url) as meter:
        store = make_store(Config(database_url=meter.url))
        await store.open()
        costs = (0, 0)
        for warm in (True, False):
            parents = [new_task() for _ in range(number)]
            await store.insert([*parents, *(new_task("child")._replace(after=After((each.id,))) for each in parents)])
            await submit_several(store, number)
            claims = await claim(store, 2 * number)
            assert len(claims) == 2 * number
            meter.messages.clear()
            await apply(store, *(completed(each) for each in claims))
            costs = (meter.statements, meter.round_trips)
            assert len(await claim(store, number + 1, names=["child"])) == number, warm
        await store.close()
    assert costs == (1, 1)


@pytest.mark.parametrize(("number", "statements"), [(1, 7), (100, 7), (1000, 13)])
async def test_a_release_takes_few_statements_and_no_steps_by_the_row_on_sqlite(
    sqlite_url: str, number: int, statements: int
):
    """More statements only because each takes 256 rows."""
    meter = SqliteMeter()
    with meter.in_place():
        store = make_store(Config(database_url=sqlite_url))
        await store.open()
        parents = [new_task() for _ in range(number)]
        await store.insert([*parents, *(new_task("child")._replace(after=After((each.id,))) for each in parents)])
        claims = await claim(store, number)
        meter.statements = meter.steps = 0
        await apply(store, *(completed(each) for each in claims))
        costs = (meter.statements, meter.steps)
        assert len(await claim(store, number + 1, names=["child"])) == number
        await store.close()
    assert costs == (statements, 1 + -(-number // 256))


async def test_what_can_run_at_the_same_time_is_stored_together(sqlite_url: str):
    """Of chains, given one after the other, the first links and then the second ones: what is claimed or ends at once
    is on few pages."""
    store = make_store(Config(database_url=sqlite_url))
    await store.open()
    chains = [[new_task(name) for name in "abc"] for _ in range(200)]
    linked = [
        (one, two._replace(after=After((one.id,))), three._replace(after=After((two.id,))))
        for one, two, three in chains
    ]
    await store.insert([task for chain in linked for task in chain])
    await store.close()
    path = sqlite_url.removeprefix("sqlite:///").partition("?")[0]
    with closing(apsw.Connection(path)) as connection:
        names = "".join(name for (name,) in connection.execute("SELECT name FROM tasks ORDER BY rowid"))
    assert "".join(name for name, _ in groupby(names)) == "abc" * 3


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_cancel_is_told_without_a_round_trip_of_its_own_on_postgresql(postgres_url: str, number: int):
    async with PostgresMeter(postgres_url) as meter:
        store = make_store(Config(database_url=meter.url))
        await store.open()
        ids = await submit_several(store, number)
        await claim(store, number)
        await store.request_cancel([])
        meter.messages.clear()
        assert len(await store.request_cancel(ids)) == number
        costs = (meter.statements, meter.round_trips)
        await store.close()
    assert costs == (1, 1)


def test_a_call_among_many_gives_the_garbage_collector_one_object_to_look_at():
    """Its id. The more there are, the more often the collector walks over everything that the program has imported."""

    def noop(number: int) -> int:
        return number

    task_type = define(noop, name=None, options=TaskOptions())
    calls = [{"number": number} for number in range(1000)]
    config = Config(database_url="memory://")
    call = Call("noop", None, task_type=task_type)
    prepare_many(call, calls, config)
    gc.collect()
    gc.disable()
    try:
        before = gc.get_count()[0]
        kept = prepare_many(call, calls, config)
        objects = gc.get_count()[0] - before
    finally:
        gc.enable()
    assert len(kept) == 1000
    assert 1000 <= objects < 1100


@pytest.mark.parametrize(
    ("case", "costs"),
    [
        ("nothing of it is ready", (1, 1)),
        # The controls and what runs are looked at first. Nothing is locked.
        ("at its limit", (3, 3)),
        ("only to wait", (3, 3)),
        # And then under the limit's lock: BEGIN, the lock, the count, the claim, COMMIT. Without the look, where the
        # last claim left room.
        ("with room", (7, 7)),
        ("with room again", (5, 5)),
    ],
)
async def test_what_a_concurrency_limit_costs_on_postgresql(postgres_url: str, case: str, costs: tuple[int, int]):
    """A claim of several types, one of them limited. What runs is counted under a lock only where one may start."""
    async with PostgresMeter(postgres_url) as meter:
        store = make_store(Config(database_url=meter.url))
        await store.open()
        await store.control(ControlChange(name="narrow", concurrency=2))
        names = ["narrow", WORK]
        await submit_several(store, 20)
        await submit_several(store, 0 if case == "nothing of it is ready" else 5, "narrow", priority=5)
        if case == "at its limit":
            assert len(await claim(store, 2, names=["narrow"])) == 2
        for _ in range(2):  # statements are prepared, and it is known that there is a limit
            await claim(store, 0, names=names, prefetch=1)
        if case.startswith("with room"):
            assert [each.name for each in await claim(store, 1, names=names)] == ["narrow"]
        if case == "with room":
            await claim(store, 0, names=names, prefetch=1)
        meter.messages.clear()
        claims = await claim(store, 0 if case == "only to wait" else 5, names=names, prefetch=5)
        spent = (meter.statements, meter.round_trips)
        await store.close()
    assert WORK in {claimed.name for claimed in claims}
    assert [claimed.name for claimed in claims].count("narrow") == case.startswith("with room")
    assert spent == costs


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_task_is_written_three_times_on_postgresql(postgres_url: str, number: int):
    store = make_store(Config(database_url=postgres_url))
    await store.open()
    await submit_claim_settle(store, number)
    await store.close()
    schema = postgres_url.rpartition("=")[2]

    def written() -> dict[str, tuple[int, int, int]]:
        with psycopg.connect(postgres_url.partition("?")[0], autocommit=True) as connection:
            rows = connection.execute(
                "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables"
                " WHERE schemaname = %s AND relname <> 'task_migrations' AND n_tup_ins + n_tup_upd + n_tup_del > 0",
                [schema],
            ).fetchall()
        return {name: tuple(counts) for name, *counts in rows}

    # A session hands in its statistics when it ends.
    eventually(lambda: "task_counts" in written())
    # A row of counters for how they ended, and one for how long they had waited.
    assert written() == {"tasks": (number, 2 * number, 0), "task_counts": (2, 0, 0)}


SQLITE_STATEMENTS = {1: (1, 5, 5), 100: (3, 5, 5), 1000: (6, 5, 11)}
"""Of a submit, a claim and a settle, BEGIN and COMMIT included."""


async def test_what_requests_of_the_api_cost_on_postgresql(postgres_url: str):
    async with PostgresMeter(postgres_url) as meter:
        engine = Engine(Config(database_url=meter.url))
        app = create_app(engine, registry=Registry(), settings=ServerSettings(token=TOKEN))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers
        ) as api:
            costs = {}

            async def spent(what: str, method: str, path: str, times: int = 1, **request: Any) -> dict[str, Any]:
                answers = await asyncio.gather(*(api.request(method, path, **request) for _ in range(times)))
                meter.messages.clear()
                answers = await asyncio.gather(*(api.request(method, path, **request) for _ in range(times)))
                costs[what] = meter.statements
                answer: dict[str, Any] = answers[-1].json()
                return answer

            made = await spent("submit", "POST", "/api/tasks", json={"type": "work", "payload": 1})
            path = f"/api/tasks/{made['id']}"
            shown = await spent("a waiting task", "GET", path)
            await spent("a waiting task, 16 at once", "GET", path, times=16)
            store = await engine.store()
            await apply(store, *(completed(each) for each in await claim(store, 10)))
            await spent("a finished task", "GET", path)
        await engine.close()

    assert (shown["createdAt"], shown["waitingFor"][0]["cause"]) == (made["createdAt"], "no_worker")
    # The insert, which tells when it was. Then itself, the controls, the workers.
    # At once: for the first of them, and for all the others together.
    at_once = costs.pop("a waiting task, 16 at once")
    assert costs == {"submit": 1, "a waiting task": 3, "a finished task": 1}
    assert at_once <= 12


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_batch_of_any_size_is_one_commit_on_sqlite(sqlite_url: str, number: int):
    meter = SqliteMeter()
    with meter.in_place():
        store = make_store(Config(database_url=sqlite_url))
        await store.open()
        await submit_claim_settle(store, 2)
        costs = {}

        def spent(what: str) -> None:
            costs[what] = (meter.statements, meter.commits, meter.rows)
            meter.statements = meter.commits = meter.rows = 0

        spent("opening")
        await submit_claim_settle(store, number, spent)
        await store.close()

    submit, claiming, settle = SQLITE_STATEMENTS[number]
    del costs["opening"]
    assert costs == {
        "submit": (submit, 1, number),
        "claim": (claiming, 1, number),
        "settle": (settle, 1, number + 2),  # counters: how they ended, and how long they had waited
    }


PATIENCE = 30 * SPEED
"""Half a minute by the clock on the wall: the database runs no faster than ever."""

SCHEDULES = 1000


def idle_minute(url: str, spent: Callable[[], int], most: int) -> int:
    """What a worker with nothing to do spends in a minute of its own clock, once it has come to rest. There are many
    schedules, and none is due. A minute with more is measured again: on a machine that stands still for a second of the
    clock on the wall, much is late and done twice."""

    def never(number: int) -> None: ...

    async def main() -> int:
        registry = Registry()
        registry.add(define(never, name=None, options=TaskOptions()))
        engine = Engine(Config(database_url=url, call_timeout_seconds=PATIENCE, submit_timeout_seconds=PATIENCE))
        yearly = await engine.schedules.define(Call("never", {"number": 1}), cron("0 0 29 2 *"))
        later = Schedule(name="", declared=yearly).scheduled(datetime(2026, 1, 1, tzinfo=UTC))
        writes = [ScheduleWrite(replace(later, name=f"s{number}")) for number in range(SCHEDULES)]
        await (await engine.store()).write_schedules(writes)
        worker = TaskWorker(registry=registry, engine=engine, handle_signals=False, concurrency=100)
        running = asyncio.create_task(worker.run())
        await eventually_async(engine.workers, timeout=60)  # it has opened all it needs, and registered
        await pass_time(30)
        found, tries = most + 1, 3
        while found > most and tries:
            before = spent()
            await pass_time(60)
            found, tries = spent() - before, tries - 1
        worker.stop()
        await running
        await engine.close()
        return found

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        return runner.run(main())


@pytest.fixture
def fast_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the heartbeat's thread, which makes its own."""
    monkeypatch.setattr(asyncio.events, "new_event_loop", FastLoop)


@pytest.mark.usefixtures("fast_loops")
def test_an_idle_minute_on_sqlite(sqlite_url: str):
    meter = SqliteMeter()
    with meter.in_place():
        spent = idle_minute(sqlite_url, lambda: meter.statements, most=127)
    assert 0 < spent <= 127  # 82 as it is, give or take the jitter and what met a lock and was tried again


@pytest.mark.usefixtures("fast_loops")
def test_an_idle_minute_on_postgresql(postgres_url: str):
    with measured(postgres_url) as meter:
        spent = idle_minute(f"{meter.url}&connect_timeout={PATIENCE}", lambda: meter.statements, most=36)
    assert 0 < spent <= 36  # 27 as it is, give or take the jitter


@contextmanager
def measured(url: str) -> Iterator[PostgresMeter]:
    """A meter in a thread of its own, in ordinary time."""
    ready: Future[PostgresMeter] = Future()

    async def main() -> None:
        async with PostgresMeter(url) as meter:
            ready.set_result(meter)
            await asyncio.to_thread(over.wait)

    over = threading.Event()
    loop = asyncio.SelectorEventLoop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    try:
        yield ready.result(10)
    finally:
        over.set()
        thread.join()
        loop.close()
