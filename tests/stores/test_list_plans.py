"""Every list has one sensible plan, whatever the statistics say, and does not grow with what it does not show."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw
import asyncpg
import pytest

from tasklib.stores import lists
from tasklib.stores.base import Filter
from tasklib.stores.postgres import PostgresStore
from tasklib.stores.postgres import listing as postgres_listing
from tasklib.stores.postgres.calls import reading
from tasklib.stores.sqlite import listing as sqlite_listing
from tasklib.stores.sqlite import schema
from tasklib.stores.sqlite.address import parse
from tasklib.stores.sqlite.connection import connect
from tasklib.testing.suite.builders import submit_several
from tests.stores.test_postgres_plans import SITUATIONS, asyncpg_of, bring_about, pages
from tests.stores.test_sqlite_plans import (
    with_fresh_statistics,
    with_misleading_statistics,
    with_stale_statistics,
    without_statistics,
)

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LATELY = datetime.fromtimestamp(1_700_050_000, UTC)
FINISHED, FAILED, ODD = "ix_tasks_finished", "ix_tasks_failed", "ix_tasks_odd"
RUNNING, PENDING = "ix_tasks_running", ("ix_tasks_ready", "ix_tasks_waiting")

# The indexes that serve a filter. None: the primary key, walked.
SERVED: list[tuple[Filter, set[str] | None]] = [
    (Filter(), None),
    (Filter(created_after=LONG_AGO), None),
    (Filter(created_before=LONG_AGO), None),
    (Filter(tags={"a": 1}), None),
    (Filter(ids=[]), set()),
    (Filter(names=["work"]), {FINISHED, FAILED, RUNNING, *PENDING, ODD}),
    (Filter(names=["work"], created_before=LONG_AGO), {FINISHED, FAILED, RUNNING, *PENDING, ODD}),
    (Filter(names=["work"], tags={"a": 1}), {FINISHED, FAILED, RUNNING, *PENDING, ODD}),
    (
        Filter(names=["rare"], created_after=LATELY, created_before=LATELY + timedelta(hours=1)),
        {FINISHED, FAILED, RUNNING, *PENDING, ODD},
    ),
    (Filter(name_prefix="wo"), {FINISHED, FAILED, RUNNING, *PENDING, ODD}),
    (Filter(names=["rare", "work"], states=["failed"]), {FINISHED, FAILED, ODD}),
    (Filter(names=["rare"], states=["completed"], terminal=True), {FINISHED, ODD}),
    (Filter(states=["completed"]), {FINISHED, ODD}),
    (Filter(states=["completed"], created_after=LONG_AGO), {FINISHED, ODD}),
    (Filter(terminal=True), {FINISHED, RUNNING, ODD}),
    (Filter(terminal=False), {FAILED, RUNNING, *PENDING, ODD}),
    (Filter(states=["failed"]), {FAILED, ODD}),
    (Filter(states=["failed"], terminal=True), {FAILED, ODD}),
    (Filter(states=["failed"], terminal=False), {FAILED, ODD}),
    (Filter(states=["cancelled"]), {FAILED, ODD}),
    (Filter(states=["cancelled"], error_text="boom"), {FAILED, ODD}),
    (Filter(states=["pending"]), {*PENDING, ODD}),
    (Filter(states=["pending"], created_before=LONG_AGO), {*PENDING, ODD}),
    (Filter(states=["running"]), {RUNNING, ODD}),
    (Filter(states=["on hold"]), {ODD}),
    (Filter(worker_id="w"), {RUNNING, ODD}),
]


def counting(where: Filter, wanted: set[str] | None) -> set[str] | None:
    """The indexes that serve its count: final failures and cancellations by name, where the index is enough."""
    if wanted is None or where.names is not None or where.terminal is False or FAILED not in wanted:
        return wanted
    return {*wanted, FINISHED} - ({FAILED} if where.terminal else set())


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


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


@pytest.fixture
def connection(sqlite_url: str) -> Iterator[apsw.Connection]:
    connection = connect(parse(sqlite_url))
    schema.migrate(connection)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "prepare", [without_statistics, with_fresh_statistics, with_stale_statistics, with_misleading_statistics]
)
def test_plans_of_lists_on_sqlite(connection: apsw.Connection, prepare: Callable[[apsw.Connection], None]):
    prepare(connection)
    for where, wanted in SERVED:
        if lists.is_empty(where):
            continue
        for query, order in (("list", "ASC"), ("list", "DESC"), ("count", "")):
            listing = sqlite_listing._survey(connection, where, 0.0)
            parameters = {**listing.parameters(), "top": 51}
            if query == "list":
                parameters |= {"limit": 51, "offset": 0}
            text = f"EXPLAIN QUERY PLAN {listing.text(query, order)}"
            steps = [str(row[3]) for row in connection.execute(text, parameters)]
            used = set()
            for step in steps:
                verb, table, *_ = [*step.split(" "), ""]
                if verb in ("SCAN", "SEARCH") and table in ("tasks", "t", "f"):
                    assert "INDEX" in step, (where, step)
                    name = step.partition("INDEX ")[2].split(" ")[0]
                    if name == "sqlite_autoindex_tasks_1":
                        assert verb == "SEARCH", (where, step)
                        if wanted is not None:
                            assert "(id=?)" in step, (where, step)
                    else:
                        used.add(name)
            assert used == (wanted or set()), (where, query, used)


def test_a_list_on_sqlite_walks_no_more_than_it_shows(connection: apsw.Connection):
    """Rows of others by the thousand cost a list nothing."""
    fill = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO tasks (id, name, kwargs, state, completed_at, created_at)
        SELECT printf('0198%04x-0000-7000-8000-%012x', i / 100, i), 'other', '{}', 'completed',
            '2026-01-01T00:00:00.000Z', '2025-07-30T00:00:00.000Z' FROM n
    """
    connection.execute(fill)
    now = datetime.now(UTC)
    for where in (
        Filter(names=["mine"]),
        Filter(name_prefix="mi"),
        Filter(states=["failed"]),
        Filter(states=["cancelled"]),
        Filter(states=["on hold"]),
        Filter(terminal=False),
        Filter(worker_id="w"),
        Filter(created_before=LONG_AGO),
        Filter(created_after=now + timedelta(days=2)),
        Filter(states=["completed"], created_before=LONG_AGO),
    ):
        ticks = 0

        def tick() -> bool:
            nonlocal ticks
            ticks += 1
            return False

        connection.set_progress_handler(tick, 1000, id="steps")
        assert sqlite_listing.page(connection, where, 50, None, 0, False, 0.0).tasks == []
        assert sqlite_listing.count(connection, where, 50, 0.0).value == 0
        connection.set_progress_handler(None, id="steps")
        # Of a time range, the nearest tasks outside are counted off.
        assert ticks < (60 if where.created_before or where.created_after else 10), (where, ticks)
