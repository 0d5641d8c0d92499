"""Lists in a SQLite file: one sensible plan, whatever the statistics say; none grows with what it does not show."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import apsw
import pytest

from tasklib.core.errors import StoreBusy
from tasklib.stores.sql import lists
from tasklib.stores.sql import store as sql_store
from tasklib.stores.sql.sqlite import SqliteStore, statements
from tasklib.stores.sql.sqlite.batches import SQL
from tasklib.stores.sql.sqlite.clock import Clock
from tasklib.stores.sql.steps import Play, Query, Steps
from tasklib.stores.values import Filter
from tests.conformance.builders import submit, submit_several
from tests.stores.served import ENDED, LONG_AGO, SAID, SERVED, looks, looks_by_end, says_how_far
from tests.stores.sqlite.statistics import Prepare, steps_of, whatever_the_statistics


def plan_of(connection: apsw.Connection, steps: Steps[Any]) -> list[str]:
    """Of the statement that lists or counts."""
    play = Play(steps)
    while True:
        query = play.query
        assert isinstance(query, Query)
        if says_how_far(query):
            play.send([[0]])
        elif query.name in ("list_ids", "count_listed", "latest_ended") and "near" not in query.parameters:
            statement = statements.prepare(query, 0)
            values = [statements._value(query.parameters[name]) for name in statement.parameters]
            return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", values)]
        elif query.name in SAID:
            play.send(SAID[query.name])
        else:
            play.send(statements._rows(connection, query, (), Clock(0.0)))


@whatever_the_statistics
def test_plans_of_lists_on_sqlite(writer: apsw.Connection, prepare: Prepare):
    prepare(writer)
    for where, wanted in SERVED:
        for said, steps in looks(where):
            used = set()
            for step in plan_of(writer, steps):
                verb, table, *_ = [*step.split(" "), ""]
                if verb in ("SCAN", "SEARCH") and table in ("tasks", "t"):
                    assert "INDEX" in step, (said, step)
                    used.add(step.partition("INDEX ")[2].split(" ")[0])
                    if "sqlite_autoindex_tasks_1" in step:
                        assert verb == "SEARCH", (said, step)
            assert used == (wanted or {"sqlite_autoindex_tasks_1"}), (said, used)
    for said, steps in looks_by_end():
        plan = plan_of(writer, steps)
        assert any(f"SEARCH t USING COVERING INDEX {ENDED} (completed_at" in step for step in plan), (said, plan)
        assert not [step for step in plan if "TEMP B-TREE" in step], (said, plan)


def test_a_list_on_sqlite_walks_no_more_than_it_shows(writer: apsw.Connection, monkeypatch: pytest.MonkeyPatch):
    """Rows of others by the thousand cost a list nothing."""
    monkeypatch.setattr(lists, "NEAR_ROWS", 10)
    monkeypatch.setattr(lists, "NEAREST_ROWS", 10)
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
        Filter(ended_before=LONG_AGO),
        Filter(states=["failed", "cancelled"], ended_after=LONG_AGO),
    ):
        steps = steps_of(writer, partial(look_in_vain, writer, where))
        assert steps < 100, (where, steps)


def look_in_vain(connection: apsw.Connection, where: Filter) -> None:
    page = lists.page(where, limit=50, cursor=None, offset=0, oldest_first=False)
    assert statements.play(connection, page, Clock(0.0)).result.tasks == []
    assert statements.play(connection, lists.count(where, 50), Clock(0.0)).result.value == 0


async def test_what_is_neither_ready_nor_not_is_shown(store: SqliteStore, connection: apsw.Connection):
    """It has no place among the pending tasks, and is never claimed: who looks for it finds it all the same."""
    task_id = await submit(store)
    connection.execute("UPDATE tasks SET ready = 2")
    assert [task.id for task in (await store.page(Filter(), limit=5)).tasks] == [task_id]


async def test_a_list_on_sqlite_is_given_up_in_time(store: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    monkeypatch.setattr(sql_store, "READING_SECONDS", 0.05)
    monkeypatch.setitem(SQL, "count_listed", endless)
    async with asyncio.timeout(20):
        with pytest.raises(StoreBusy, match="in time"):
            await store.count(Filter(), 5)
    await submit_several(store, 2)
    assert len((await store.page(Filter(), limit=5)).tasks) == 2
