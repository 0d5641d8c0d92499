"""What each move of a task writes on PostgreSQL, counted and not timed: rows, and bytes of WAL. (Each move is one
statement and one round trip for a batch of any size: `tests/test_costs.py` counts those.)

.venv-bench/bin/python -m benchmarks.costs
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.cases import Run, Step
from benchmarks.crowd import make_schema
from benchmarks.stage import Stage
from tasklib import Config
from tasklib.core import decide
from tasklib.core.outcome import Completed, Failed, Released
from tasklib.core.registry import TaskOptions, define
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import Claim, NewTask
from tasklib.engine.backends import make_store
from tasklib.engine.submission import Call, prepare_many
from tasklib.stores.protocol import Store
from tasklib.stores.values import ClaimRequest, Held

BATCHES = (1, 100, 1000)
POLICY = RetryPolicy()
COUNTERS = """
SELECT pg_current_wal_insert_lsn() - '0/0',
    (SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables),
    (SELECT coalesce(sum(n_tup_hot_upd), 0) FROM pg_stat_user_tables)
"""


@dataclass(frozen=True)
class Cost:
    """For each task of a batch."""

    move: str
    batch: int
    rows: float
    hot: float
    wal: float


def costs(run: Run, number: int) -> Iterator[Step]:
    """The cost model: what each move writes."""
    yield Step("costs", lambda: run.book.costs.extend(vars(cost) for cost in measured(run.stage)))


def measured(stage: Stage) -> list[Cost]:
    found = []
    for batch in BATCHES:
        with stage.store("postgres") as url:
            found += asyncio.run(_measure(url, batch))
    return found


async def _measure(url: str, batch: int) -> list[Cost]:
    await make_schema(url)
    meter = _Meter(url, batch)
    made: list[NewTask] = []
    claims: list[Claim] = []

    async def submit(store: Store) -> None:
        made.extend(new_noops(batch))
        await store.insert(made)

    async def claim(store: Store) -> None:
        claims.extend(await _claimed(store, batch))

    def settles(outcome: Any) -> Callable[[Store], Awaitable[None]]:
        async def settle(store: Store) -> None:
            await store.settle([decide.settle(each, outcome, POLICY) for each in claims])

        return settle

    async def extend(store: Store) -> None:
        await store.extend("meter", [Held(each.id, each.version) for each in claims], 60)

    async def ready(store: Store) -> None:
        """Claims of a fresh batch, for a move that needs them."""
        claims.clear()
        await store.insert(new_noops(batch))
        claims.extend(await _claimed(store, batch))

    moves: Sequence[tuple[str, Any, Any]] = (
        ("submit", None, submit),
        ("claim", None, claim),
        ("extend", None, extend),
        ("complete", None, settles(Completed('{"value":1}', 5))),
        ("fail, to be tried again", ready, settles(Failed("ValueError: no", run_ms=5))),
        ("fail for good", ready, settles(Failed("ValueError: no", final=True, run_ms=5))),
        ("release", ready, settles(Released())),
    )
    # Once beforehand: statements are prepared, pages are there.
    for _, before, move in moves:
        await meter.untimed(before)
        await meter.untimed(move)
    claims.clear()
    made.clear()
    await meter.empty()
    found = []
    for name, before, move in moves:
        await meter.untimed(before)
        found.append(await meter.of(name, move))
    return found


def noop(number: int) -> None:
    pass


NOOP = define(noop, name=None, options=TaskOptions())


def new_noops(count: int) -> list[NewTask]:
    return prepare_many(Call("noop", None, task_type=NOOP), [{"number": 1}] * count, Config(database_url="memory://"))


async def _claimed(store: Store, count: int) -> list[Claim]:
    request = ClaimRequest(worker_id="meter", names=("noop",), slots=count, prefetch=0, lease_seconds=60, per_name={})
    claims = list((await store.claim(request)).claims)
    assert len(claims) == count
    return claims


class _Meter:
    def __init__(self, url: str, batch: int) -> None:
        self._url = url
        self._batch = batch

    async def empty(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute("TRUNCATE tasks, task_counts")
            await connection.execute("CHECKPOINT")

    async def untimed(self, move: Callable[[Store], Awaitable[None]] | None) -> None:
        if move is not None:
            store = make_store(Config(database_url=self._url))
            await store.open()
            await move(store)
            await store.close()

    async def of(self, name: str, move: Callable[[Store], Awaitable[None]]) -> Cost:
        store = make_store(Config(database_url=self._url))
        await store.open()
        await store.stats()  # connected, and its own reads are over
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            # The first change of a page after a checkpoint writes the whole page: not what a task costs.
            before = await self._counters(connection)
            await move(store)
            wal = (await self._counters(connection))[0] - before[0]
            await store.close()
            # A session hands in its statistics when it ends.
            after = await self._counters(connection)
            while after[1] == before[1]:
                await asyncio.sleep(0.01)
                after = await self._counters(connection)
        per = 1 / self._batch
        return Cost(name, self._batch, (after[1] - before[1]) * per, (after[2] - before[2]) * per, wal * per)

    async def _counters(self, connection: Any) -> tuple[float, ...]:
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        row = await (await connection.execute(COUNTERS)).fetchone()
        return tuple(float(value) for value in row)


def table(found: Sequence[Cost]) -> str:
    lines = [
        "| move | batch | rows written | of them HOT | WAL, bytes |",
        "|---|--:|--:|--:|--:|",
    ]
    for cost in found:
        cells = (f"{cost.rows:.3g}", f"{cost.hot:.2g}", f"{cost.wal:,.0f}")
        lines.append(f"| {cost.move} | {cost.batch:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with Stage() as stage:
        print(table(measured(stage)))
