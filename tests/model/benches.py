"""The engines on which the steps of one example run, side by side: each with two stores on one empty queue, so that no
store is asked only about what it has done itself."""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import hypothesis
import psycopg
from hypothesis import HealthCheck, Phase
from psycopg import sql

from tasklib.engine.backends import make_store
from tasklib.engine.config import Config
from tasklib.stores.protocol import Store
from tests.nats_servers import ask

T = TypeVar("T")

HALF = 500
"""All times of the model are whole numbers of seconds. The clock moves by multiples of 1000, durations are zero or end
in 500: so nothing is ever due at an instant that is nearly now, and how long an example really takes does not matter as
long as it is less than half of this."""
PATIENCE = HALF / 2


@dataclass
class Bench:
    engine: str
    stores: Sequence[Store]
    begun_at: datetime

    def time(self, moment: datetime | None) -> int | None:
        """The model's time of an instant."""
        if moment is None:
            return None
        return round((moment - self.begun_at).total_seconds() / HALF) * HALF

    def moment(self, time: int) -> datetime:
        return self.begun_at + timedelta(seconds=time)


class Benches:
    """Opens and closes stores in an event loop of its own; the steps of a state machine are plain functions."""

    def __init__(self, runner: asyncio.Runner, postgres: str, nats: str, folder: Path) -> None:
        self._runner = runner
        self._postgres, self._nats, self._folder = postgres, nats, folder
        self._stack = AsyncExitStack()
        self._bucket = ""
        self.benches: list[Bench] = []

    def open(self) -> None:
        self._empty_postgres()
        name = uuid.uuid4().hex
        self._bucket = f"t_{name}"
        addresses = {
            "sqlite": f"sqlite:///{self._folder}/{name}.db",
            "postgres": self._postgres,
            "nats": f"{self._nats}?bucket={self._bucket}",
        }

        async def work() -> list[Bench]:
            return [await self._bench(engine, url) for engine, url in addresses.items()]

        self.benches = self._runner.run(work())

    async def _bench(self, engine: str, url: str) -> Bench:
        stores: list[Store] = []
        for _ in range(2):
            store = make_store(Config(database_url=url))
            await store.open()
            self._stack.push_async_callback(store.close)
            stores.append(store)
        return Bench(engine, stores, await stores[0].now())

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        if self._bucket:
            ask(self._nats, f"$JS.API.STREAM.DELETE.KV_{self._bucket}")

    def set_clock(self, time: int) -> None:
        for bench in self.benches:
            for store in bench.stores:
                store.clock_offset = float(time)

    def each(self, via: int, verb: Callable[[Bench, Store], Awaitable[T]]) -> dict[str, T]:
        """What the verb answers on each engine, asked of its first store or of its second."""

        async def work() -> list[T]:
            return await asyncio.gather(*(verb(bench, bench.stores[via]) for bench in self.benches))

        answers = self._runner.run(work())
        return {bench.engine: answer for bench, answer in zip(self.benches, answers, strict=True)}

    def _empty_postgres(self) -> None:
        address, _, schema = self._postgres.rpartition("schema=")
        with psycopg.connect(address.rstrip("?&"), autocommit=True) as connection:
            found = connection.execute("SELECT to_regclass(%s)", [f"{schema}.tasks"]).fetchone()
            if found is not None and found[0] is not None:
                for table in ("tasks", "task_counts", "task_controls", "task_workers"):
                    connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(schema, table)))


def settings_for(examples: int, steps: int) -> hypothesis.settings:
    """Of random steps. What fails is made smaller only where there is time for it: `make model`."""
    return hypothesis.settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink] if "TASKLIB_MODEL_SHRINK" in os.environ else [Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
