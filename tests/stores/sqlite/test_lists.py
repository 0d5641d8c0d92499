"""Lists in a SQLite file: one sensible plan, whatever the statistics say; none grows with what it does not show."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import apsw
import pytest

from tasklib.core.errors import StoreBusy
from tasklib.stores import lists
from tasklib.stores.sqlite import SqliteStore, lanes
from tasklib.stores.sqlite import listing as sqlite_listing
from tasklib.stores.values import Filter
from tasklib.testing.suite.builders import submit, submit_several
from tests.stores.served import LONG_AGO, SERVED
from tests.stores.sqlite.statistics import Prepare, steps_of, whatever_the_statistics


@whatever_the_statistics
def test_plans_of_lists_on_sqlite(writer: apsw.Connection, prepare: Prepare):
    prepare(writer)
    for where, wanted in SERVED:
        if lists.is_empty(where):
            continue
        for query, order in (("list", "ASC"), ("list", "DESC"), ("count", "")):
            listing = sqlite_listing._survey(writer, where, 0.0)
            parameters = {**listing.parameters(), "top": 51}
            if query == "list":
                parameters |= {"limit": 51, "offset": 0}
            text = f"EXPLAIN QUERY PLAN {listing.text(query, order)}"
            steps = [str(row[3]) for row in writer.execute(text, parameters)]
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


def test_a_list_on_sqlite_walks_no_more_than_it_shows(writer: apsw.Connection):
    """Rows of others by the thousand cost a list nothing."""
    fill = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO tasks (id, name, kwargs, state, completed_at, created_at)
        SELECT printf('0198%04x-0000-7000-8000-%012x', i / 100, i), 'other', '{}', 'completed',
            '2026-01-01T00:00:00.000Z', '2025-07-30T00:00:00.000Z' FROM n
    """
    writer.execute(fill)
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
        steps = steps_of(writer, partial(look_in_vain, writer, where))
        # Of a time range, the nearest tasks outside are counted off.
        assert steps < (600 if where.created_before or where.created_after else 100), (where, steps)


def look_in_vain(connection: apsw.Connection, where: Filter) -> None:
    assert sqlite_listing.page(connection, where, 50, None, 0, False, 0.0).tasks == []
    assert sqlite_listing.count(connection, where, 50, 0.0).value == 0


async def test_sqlite_lists_what_is_neither_ready_nor_not(store: SqliteStore, connection: apsw.Connection):
    task_id = await submit(store)
    connection.execute("UPDATE tasks SET ready = 2")
    assert [task.id for task in (await store.page(Filter(states=["pending"]), limit=9)).tasks] == [task_id]


async def test_a_list_on_sqlite_is_given_up_in_time(store: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    monkeypatch.setattr(lanes, "READING_SECONDS", 0.05)
    monkeypatch.setattr(sqlite_listing, "count", lambda connection, **_: connection.execute(endless).fetchall())
    async with asyncio.timeout(20):
        with pytest.raises(StoreBusy, match="in time"):
            await store.count(Filter(), 5)
    await submit_several(store, 2)
    assert len((await store.page(Filter(), limit=5)).tasks) == 2
