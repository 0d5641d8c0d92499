"""The table for people who use SQLAlchemy: it is the one that is there, for queries and for Alembic's autogenerate."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Column, Connection, ForeignKey, MetaData, String, Table, create_engine, func, select, text
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.schema import CreateSchema

from tasklib.api.decorator import task
from tasklib.contrib.sqlalchemy import TABLES, include_object, tasks_table
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain_async
from tests.queues import as_default

COLUMNS = """
SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns
WHERE table_schema = :schema AND table_name = 'tasks' ORDER BY ordinal_position
"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = :schema AND tablename = 'tasks' ORDER BY indexname"

registry = Registry()


@task(registry=registry, tags={"team": "billing"})
def charge(customer: str, cents: int) -> int:
    return cents


@pytest.fixture
async def engine(postgres_url: str) -> AsyncIterator[Engine]:
    """A database that tasklib made."""
    async with as_default(Engine(Config(database_url=postgres_url))) as engine:
        await engine.store()
        yield engine


@pytest.fixture
def schema(postgres_url: str) -> str:
    return postgres_url.rpartition("schema=")[2]


@pytest.fixture
def connection(engine: Engine, postgres_server: str) -> Iterator[Connection]:
    database = create_engine(postgres_server.replace("postgresql://", "postgresql+psycopg://"))
    with database.connect() as connection:
        yield connection
    database.dispose()


def differences(connection: Connection, metadata: MetaData, schema: str, **options: Any) -> list[Any]:
    """What `alembic revision --autogenerate` would write."""
    only_here = lambda name, kind, parents: kind != "schema" or name == schema  # noqa: E731
    settings = {"include_schemas": True, "include_name": only_here, **options}
    return list(compare_metadata(MigrationContext.configure(connection, opts=settings), metadata))


def test_autogenerate_sees_no_difference_in_tasks(connection: Connection, schema: str):
    metadata = MetaData()
    tasks_table(metadata, schema)

    changes = differences(connection, metadata, schema, compare_type=True)

    about = [change for change in changes if "'tasks'" in repr(change) or "ix_tasks_" in repr(change)]
    assert about == []
    # The others are not in the metadata: that is what include_object is for.
    assert {change[1].name for change in changes if change[0] == "remove_table"} == TABLES - {"tasks"}


@pytest.mark.parametrize("declared", [True, False])
def test_autogenerate_leaves_everything_of_tasklib_alone(connection: Connection, schema: str, declared: bool):
    metadata = MetaData()
    if declared:
        tasks_table(metadata, schema)
    Table("customers", metadata, Column("id", String, primary_key=True), schema=schema)

    changes = differences(
        connection,
        metadata,
        schema,
        compare_type=True,
        compare_server_default=True,
        include_object=include_object(schema),
    )

    assert [(change[0], change[1].name) for change in changes] == [("add_table", "customers")]


def test_a_table_of_the_same_name_elsewhere_is_not_tasklibs(connection: Connection, schema: str):
    metadata = MetaData()
    Table("tasks", metadata, Column("id", String, primary_key=True), schema="another")

    changes = differences(connection, metadata, schema, include_object=include_object(schema))

    assert [(change[0], change[1].schema) for change in changes] == [("add_table", "another")]


async def test_a_query_returns_the_rows(engine: Engine, connection: Connection, schema: str):
    tasks = tasks_table(MetaData(), schema)
    first = await charge.submit_async("ACME", 500)
    second = await charge.options(priority=5, delay_seconds=3600).submit_async("Umbrella", 700)
    await drain_async(engine, registry=registry)

    query = select(tasks.c.id, tasks.c.state, tasks.c.kwargs["customer"].astext, tasks.c.result).order_by(tasks.c.id)
    assert [tuple(row) for row in connection.execute(query)] == [
        (first.id, "completed", "ACME", {"value": 500}),
        (second.id, "pending", "Umbrella", None),
    ]
    billing = select(func.count()).select_from(tasks).where(tasks.c.tags.contains({"team": "billing"}))
    assert connection.execute(billing).scalar_one() == 2
    row = connection.execute(select(tasks).where(tasks.c.id == second.id)).mappings().one()
    found = await second.get_async()
    assert (row["scheduled_at"], row["created_at"], row["priority"]) == (found.scheduled_at, found.created_at, 5)
    assert row["scheduled_at"].utcoffset() is not None


def test_it_says_all_of_the_table_that_there_is(connection: Connection, schema: str):
    """Types, defaults and the conditions of indexes too, which autogenerate does not look at."""
    copy = f"{schema}_copy"
    connection.execute(CreateSchema(copy))
    tasks_table(metadata := MetaData(), copy)
    metadata.create_all(connection)

    def described(schema: str) -> tuple[list[Any], list[Any]]:
        lines = connection.execute(text(COLUMNS), {"schema": schema}).all()
        indexes = connection.execute(text(INDEXES), {"schema": schema}).scalars()
        return [tuple(line) for line in lines], [index.replace(f"{schema}.", "") for index in indexes]

    assert described(copy) == described(schema)
    connection.rollback()


def test_another_table_may_refer_to_a_task(connection: Connection, schema: str):
    metadata = MetaData()
    tasks = tasks_table(metadata, schema)
    key = ForeignKey(f"{schema}.tasks.id", ondelete="SET NULL")
    exports = Table("exports", metadata, Column("task_id", UUID(as_uuid=True), key), schema=schema)
    assert exports.c.task_id.references(tasks.c.id)
    metadata.create_all(connection, tables=[exports])
    connection.rollback()


def test_asked_twice_it_is_the_same_table():
    metadata = MetaData()
    assert tasks_table(metadata) is tasks_table(metadata)
    assert tasks_table(metadata, "billing") is tasks_table(metadata, "billing")
    assert tasks_table(metadata) is not tasks_table(metadata, "billing")


def test_without_sqlalchemy_the_error_says_what_to_install(tmp_path: Path):
    (tmp_path / "sqlalchemy.py").write_text("raise ModuleNotFoundError('No module named sqlalchemy')")
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from tasklib import MissingExtra
try:
    import tasklib.contrib.sqlalchemy
except MissingExtra as error:
    print(error.extra, error)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sqlalchemy ")
    assert "pip install 'tasklib-queue[sqlalchemy]'" in done.stdout
