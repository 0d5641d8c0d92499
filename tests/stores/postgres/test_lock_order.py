"""Whoever writes several tasks at once locks them in one order: settles and heartbeats of a busy worker meet all the
time, and a deadlock costs both of them a second."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg
import pytest

from tasklib.core.task import Claim
from tasklib.stores.sql.postgres import PostgresStore
from tests.conformance.builders import WORKER_A, claim, completed, failed, lease_of, submit_several
from tests.waiting import eventually_async

Write = Callable[[PostgresStore, Sequence[Claim]], Awaitable[Any]]


def complete(store: PostgresStore, claims: Sequence[Claim]) -> Awaitable[Any]:
    return store.settle([completed(each) for each in claims])


def fail(store: PostgresStore, claims: Sequence[Claim]) -> Awaitable[Any]:
    return store.settle([failed(each) for each in claims])


def extend(store: PostgresStore, claims: Sequence[Claim]) -> Awaitable[Any]:
    return store.extend(WORKER_A, [lease_of(each) for each in claims], 30.0)


@pytest.mark.parametrize("write", [complete, fail, extend])
async def test_the_first_of_several_is_locked_first(
    store: PostgresStore, postgres_server: str, schema: str, write: Write
):
    await submit_several(store, 3)
    first, *others = sorted(await claim(store, 3), key=lambda each: each.id)
    holder, watcher = await asyncpg.connect(postgres_server), await asyncpg.connect(postgres_server)
    waiting = f"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}%'"
    free = f"SELECT id FROM {schema}.tasks ORDER BY id FOR UPDATE SKIP LOCKED"
    try:
        held = holder.transaction()
        await held.start()
        await holder.execute(f"SELECT FROM {schema}.tasks WHERE id = $1 FOR UPDATE", first.id)
        writing = asyncio.ensure_future(write(store, [*reversed(others), first]))

        async def it_waits() -> bool:
            return bool(await watcher.fetchval(waiting))

        await eventually_async(it_waits)
        assert [row["id"] for row in await watcher.fetch(free)] == [each.id for each in others], "it holds none of them"
        await held.rollback()
        await writing
    finally:
        await holder.close()
        await watcher.close()
