"""Lists in PostgreSQL: one sensible plan, whatever the statistics say; none grows with what it does not show."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tasklib.core.errors import StoreBusy
from tasklib.core.lifecycle import Phase
from tasklib.stores.sql import lists
from tasklib.stores.sql import store as sql_store
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.sql.postgres.driver import reading
from tasklib.stores.sql.steps import Play, Query, Steps
from tasklib.stores.values import Filter
from tests.conformance.builders import in_phase, submit_several
from tests.stores.postgres.situations import SITUATIONS, asyncpg_of, bring_about, pages
from tests.stores.served import ENDED, FINISHED, SAID, SERVED, looks, looks_by_end, says_how_far


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


# As a table grows: ids in the order of the rows, a dozen types, few failures.
GROW = """
    INSERT INTO {schema}.tasks (id, name, state, ready, completed_at, created_at)
    SELECT (lpad(to_hex(1700000000000 + i * 1000), 12, '0') || '70008000' || lpad(to_hex(i), 12, '0'))::uuid,
        'type-' || i % 12, CASE WHEN i % 50 = 0 THEN 'failed' ELSE 'completed' END, false, now(),
        to_timestamp(1700000000 + i)
    FROM generate_series(1, 100000) AS i
"""


LISTING = ("list_ids", "count_listed", "latest_ended")


async def plan_of(store: PostgresStore, connection: asyncpg.Connection, steps: Steps[Any]) -> list[dict[str, Any]]:
    """Of the statement that lists or counts."""
    statements = store._calls.statements
    play = Play(steps)
    while True:
        query = play.query
        assert isinstance(query, Query)
        if says_how_far(query):
            play.send([[0]])
        elif query.name in LISTING and "near" not in query.parameters:
            text, names, _ = statements.statement(query)
            values = [query.parameters[name] for name in names]
            [found] = json.loads(await connection.fetchval(f"EXPLAIN (FORMAT JSON) {text}", *values))
            return list(nodes(found["Plan"]))
        elif query.name in SAID:
            play.send(SAID[query.name])
        else:
            statement, values = statements.bound(query, timedelta(0))
            play.send(statement.rows(query, await connection.fetch(statement.text, *values)))


async def check_plans(store: PostgresStore, connection: asyncpg.Connection, timeout: float) -> None:
    for where, wanted in SERVED:
        for said, steps in looks(where):
            async with reading(connection, timeout, timeout):
                found = await plan_of(store, connection, steps)
            assert not [node for node in found if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan")], said
            assert {node["Index Name"] for node in found if "Index Name" in node} == (wanted or {"tasks_pkey"}), said
            if not (where.searches or where.created_after or where.created_before or where.by_end):
                scans = {node["Node Type"] for node in found if node.get("Index Name") == FINISHED}
                assert scans <= {"Index Only Scan"}, f"{said}, fetches every row"
    for said, steps in looks_by_end():
        async with reading(connection, timeout, timeout):
            found = await plan_of(store, connection, steps)
        assert {node.get("Index Name") for node in found if "Scan" in node["Node Type"]} == {ENDED}, said
        assert not [node for node in found if "Sort" in node["Node Type"]], said


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
    where for where, _ in SERVED if not (where.searches or where.created_before or where.created_after or where.by_end)
]


async def test_lists_on_postgres_do_not_walk_the_finished(store: PostgresStore):
    await bring_about(store._calls, "100,000 finished, fresh statistics")
    await submit_several(store, 3, "mine")
    for where in SHORT:
        before = await pages(store)
        await store.page(where, limit=50)
        await store.count(where, 100)
        assert await pages(store) - before < 1_500, where


async def test_lists_by_the_end_on_postgres_do_not_walk_the_finished(store: PostgresStore):
    await bring_about(store._calls, "100,000 finished, fresh statistics")
    failures = [await in_phase(store, Phase.FAILED, "mine") for _ in range(3)]
    ended_after = failures[0].completed_at
    before = await pages(store)
    where = Filter(states=["failed"], terminal=True, ended_after=ended_after)
    assert len((await store.page(where, limit=50)).tasks) == 3
    assert (await store.count(where, 100)).value == 3
    assert (await store.page_ended(Filter(states=["failed"]), limit=1)).tasks == failures[-1:]
    assert await pages(store) - before < 1_500


async def test_a_list_on_postgres_is_given_up_in_time(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sql_store, "READING_SECONDS", 0.05)
    schema = store._calls.target.quoted_schema
    other = await asyncpg_of(store._calls)
    async with other.transaction():
        await other.execute(f"LOCK TABLE {schema}.tasks IN ACCESS EXCLUSIVE MODE")
        for look in (store.page(Filter(), limit=5), store.count(Filter(), 5), store.stats()):
            with pytest.raises(StoreBusy, match=r"took longer than 0\.05 s"):
                await look
    await other.close()
    assert (await store.page(Filter(), limit=5)).tasks == [], "the connection is whole again"
