"""What only the migration of a SQLite file has to show; tests/stores/test_migrating.py has what both engines do."""

import apsw
import pytest

from tasklib.core.errors import SchemaMismatch
from tasklib.stores.sql.sqlite import SqliteStore
from tasklib.stores.values import Filter
from tests.upgrade.filling import SQLITE as FINISHED_TASKS

ROWS = 1000


def version_1(url: str, *changes: str) -> apsw.Connection:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    _, script = SqliteStore(url).migration_sql()[0]
    connection.execute(script)
    for change in changes:
        connection.execute(change)
    connection.execute(FINISHED_TASKS, [ROWS])
    return connection


def test_the_new_columns_do_not_cost_a_look_at_every_row(sqlite_url: str):
    """Each ALTER TABLE would: a large file would be locked for minutes."""
    connection = version_1(sqlite_url)
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 100
        return False

    connection.set_progress_handler(count, 100)
    _, script = SqliteStore(sqlite_url).migration_sql()[1]
    connection.execute(script)
    assert 0 < steps / ROWS < 80  # five indexes, each a pass over the rows; more than 1,000 with ALTER TABLE
    assert connection.execute("SELECT DISTINCT waits, unique_key FROM tasks").fetchall() == [(0, None)]
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


async def test_a_table_with_a_column_of_somebody_else_is_migrated(sqlite_url: str):
    version_1(sqlite_url, "ALTER TABLE tasks ADD COLUMN ours TEXT").close()
    store = SqliteStore(sqlite_url)
    assert await store.migrate() == ["0002_schedules_and_flows"]
    await store.open()
    page = await store.page_ended(Filter(states=["failed"]), limit=ROWS)
    assert len(page.tasks) == ROWS // 50
    await store.close()


async def test_a_table_that_is_not_as_we_made_it_is_refused_and_left_as_it_was(sqlite_url: str):
    connection = version_1(sqlite_url)
    connection.execute("""
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - length(' STRICT')) WHERE name = 'tasks';
        PRAGMA writable_schema = RESET
    """)
    before = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    store = SqliteStore(sqlite_url)
    with pytest.raises(SchemaMismatch, match="somebody changed the schema of the queue"):
        await store.migrate()
    await store.close()
    assert connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall() == before
    connection.close()
