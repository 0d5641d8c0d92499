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

from collections.abc import Callable
from typing import Any

from tasklib.core.errors import MissingExtra

try:
    from sqlalchemy import Boolean, Column, Index, Integer, MetaData, String, Table, Text, text
    from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, UUID
except ImportError as error:
    raise MissingExtra("sqlalchemy", "sqlalchemy", "tasklib.contrib.sqlalchemy") from error

__all__ = ["TABLES", "include_object", "tasks_table"]

TABLES = frozenset(
    {"tasks", "task_workers", "task_controls", "task_counts", "task_tokens", "task_audit", "task_migrations"}
)
"""Everything that tasklib keeps in a schema."""

_ID_DEFAULT = (
    "(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')"
    " || '7' || substr(md5(random()::text), 1, 3)"
    " || '8' || substr(md5(random()::text || clock_timestamp()::text), 1, 15))::uuid"
)


def tasks_table(metadata: MetaData, schema: str | None = None) -> Table:
    """The table as it is in PostgreSQL. `schema` is what the database URL says in `?schema=`; asked again with the same
    metadata, it is the same object."""
    known = metadata.tables.get("tasks" if schema is None else f"{schema}.tasks")
    if known is not None:
        return known
    return Table(
        "tasks",
        metadata,
        Column("id", UUID(as_uuid=True), primary_key=True, server_default=text(_ID_DEFAULT)),
        Column("name", String, nullable=False),
        Column("state", String, nullable=False, server_default="pending"),
        _instant("scheduled_at", nullable=False),
        _instant("started_at"),
        _instant("completed_at"),
        _instant("created_at", nullable=False),
        Column("args", JSONB, nullable=False, server_default="{}"),
        Column("kwargs", JSONB, nullable=False, server_default="{}"),
        Column("result", JSONB),
        Column("error", Text),
        Column("retry_count", Integer, nullable=False, server_default="0"),
        Column("max_retries", Integer, nullable=False, server_default="3"),
        _instant("next_retry_at"),
        Column("worker_id", String),
        _instant("locked_until"),
        Column("timeout_seconds", Integer),
        Column("priority", Integer, nullable=False, server_default="0"),
        Column("tags", JSONB, nullable=False, server_default="{}"),
        _instant("updated_at", nullable=False),
        _instant("cancel_requested_at"),
        Column("version", Integer, nullable=False, server_default="0"),
        Column("idempotency_key", String),
        Column("retry_policy", JSONB),
        Column("history", JSONB, nullable=False, server_default="[]"),
        Column("ready", Boolean, nullable=False, server_default=text("false")),
        Column("awaited", Boolean, nullable=False, server_default=text("false")),
        Column("trace", Text),
        *_indexes(),
        schema=schema,
    )


def _indexes() -> list[Index]:
    due = text("(coalesce(next_retry_at, scheduled_at))")
    waiting = text("NOT ready AND state IN ('pending', 'failed') AND completed_at IS NULL")
    failed = text("state IN ('failed', 'cancelled')")
    odd = text(
        "CASE state WHEN 'pending' THEN completed_at IS NOT NULL WHEN 'running' THEN false"
        " WHEN 'completed' THEN completed_at IS NULL ELSE state NOT IN ('failed', 'cancelled') END"
    )
    id_ = text("id NULLS FIRST")
    keyed = text("idempotency_key IS NOT NULL")
    return [
        Index("ix_tasks_ready", "name", text("priority DESC"), "created_at", "id", postgresql_where=text("ready")),
        Index("ix_tasks_waiting", due, "name", "state", "id", postgresql_where=waiting),
        Index("ix_tasks_running", "name", "worker_id", postgresql_where=text("state = 'running'")),
        Index("ix_tasks_idempotency_key", "idempotency_key", unique=True, postgresql_where=keyed),
        Index("ix_tasks_finished", "name", "state", id_, postgresql_where=text("completed_at IS NOT NULL")),
        Index("ix_tasks_failed", "state", text("(completed_at IS NULL)"), id_, postgresql_where=failed),
        Index("ix_tasks_odd", "id", postgresql_where=odd),
    ]


def include_object(schema: str | None = None) -> Callable[[Any, str | None, str, bool, Any], bool]:
    """For `context.configure(include_object=include_object())`: autogenerate neither drops nor changes what is
    tasklib's in the given schema."""

    def include(item: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
        table = item if type_ == "table" else getattr(item, "table", None)
        return table is None or table.schema != schema or table.name not in TABLES

    return include


def _instant(name: str, *, nullable: bool = True) -> Column[Any]:
    return Column(name, TIMESTAMP(timezone=True), nullable=nullable, server_default=None if nullable else text("now()"))
