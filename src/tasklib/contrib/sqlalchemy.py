"""The table `tasks` for SQLAlchemy: your own queries, foreign keys to a task, and Alembic's autogenerate.

    from tasklib.contrib.sqlalchemy import include_object, tasks_table

    tasks = tasks_table(metadata)
    stuck = select(tasks.c.id).where(tasks.c.state == "failed", tasks.c.completed_at.is_not(None))

Read and join as you like; to add a task call `submit(..., connection=...)`, which validates it and wakes the workers.
PostgreSQL only: the file of a SQLite queue must not be opened by a second SQLite library.

The table is created by tasklib itself or by `migrations/001_add_tasks_table`, never by `metadata.create_all()`, which
knows nothing of the tables beside it. In Alembic's `env.py` say `context.configure(include_object=include_object())`,
so that autogenerate leaves tasklib's tables alone. `tasks` compares equal without it too (but for the random default
of `id` if `compare_server_default` is on); the tables beside it are not in your metadata and would be dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tasklib.core.errors import MissingExtra
from tasklib.stores.sql.queries import load_steps, made_by_steps

try:
    from sqlalchemy import Boolean, Column, Index, Integer, MetaData, String, Table, Text, text
    from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP, UUID
except ImportError as error:
    raise MissingExtra("sqlalchemy", "sqlalchemy", "tasklib.contrib.sqlalchemy") from error

__all__ = ["TABLES", "include_object", "migration", "tasks_table"]

TABLES = frozenset(made_by_steps("postgres", "TABLE"))
"""Everything that tasklib keeps in a schema."""

_TYPES: dict[str, Any] = {
    "uuid": UUID(as_uuid=True),
    "uuid[]": ARRAY(UUID(as_uuid=True)),
    "varchar": String(),
    "text": Text(),
    "integer": Integer(),
    "boolean": Boolean(),
    "timestamptz": TIMESTAMP(timezone=True),
    "jsonb": JSONB(),
}
_COLUMN = re.compile(
    r"^    (?:ADD COLUMN )?(\w+) ([\w\[\]]+)( NOT NULL)?( PRIMARY KEY)?(?: DEFAULT (.+?))?,?(?=\n    \w|\Z)",
    re.MULTILINE | re.DOTALL,
)
_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX (\w+) ON \{schema\}\.tasks \((.+?)\)\s+WHERE (.+)", re.DOTALL)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_COMMA = re.compile(r", (?![^(]*\))")
"""One that stands in no parentheses."""


def migration(version: int, schema: str = "public") -> list[str]:
    """The statements of one migration of tasklib's, for your own: one by one, because some drivers take no more than
    one at a time. A migration that was released never changes."""
    return _statements(load_steps("postgres")[version - 1].script(schema))


def tasks_table(metadata: MetaData, schema: str | None = None) -> Table:
    """The table as it is in PostgreSQL. `schema` is what the database URL says in `?schema=`; asked again with the same
    metadata, it is the same object."""
    known = metadata.tables.get("tasks" if schema is None else f"{schema}.tasks")
    if known is not None:
        return known
    items: dict[str, Column[Any] | Index] = {}
    for step in load_steps("postgres"):
        for statement in _statements(step.sql):
            _read(statement, items)
    return Table("tasks", metadata, *items.values(), schema=schema)


def _read(statement: str, items: dict[str, Column[Any] | Index]) -> None:
    """What a statement does to the table."""
    statement = _COMMENT.sub("", statement)
    if statement.startswith(("CREATE TABLE {schema}.tasks (", "ALTER TABLE {schema}.tasks\n")):
        for name, kind, required, primary, default in _COLUMN.findall(statement.partition("\n) WITH (")[0]):
            written = text(default) if default else None
            items[name] = Column(
                name, _TYPES[kind], nullable=not required, primary_key=bool(primary), server_default=written
            )
    elif found := _INDEX.match(statement):
        unique, name, columns, where = found.groups()
        expressions = [column if column.isidentifier() else text(column) for column in _COMMA.split(columns)]
        items[name] = Index(name, *expressions, unique=bool(unique), postgresql_where=text(where))
    elif statement.startswith("DROP INDEX {schema}."):
        del items[statement.removeprefix("DROP INDEX {schema}.")]


def _statements(script: str) -> list[str]:
    found, statement = [], ""
    for piece in script.split(";\n"):
        statement += piece
        if statement.count("$$") % 2 == 0:
            found.append(statement.strip())
            statement = ""
        else:  # inside the body of a function
            statement += ";\n"
    return [statement for statement in found if statement]


def include_object(schema: str | None = None) -> Callable[[Any, str | None, str, bool, Any], bool]:
    """For `context.configure(include_object=include_object())`: autogenerate neither drops nor changes what is
    tasklib's in the given schema."""

    def include(item: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
        table = item if type_ == "table" else getattr(item, "table", None)
        return table is None or table.schema != schema or table.name not in TABLES

    return include
