"""Lists in PostgreSQL: one sensible plan, whatever the statistics say; none grows with what it does not show."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest

from tasklib.core.errors import StoreBusy
from tasklib.stores import lists
from tasklib.stores.postgres import PostgresStore, calls
from tasklib.stores.postgres import listing as postgres_listing
from tasklib.stores.postgres.calls import reading
from tasklib.stores.values import Filter
from tasklib.testing.suite.builders import submit_several
from tests.stores.postgres.situations import SITUATIONS, asyncpg_of, bring_about, pages
from tests.stores.served import FAILED, FINISHED, SERVED


def counting(where: Filter, wanted: set[str] | None) -> set[str] | None:
    """The indexes that serve its count: final failures and cancellations by name, where the index is enough."""
    if wanted is None or where.names is not None or where.terminal is False or FAILED not in wanted:
        return wanted
    return {*wanted, FINISHED} - ({FAILED} if where.terminal else set())


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def check(plan: dict[str, Any], wanted: set[str] | None, said: str) -> None:
    found = list(nodes(plan))
    assert not [node for node in found if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan")], said
    used = {node["Index Name"] for node in found if "Index Name" in node}
    if wanted is None:
        assert used == {"tasks_pkey"}, (said, used)
        return
    assert used == {*wanted, "tasks_pkey"}, (said, used)
    for node in found:
        if node.get("Index Name") == "tasks_pkey":
            assert "id = " in node["Index Cond"], f"{said} walks the primary key"


# As a table grows: ids in the order of the rows, a dozen types, few failures.
GROW = """
    INSERT INTO {schema}.tasks (id, name, state, ready, completed_at, created_at)
    SELECT (lpad(to_hex(1700000000000 + i * 1000), 12, '0') || '70008000' || lpad(to_hex(i), 12, '0'))::uuid,
        'type-' || i % 12, CASE WHEN i % 50 = 0 THEN 'failed' ELSE 'completed' END, false, now(),
        to_timestamp(1700000000 + i)
    FROM generate_series(1, 100000) AS i
"""


async def check_plans(store: PostgresStore, connection: asyncpg.Connection, timeout: float) -> None:
    for where, wanted in SERVED:
        if lists.is_empty(where):
            continue
        async with reading(connection, timeout):

            async def plan(make: Callable[[Any], Any], where: Filter = where, counts: bool = False) -> dict[str, Any]:
                listing = await postgres_listing._survey(store._calls, where, connection, counts=counts)
                text, *parameters = make(listing)
                found = json.loads(await connection.fetchval(f"EXPLAIN (FORMAT JSON) {text}", *parameters))
                return dict(found[0]["Plan"])

            check(await plan(lambda listing: listing.page(51, 0, True)), wanted, f"oldest first, {where}")
            check(await plan(lambda listing: listing.page(51, 0, False)), wanted, f"newest first, {where}")
            counted = await plan(lambda listing: listing.count(51), counts=True)
            # What is counted is not fetched, so there need be no look by id.
            by_id = {"Node Type": "", "Index Name": "tasks_pkey", "Index Cond": "id = "}
            check({**by_id, "Plans": [counted]}, counting(where, wanted), f"count, {where}")
            if not (where.tags or where.error_text or where.created_after or where.created_before):
                scans = {node["Node Type"] for node in nodes(counted) if node.get("Index Name") == FINISHED}
                assert scans <= {"Index Only Scan"}, f"count, {where}, fetches every row"


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_plans_of_lists_on_postgres(store: PostgresStore, situation: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lists, "SORTED_ROWS", 10**6)  # the plan of many is that of few
    await bring_about(store._calls, situation)
    await store._calls.run(lambda connection, timeout: check_plans(store, connection, timeout))


@pytest.mark.parametrize("analysed", ["before", "after"])
async def test_plans_of_lists_where_no_setting_can_be_made(store: PostgresStore, analysed: str):
    """Behind a pooler only what the reading transaction says itself holds."""
    schema = store._calls.target.quoted_schema
    connection = await asyncpg_of(store._calls)
    try:
        if analysed == "before":
            await connection.execute(f"ANALYZE {schema}.tasks")
        await connection.execute(GROW.replace("{schema}", schema))
        if analysed == "after":
            await connection.execute(f"ANALYZE {schema}.tasks")
        await check_plans(store, connection, 30.0)
    finally:
        await connection.close()


SHORT = [
    where for where, _ in SERVED if not (where.tags or where.error_text or where.created_before or where.created_after)
]


@pytest.mark.parametrize("where", SHORT, ids=str)
async def test_lists_on_postgres_do_not_walk_the_finished(store: PostgresStore, where: Filter):
    await bring_about(store._calls, "100,000 finished, fresh statistics")
    await submit_several(store, 3, "mine")
    before = await pages(store)
    await store.page(where, limit=50)
    await store.count(where, 100)
    assert await pages(store) - before < 1_500


async def test_a_list_on_postgres_is_given_up_in_time(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calls, "READING_SECONDS", 0.05)
    schema = store._calls.target.quoted_schema
    other = await asyncpg_of(store._calls)
    async with other.transaction():
        await other.execute(f"LOCK TABLE {schema}.tasks IN ACCESS EXCLUSIVE MODE")
        for look in (store.page(Filter(), limit=5), store.count(Filter(), 5), store.stats()):
            with pytest.raises(StoreBusy, match=r"took longer than 0\.05 s"):
                await look
    await other.close()
    assert (await store.page(Filter(), limit=5)).tasks == [], "the connection is whole again"
